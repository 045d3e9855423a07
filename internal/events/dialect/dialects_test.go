package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/testkit/dialecttest"

	"github.com/google/go-cmp/cmp"
)

// Each item, content and part is read as what it is.
func TestFixturesAreRead(t *testing.T) {
	const args = ` args={"path":"a.go"}`
	want := map[Format][]string{
		Responses: {
			`user: text "Read a.go."`, `user: text "And this?", image`, `assistant: thinking`, `assistant: call read_file id=call_1` + args,
			`tool: result id=call_1 "package a"`, `assistant: other`, `assistant: call code id=call_2 args="print(1)"`, `tool: result id=call_2 "1"`,
			`assistant: call local_shell id=call_3 args={"type":"exec","command":["ls"]}`, `tool: result "a.go"`, `assistant: other`, `assistant: other`,
			`assistant: thinking "First.\nThen.\nSo."`, `assistant: call shell id=call_4 args={"commands":["ls"],"timeout_ms":1000}`,
			`tool: result id=call_4 "{\"stdout\":\"a.go\",\"stderr\":\"\",\"outcome\":{\"type\":\"exit\",\"exit_code\":0}}"`,
			`assistant: call apply_patch id=call_5 args={"type":"update_file","path":"a.go","diff":"@@"}`, `tool: result id=call_5 "no such file" failed`,
			`assistant: call computer id=call_6 args={"type":"screenshot"}`,
			`tool: result id=call_6 images=1 locked`,
			`assistant: call echo id=mcpr_1 args={}`, `tool: result id=mcpr_1 locked`, `assistant: call look id=call_7 args={}`,
			`tool: result id=call_7 "a picture" images=1`, `user: text "Listen.", image`, `assistant: other`, `system: other locked`, `assistant: text "Done."`,
		},
		Gemini: {
			`user: text "Read a.go."`, `assistant: call read_file` + args, `tool: result read_file "package a"`, `user: image, text "And this?"`,
			`user: text "No role."`, `assistant: other, other`, `assistant: thinking "Let me see.", thinking locked, call look id=f1 args={}`,
			`tool: result look id=f1 "no such file" images=1 failed`, `user: result n "{\"a\":1,\"b\":2}", text "And this?"`, `assistant: text "Done."`,
		},
		Bedrock: {
			`user: text "Read a.go."`, `assistant: thinking "The file.", text "I read it.", call read_file id=tooluse_1` + args,
			`user: result id=tooluse_1 "package a"`, `user: image`, `user: image, text "And this?"`,
			`assistant: other, other, call look id=t3 args={}, thinking`, `user: result id=t3 "{\"a\":1}\nb" images=1 failed`, `assistant: text "Done."`,
		},
		AISDK: {
			`system: text "You are terse."`, `user: text "Read a.go."`, `assistant: thinking "The file.", call readFile id=c1` + args,
			`tool: result readFile id=c1 "package a"`, `user: image`, `user: image`, `assistant: text "May I?", other`,
			`assistant: other, other, call look id=c3 args={}, call old id=c4 args={}`,
			`tool: result look id=c3 "a picture" images=1, result old id=c4 "{\"n\":1}" failed, other`, `assistant: text "Done."`,
		},
	}
	all := dialecttest.Fixtures(t)
	for f, lines := range want {
		var got []string
		for _, raw := range all[string(f)] {
			m, err := f.Read(raw)
			if err != nil {
				t.Fatalf("%s: %s: %v", f, raw, err)
			}
			for i := range m.Parts { // of JSON only the tokens count
				m.Parts[i].Args = compact(m.Parts[i].Args)
				if p := &m.Parts[i]; strings.HasPrefix(p.Text, "{") {
					head, rest, more := strings.Cut(p.Text, "\n")
					if p.Text = string(compact(codec.Raw(head))); more {
						p.Text += "\n" + rest
					}
				}
			}
			g := dialecttest.Gists(m)
			got = append(got, g[0]+": "+strings.Join(g[1:], ", "))
		}
		if d := cmp.Diff(lines, got); d != "" {
			t.Errorf("%s: %s", f, d)
		}
	}
}

func compact(raw codec.Raw) codec.Raw {
	if raw == nil {
		return nil
	}
	out := slices.Clone(raw)
	_ = out.Compact()
	return out
}

// An edit writes a text in the place of a result's content, arguments in the place of a
// call's, in the form of the dialect. Of an item that was edited the id goes.
func TestEdited(t *testing.T) {
	for _, test := range []struct {
		format      Format
		raw, edited string
	}{
		{Responses, `{"type":"function_call_output","id":"o","call_id":"c","output":[{"type":"input_text","text":"a"}]}`, `{"type":"function_call_output","call_id":"c","output":"x"}`},
		{
			Responses, `{"type":"shell_call_output","call_id":"c","output":[],"max_output_length":9}`,
			`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}],"max_output_length":9}`,
		},
		{Responses, `{"type":"local_shell_call_output","id":"o","output":"a"}`, `{"type":"local_shell_call_output","id":"o","output":"x"}`},
		{
			Responses, `{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"u"}}`,
			`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"u"}}`,
		},
		{Responses, `{"type":"message","id":"m","role":"user","content":[{"type":"input_text","text":"a"}]}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}`},
		{Responses, `{"role":"user","content":"a"}`, `{"role":"user","content":"x"}`},
		{
			Gemini, `{"role":"user","parts":[{"functionResponse":{"id":"i","name":"n","response":{"content":[1],"b":2},"parts":[{}]}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"i","name":"n","response":{"output":"x"}}}]}`,
		},
		{Gemini, `{"role":"user","parts":[{"function_response":{"name":"n","response":{"error":"a"}}}]}`, `{"role":"user","parts":[{"function_response":{"name":"n","response":{"error":"x"}}}]}`},
		{
			Bedrock, `{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"json":{}}],"status":"error"}},{"cachePoint":{"type":"default"}}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"text":"x"}],"status":"error"}},{"cachePoint":{"type":"default"}}]}`,
		},
		{Bedrock, `{"role":"user","content":[{"text":"a"}]}`, `{"role":"user","content":[{"text":"x"}]}`},
		{
			AISDK, `{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"n","output":{"type":"error-json","value":{}},"providerOptions":{"a":{}}}]}`,
			`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"n","output":{"type":"error-text","value":"x"},"providerOptions":{"a":{}}}]}`,
		},
		{
			AISDK, `{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"n","result":{"a":1}}]}`,
			`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"n","result":"x"}]}`,
		},
		{AISDK, `{"role":"user","content":"a"}`, `{"role":"user","content":"x"}`},
	} {
		m, err := test.format.Read(codec.Raw(test.raw))
		if err != nil {
			t.Fatal(err)
		}
		m.SetText(0, "x")
		if out, err := test.format.Write(m); err != nil || string(out) != test.edited {
			t.Errorf("%s: %s, %v", test.format, out, err)
		}
	}
	for f, test := range map[Format][2]string{
		Gemini:  {`{"role":"model","parts":[{"functionCall":{"name":"n","args":{"a":1}}}]}`, `{"role":"model","parts":[{"functionCall":{"name":"n","args":{"b":2}}}]}`},
		Bedrock: {`{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"n","input":{"a":1}}}]}`, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"n","input":{"b":2}}}]}`},
		AISDK: {
			`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"n","input":{"a":1}}]}`,
			`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"n","input":{"b":2}}]}`,
		},
	} {
		m, err := f.Read(codec.Raw(test[0]))
		if err != nil {
			t.Fatal(err)
		}
		m.Edited = true
		m.Parts[0].SetArgs(codec.Raw(`{"b":2}`))
		if out, err := f.Write(m); err != nil || string(out) != test[1] {
			t.Errorf("%s: %s, %v", f, out, err)
		}
	}
}

// compactd makes a text of the user, a call for a result that has none, and a result for
// a call that has none, in the form of its kind. Nothing of it has an id.
func TestMade(t *testing.T) {
	text := Message{Role: RoleUser, Parts: []Part{{Text: "a"}}}
	call := func(of string) Message {
		return Message{Role: RoleAssistant, Parts: []Part{{Text: "a"}, {Kind: PartCall, CallID: "c", Tool: "n", Other: codec.Raw(of)}}}
	}
	result := func(r Role, of string) Message {
		return Message{Role: r, Parts: []Part{{Kind: PartResult, CallID: "c", Tool: "n", Text: "gone", Other: codec.Raw(of)}}}
	}
	for _, test := range []struct {
		format Format
		m      Message
		want   string
	}{
		{Responses, text, `{"type":"message","role":"user","content":"a"}`},
		{Responses, call(`{"type":"function_call_output"}`), `{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}`},
		{Responses, call(`{"type":"custom_tool_call_output"}`), `{"type":"custom_tool_call","call_id":"c","name":"n","input":""}`},
		{Responses, call(`{"type":"shell_call_output"}`), `{"type":"shell_call","call_id":"c","action":{"commands":[]}}`},
		{Responses, call(`{"type":"mcp_approval_response"}`), `{"type":"mcp_approval_request","id":"c","name":"n","server_label":"n","arguments":"{}"}`},
		{Responses, result(RoleTool, `{"type":"function_call"}`), `{"type":"function_call_output","call_id":"c","output":"gone"}`},
		{Responses, result(RoleTool, `{"type":"custom_tool_call"}`), `{"type":"custom_tool_call_output","call_id":"c","output":"gone"}`},
		{Responses, result(RoleTool, `{"type":"apply_patch_call"}`), `{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"gone"}`},
		{Responses, result(RoleTool, `{"type":"mcp_approval_request"}`), `{"type":"mcp_approval_response","approval_request_id":"c","approve":false}`},
		{Responses, result(RoleTool, `{"type":"tool_search_call"}`), `{"type":"tool_search_output","call_id":"c","tools":[]}`},
		{Gemini, text, `{"role":"user","parts":[{"text":"a"}]}`},
		{Gemini, call(`{}`), `{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"c","name":"n","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}`},
		{Gemini, result(RoleTool, `{}`), `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"n","response":{"output":"gone"}}}]}`},
		{Bedrock, text, `{"role":"user","content":[{"text":"a"}]}`},
		{Bedrock, call(`{}`), `{"role":"assistant","content":[{"text":"a"},{"toolUse":{"toolUseId":"c","name":"n","input":{}}}]}`},
		{Bedrock, result(RoleUser, `{}`), `{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"gone"}]}}]}`},
		{AISDK, text, `{"role":"user","content":"a"}`},
		{AISDK, call(`{}`), `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool-call","toolCallId":"c","toolName":"n","input":{}}]}`},
		{AISDK, result(RoleTool, `{}`), `{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"n","output":{"type":"text","value":"gone"}}]}`},
	} {
		if out, err := test.format.Write(test.m); err != nil || string(out) != test.want {
			t.Errorf("%s: %s, %v", test.format, out, err)
		}
	}
}

// A document of Converse whose text was blank gets another one: it is refused alone.
func TestDocumentHasAText(t *testing.T) {
	m, err := Bedrock.Read(codec.Raw(`{"role":"user","content":[{"document":{"name":"d","source":{}}},{"text":" "}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m.Parts, m.Edited = m.Parts[:1], true
	out, err := Bedrock.Write(m)
	if want := `{"role":"user","content":[{"document":{"name":"d","source":{}}},{"text":"(document)"}]}`; err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}
