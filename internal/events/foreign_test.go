package events

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/testkit/dialecttest"
)

// recognised is what a message of each fixture is called, and the format to declare.
var recognised = map[string]struct{ what, format string }{
	"openai":           {"a message of OpenAI's chat completions", "openai"},
	"anthropic":        {"a message of Anthropic", "anthropic"},
	"neurolink":        {"a message of NeuroLink", "neurolink"},
	"openai-responses": {"an item of OpenAI's Responses", "openai-responses"},
	"gemini":           {"a content of Gemini", "gemini"},
	"bedrock":          {"a message of Bedrock's Converse", "bedrock"},
	"ai-sdk":           {"a ModelMessage of the AI SDK", "ai-sdk"},
	"ai-sdk-ui":        {"a UIMessage of the AI SDK", "ai-sdk"},
	"langchain":        {"a message of LangChain", ""},
	"pi":               {"a message of pi", ""},
}

// common reports whether a message is one of all dialects: words of a role.
func common(raw codec.Raw) bool {
	ms, _ := codec.ReadObject(raw)
	m := members(ms)
	if !slices.Contains([]string{"system", "user", "assistant"}, m.text("role")) {
		return false
	}
	for _, name := range []string{"parts", "toolInvocations", "tool_calls", "function_call"} {
		if m.kind(name) != 0 {
			return false
		}
	}
	if m.kind("content") == '"' {
		return true
	}
	blocks, err := codec.ReadArray(codec.Lookup(ms, "content"))
	return err == nil && !slices.ContainsFunc(blocks, func(b codec.Raw) bool {
		block, _ := codec.ReadObject(b)
		return members(block).text("type") != "text"
	})
}

// takes reports whether a message of another dialect is one of f too.
func (f Format) takes(raw codec.Raw) bool {
	ms, _ := codec.ReadObject(raw)
	m := members(ms)
	switch f {
	case Gemini: // parts in place of content
		return false
	case Bedrock: // blocks alone
		return common(raw) && m.kind("content") == '[' && m.text("role") != "system"
	case Responses, OpenAI:
		return common(raw) || f == Responses && strings.Contains(string(raw), `"input_audio"`) || m.text("role") == "assistant" && m.first("content").text("type") == "refusal"
	}
	return common(raw)
}

// ours are the dialects that this version reads.
var ours = Formats()

// A message of another dialect is refused, and named with the format to declare; what all
// dialects have is taken by all, and no dialect refuses its own.
func TestForeignDialects(t *testing.T) {
	for name, msgs := range dialecttest.Fixtures(t) {
		want := recognised[name]
		for _, f := range ours {
			for i, raw := range msgs {
				_, err := f.ReadNew([]codec.Raw{raw})
				switch taken := f.takes(raw); {
				case string(f) != name && common(raw) && !taken:
					if CodeOf(err) != CodeBadMessage {
						t.Errorf("%s about message %d of %s: %v", f, i, name, err)
					}
					continue
				case string(f) == name || taken:
					if err != nil {
						t.Errorf("%s refuses message %d of %s: %v", f, i, name, err)
					}
					continue
				}
				if CodeOf(err) != CodeForeignDialect || !strings.HasPrefix(err.Error(), "messages[0] is "+want.what+", not of "+string(f)+": ") ||
					!strings.Contains(err.Error(), want.format) {
					t.Errorf("%s about message %d of %s: %v", f, i, name, err)
				}
			}
		}
	}
}

// The text states what to declare where the dialect is read, and what to do where it is not.
func TestForeignAdvice(t *testing.T) {
	all := dialecttest.Fixtures(t)
	for name, want := range map[string]string{
		"anthropic":        "is a message of Anthropic, not of openai: set format to anthropic",
		"openai-responses": "is an item of OpenAI's Responses, not of openai: ",
		"ai-sdk-ui":        "is a UIMessage of the AI SDK, not of openai: send what convertToModelMessages makes of it; ",
		"langchain":        "is a message of LangChain, not of openai: convert_to_openai_messages makes one of openai of it",
	} {
		msgs := all[name]
		_, err := OpenAI.ReadNew(msgs)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// A decoded turn is refused for the same reasons, wherever in a conversation the foreign
// message stands.
func TestForeignMixtures(t *testing.T) {
	all := dialecttest.Fixtures(t)
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(ours).Draw(t, "format")
		msgs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) codec.Raw { return codec.Clean(codec.Raw(drawOwn(t, f, all))) }), 0, 4).Draw(t, "own")
		other := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "other")
		foreign := rapid.SampledFrom(all[other]).Draw(t, "foreign")
		if string(f) == other || common(foreign) || f.takes(foreign) {
			t.Skip("not foreign")
		}
		at := rapid.IntRange(0, len(msgs)).Draw(t, "at")
		msgs = slices.Insert(msgs, at, foreign)
		_, err := f.ReadNew(msgs)
		bad, _ := errors.AsType[*Invalid](err)
		if bad == nil || !slices.ContainsFunc(bad.Problems, func(p Problem) bool {
			return p.Code == CodeForeignDialect && p.Field == fmt.Sprintf("messages[%d]", at)
		}) {
			t.Fatalf("%s in %s: %v", foreign, f, err)
		}
		scanned, failed := new(Decoder).Turn(codec.WriteObject([]codec.Member{{Name: "messages", Value: codec.WriteArray(msgs)}}), f)
		if failed == nil {
			failed = scanned.Fault
		}
		if failed == nil || failed.Error() != err.Error() {
			t.Fatalf("%s in %s: decoded %v, read %v", foreign, f, failed, err)
		}
	})
}

// One block of another dialect is enough, also beside blocks of the session's own.
func TestForeignBlocks(t *testing.T) {
	all := dialecttest.Fixtures(t)
	for name, msgs := range all {
		for _, raw := range msgs {
			ms, _ := codec.ReadObject(raw)
			blocks, err := codec.ReadArray(codec.Lookup(ms, "content"))
			if err != nil || common(raw) || members(ms).isResult() {
				continue
			}
			for _, f := range ours {
				if string(f) == name || f.takes(raw) || f.kinOfBlocks(codec.WriteArray(blocks)) == nil {
					continue
				}
				mixed := append([]codec.Raw{codec.Raw(`{"type":"text","text":"a"}`)}, blocks...)
				role := codec.Raw(`"user"`)
				msg := codec.WriteObject([]codec.Member{{Name: "role", Value: role}, {Name: "content", Value: codec.WriteArray(mixed)}})
				if _, err := f.ReadNew([]codec.Raw{msg}); CodeOf(err) != CodeForeignDialect {
					t.Errorf("%s takes %s: %v", f, msg, err)
				}
			}
		}
	}
}

// Texts of users, results of tools and arguments of calls are not looked at, though they
// are the JSON of another dialect.
func TestForeignTextIsText(t *testing.T) {
	all := dialecttest.Fixtures(t)
	for _, msgs := range all {
		for _, raw := range msgs {
			text, inner := codec.Quote(string(raw)), raw
			for f, templates := range map[Format][]string{
				OpenAI: {
					`{"role":"user","content":TEXT}`, `{"role":"user","content":[{"type":"text","text":TEXT}]}`, `{"role":"tool","tool_call_id":"c","content":TEXT}`,
					`{"role":"tool","tool_call_id":"c","content":[JSON]}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":TEXT}}]}`,
					`{"role":"user","content":"a","metadata":JSON,"x":JSON}`,
				},
				Anthropic: {
					`{"role":"user","content":TEXT}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[JSON]}]}`,
					`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":JSON}]}`, `{"role":"user","content":[{"type":"later","data":JSON,"input":[JSON]}]}`,
				},
				NeuroLink: {`{"role":"user","content":TEXT}`, `{"role":"tool_result","tool":"f","content":[JSON]}`, `{"role":"tool_call","tool":"f","content":"","args":JSON}`},
			} {
				for _, template := range templates {
					msg := strings.NewReplacer("TEXT", string(text), "JSON", string(inner)).Replace(template)
					if _, err := f.ReadNew([]codec.Raw{codec.Raw(msg)}); err != nil {
						t.Errorf("%s refuses %s: %v", f, msg, err)
					}
				}
			}
		}
	}
}

// No message of a dialect is refused by it, whatever members and blocks it has that are
// unknown here, and a decoder needs no second pass for the common ones.
func TestNoFalseRefusal(t *testing.T) {
	all := dialecttest.Fixtures(t)
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(ours).Draw(t, "format")
		msg := codec.Clean(codec.Raw(drawOwn(t, f, all)))
		if _, err := f.ReadNew([]codec.Raw{msg}); err != nil {
			t.Fatalf("%s refuses %s: %v", f, msg, err)
		}
	})
}

// Members that providers and servers of a dialect accept, and compactd ignores, are no other dialect's.
func TestUnknownBlocksAreKept(t *testing.T) {
	for f, blocks := range map[Format][]string{
		OpenAI: {
			`{"type":"video_url","video_url":{"url":"https://example.org/v"}}`,    // vLLM
			`{"type":"document_url","document_url":"https://example.org/d"}`,      // Mistral
			`{"type":"thinking","thinking":[{"type":"text","text":"a"}]}`,         // Mistral
			`{"type":"reference","reference_ids":[1]}`,                            // Mistral
			`{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}`, // Databricks
			`{"type":"image_url"}`, `{"type":"later","later":1}`, `{"kind":"x"}`, `{}`, // none
		},
		Anthropic: {
			`{"type":"container_upload","file_id":"f"}`, `{"type":"search_result","source":"s","title":"t","content":[]}`, `{"type":"compaction","content":"a"}`,
			`{"type":"code_execution_tool_result","tool_use_id":"s","content":{}}`, `{"type":"later","text":"a"}`, `{"type":"image"}`, `{"kind":"x"}`,
		},
	} {
		for _, block := range blocks {
			raw := codec.Raw(`{"role":"user","content":[{"type":"text","text":"a"},` + block + `]}`)
			msgs, err := f.ReadNew([]codec.Raw{raw})
			if err != nil {
				t.Errorf("%s refuses %s: %v", f, block, err)
				continue
			}
			m := msgs[0].Clone()
			m.SetText(0, "b")
			if got, err := f.Write(m); err != nil || string(got) != strings.Replace(string(raw), `"text":"a"},`, `"text":"b"},`, 1) {
				t.Errorf("%s: %s became %s, %v", f, raw, got, err)
			}
		}
	}
}

func drawOwn(t *rapid.T, f Format, fixtures map[string][]codec.Raw) string {
	switch f {
	case Anthropic:
		return drawAnthropic(t)
	case NeuroLink:
		return drawNeuroLink(t)
	case OpenAI:
		return drawOpenAI(t)
	default:
		return string(rapid.SampledFrom(fixtures[string(f)]).Draw(t, "fixture"))
	}
}

// A9: items of OpenAI's Agents SDK are refused by name, with what to send in their place. Their
// ids would be lost, and their calls taken as others.
func TestAgentsItems(t *testing.T) {
	for _, f := range []Format{Responses, OpenAI} {
		for _, raw := range []codec.Raw{
			codec.Raw(`{"type":"function_call_result","name":"f","callId":"call_1","status":"completed","output":{"type":"text","text":"x"}}`),
			codec.Raw(`{"type":"function_call","id":"fc_1","callId":"call_1","name":"f","arguments":"{}","status":"completed"}`),
			codec.Raw(`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","providerData":{}}`),
			codec.Raw(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}],"providerData":{"id":"m"}}`),
			codec.Raw(`{"type":"tool_call_item","rawItem":{"type":"function_call","callId":"c","name":"f","arguments":"{}"}}`),
			codec.Raw(`{"type":"tool_call_output_item","raw_item":{"type":"function_call_output","call_id":"c","output":"x"},"output":"x"}`),
			codec.Raw(`{"type":"hosted_tool_call","name":"web_search_call","arguments":"{}","status":"completed"}`),
		} {
			_, err := f.ReadNew([]codec.Raw{raw})
			if err == nil || CodeOf(err) != CodeForeignDialect || !strings.Contains(err.Error(), "Agents SDK") || !strings.Contains(err.Error(), "openai-responses") {
				t.Errorf("%s: %s: %v", f, raw, err)
			}
		}
	}
}

// A9: a member that no dialect defines is content: its message is none without content, is
// written with it, and counts for it.
func TestUnknownMembers(t *testing.T) {
	for f, raw := range map[Format]string{
		OpenAI:    `{"role":"user","content":"","user_input_multi_content":[{"type":"text","text":"Look at this."}]}`,
		AISDK:     `{"role":"user","content":"","user_input_multi_content":[{"type":"text","text":"Look at this."}]}`,
		Responses: `{"role":"user","content":"","parts_of_later":[{"type":"text","text":"Look at this."}]}`,
		NeuroLink: `{"role":"user","content":"","attachments":[{"name":"a.png"}]}`,
	} {
		m, err := f.Read(codec.Raw(raw))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(m.Parts); n == 0 || m.Parts[n-1].Kind != dialect.PartOther {
			t.Errorf("%s: %+v", f, m.Parts)
		}
		m.Edited = true
		out, err := f.Write(m)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range codec.Members(codec.Raw(raw)) {
			if name != "content" && name != "role" && !strings.Contains(string(out), string(v)) {
				t.Errorf("%s: %s is written as %s", f, raw, out)
			}
		}
		m, err = f.Read(codec.Raw(strings.Replace(raw, `""`, `"Hi."`, 1)))
		if err != nil || m.Extra.Units == 0 || len(m.Parts) != 1 {
			t.Errorf("%s: beside a text: %+v, %v", f, m, err)
		}
	}
}
