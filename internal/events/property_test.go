package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// elsewhere compares parts wherever they were read.
var elsewhere = cmpopts.IgnoreFields(dialect.Part{}, "Source")

// text draws the inside of a JSON string, with all that agents send in one.
func text(t *rapid.T) string {
	piece := rapid.SampledFrom([]string{"a", " ", "é", "😀", `\n`, `\"`, `\\`, `\/`, `\u0041`, `\ud83d\ude00`, `\ud83d`, `\udc00`, "{", "]", "\xff"})
	return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
}

func space(t *rapid.T) string { return rapid.SampledFrom([]string{"", " ", "\n  "}).Draw(t, "space") }

// unknown draws members that no dialect has, a duplicate among them.
func unknown(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", `,"x":1.0E2`, `,"x":{"y":[ 1 ]},"x":null`, `,"cache_control" : {"type":"ephemeral"}`, `,"\u0078":-0`}).Draw(t, "unknown")
}

// args draws an object with a key twice.
func args(t *rapid.T) string { return fmt.Sprintf(`{%s"p":"%s","p":[1.50,{}]}`, space(t), text(t)) }

func drawAnthropicBlock(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "block") {
	case 0:
		return fmt.Sprintf(`{"type":"text",%s"text":"%s"%s}`, space(t), text(t), unknown(t))
	case 1:
		return fmt.Sprintf(`{"type":"tool_use","id":"t","name":"n","input":%s%s}`, args(t), unknown(t))
	case 2:
		return fmt.Sprintf(`{"tool_use_id":"t","type":"tool_result","content":"%s"%s}`, text(t), unknown(t))
	case 3:
		return fmt.Sprintf(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"%s"},{"type":"image"}]%s}`, text(t), unknown(t))
	case 4:
		return fmt.Sprintf(`{"type":"thinking","thinking":"%s","signature":"s"}`, text(t))
	default:
		return fmt.Sprintf(`{"type":"later","data":%s}`, args(t))
	}
}

func drawAnthropic(t *rapid.T) string {
	role := rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role")
	if rapid.Bool().Draw(t, "string") {
		return fmt.Sprintf(`{"role":"%s",%s"content":"%s"%s}`, role, space(t), text(t), unknown(t))
	}
	var blocks []string
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		blocks = append(blocks, drawAnthropicBlock(t))
	}
	return fmt.Sprintf(`{"role":"%s","content":[%s]%s}`, role, strings.Join(blocks, space(t)+","), unknown(t))
}

func drawOpenAI(t *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(t, "message") {
	case 0:
		return fmt.Sprintf(`{"role":"user",%s"content":"%s"%s}`, space(t), text(t), unknown(t))
	case 1:
		return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"%s"%s},{"type":"image_url"}]%s}`, text(t), unknown(t), unknown(t))
	case 2:
		return fmt.Sprintf(`{"content":null,"role":"assistant","tool_calls":[%s{"id":"c","type":"function","function":{"name":"n","arguments":%s}%s}]%s}`,
			space(t), codec.Quote(args(t)), unknown(t), unknown(t))
	default:
		return fmt.Sprintf(`{"role":"tool","tool_call_id":"c","content":"%s"%s}`, text(t), unknown(t))
	}
}

func drawNeuroLink(t *rapid.T) string {
	switch rapid.IntRange(0, 2).Draw(t, "message") {
	case 0:
		return fmt.Sprintf(`{"id":"m","role":"user",%s"content":"%s"%s}`, space(t), text(t), unknown(t))
	case 1:
		return fmt.Sprintf(`{"id":"m","role":"tool_call","content":"%s","args":%s%s}`, text(t), args(t), unknown(t))
	default:
		return fmt.Sprintf(`{"id":"m","role":"tool_result","content":"%s","metadata":{"y":1}%s}`, text(t), unknown(t))
	}
}

var generators = map[Format]func(*rapid.T) string{Anthropic: drawAnthropic, OpenAI: drawOpenAI, NeuroLink: drawNeuroLink}

// decoded draws a turn of a dialect and decodes it.
func decoded(t *rapid.T, f Format) []codec.Raw {
	var msgs []string
	for range rapid.IntRange(1, 4).Draw(t, "messages") {
		msgs = append(msgs, generators[f](t))
	}
	turn, err := DecodeTurn([]byte(`{"messages":[` + strings.Join(msgs, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(turn.Messages) != len(msgs) {
		t.Fatalf("%d messages became %d", len(msgs), len(turn.Messages))
	}
	for i, m := range msgs {
		if want := string(codec.Clean(codec.Raw(m))); string(turn.Messages[i]) != want {
			t.Fatalf("message %d: %s, want %s", i, turn.Messages[i], want)
		}
	}
	return turn.Messages
}

// An unedited message is written as the bytes that came; one that is rebuilt
// from unchanged parts has the same content.
func TestReadWriteIsIdentity(t *testing.T) {
	for f := range generators {
		t.Run(string(f), rapid.MakeCheck(func(t *rapid.T) {
			in := decoded(t, f)
			msgs, err := f.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			out, err := writeAll(f, msgs)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(in, out); d != "" {
				t.Fatal(d)
			}
			for i := range msgs {
				msgs[i].Edited = true
			}
			written, err := writeAll(f, msgs)
			if err != nil {
				t.Fatal(err)
			}
			again, err := f.ReadAll(written)
			if err != nil {
				t.Fatal(err)
			}
			for i := range again {
				if d := cmp.Diff(msgs[i].Parts, again[i].Parts, elsewhere); d != "" {
					t.Fatalf("%s: %s", in[i], d)
				}
				checkMembers(t, in[i], written[i], "content", "metadata")
			}
		}))
	}
}

// Editing the text of one part changes that part, and no byte of another.
func TestEditChangesOnePart(t *testing.T) {
	for f := range generators {
		t.Run(string(f), rapid.MakeCheck(func(t *rapid.T) {
			for _, raw := range decoded(t, f) {
				m, err := f.Read(raw)
				if err != nil {
					t.Fatal(err)
				}
				var at []int
				for i, p := range m.Parts {
					if p.Kind == dialect.PartText || p.Kind == dialect.PartResult {
						at = append(at, i)
					}
				}
				if len(at) == 0 {
					continue
				}
				edited, i := m.Clone(), rapid.SampledFrom(at).Draw(t, "part")
				placeholder := rapid.String().Draw(t, "placeholder")
				edited.SetText(i, placeholder)
				out, err := f.Write(edited)
				if err != nil {
					t.Fatal(err)
				}
				if codec.Check(out) != nil {
					t.Fatalf("not JSON: %s", out)
				}
				got, err := f.Read(out)
				if err != nil {
					t.Fatal(err)
				}
				if f == NeuroLink && placeholder == "" && len(got.Parts) < len(m.Parts) {
					continue // a call whose words are gone
				}
				if got.Parts[i].Text != placeholder || got.Parts[i].CallID != m.Parts[i].CallID || got.Parts[i].Images != 0 {
					t.Fatalf("part %d of %s: %+v, want text %q", i, raw, got.Parts[i], placeholder)
				}
				got.Parts[i], m.Parts[i] = dialect.Part{}, dialect.Part{}
				if d := cmp.Diff(m.Parts, got.Parts, elsewhere); d != "" {
					t.Fatalf("%s: %s", raw, d)
				}
				checkMembers(t, raw, out, "content", "metadata")
			}
		}))
	}
}

// Texts that are put into a message as it came make the message that is built again from
// its parts.
func TestEditInPlace(t *testing.T) {
	for f := range generators {
		t.Run(string(f), rapid.MakeCheck(func(t *rapid.T) {
			for _, raw := range decoded(t, f) {
				m, err := f.Read(raw)
				if err != nil {
					t.Fatal(err)
				}
				for i := range m.Parts {
					p := &m.Parts[i] // a text without a block is quoted again where a message is built
					if p.Kind != dialect.PartCall && p.Kind != dialect.PartOther && (p.Raw == nil || rapid.Bool().Draw(t, "edit")) {
						p.SetText(rapid.String().Draw(t, "text"))
					}
				}
				inPlace, err := f.Dialect().Append(nil, &m)
				if err != nil {
					t.Fatal(err)
				}
				m.Edited = true
				built, err := f.Dialect().Append(nil, &m)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(oneWay(t, built), oneWay(t, inPlace)); d != "" {
					t.Fatalf("%s: %s", raw, d)
				}
			}
		}))
	}
}

// oneWay writes a message without white space and needless escapes.
func oneWay(t *rapid.T, raw codec.Raw) string {
	v := raw.Clone()
	if err := v.Format(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// checkMembers compares all members but the named ones, byte for byte.
func checkMembers(t *rapid.T, before, after codec.Raw, but ...string) {
	others := func(raw codec.Raw) []string {
		var out []string
		for name, v := range codec.Members(raw) {
			if !strings.Contains(strings.Join(but, " "), name) {
				out = append(out, name+"="+string(v))
			}
		}
		return out
	}
	want, got := others(before), others(after)
	for i, s := range want {
		if strings.HasPrefix(s, "tool_calls=") && i < len(got) { // white space between elements
			a, _ := codec.ReadArray(codec.Raw(strings.TrimPrefix(s, "tool_calls=")))
			want[i] = "tool_calls=" + string(codec.WriteArray(a))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s: %s", before, d)
	}
}

// A tool's arguments reach the model with keys that occur twice, and with half
// surrogates as U+FFFD.
func TestArgumentsSurvive(t *testing.T) {
	turn, err := DecodeTurn([]byte(`{"messages":[
		{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":"\ud83d","a":1.0}}]},
		{"role":"assistant","tool_calls":[{"id":"t","type":"function","function":{"name":"n","arguments":"{\"a\":\"\\ud83d\",\"a\":1.0}"}}]},
		{"role":"tool_call","tool":"n","args":{"a":"\ud83d","a":1.0}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []Format{Anthropic, OpenAI, NeuroLink} {
		m, err := f.Read(turn.Messages[i])
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Parts[0].Args); got != `{"a":"\ufffd","a":1.0}` {
			t.Errorf("%s: %s", f, got)
		}
	}
}
