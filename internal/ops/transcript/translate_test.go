package transcript

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
)

// Instructions in several blocks are one text, as every dialect takes it.
func TestTranslateInstructions(t *testing.T) {
	in := []codec.Raw{codec.Raw(`{"type":"message","role":"developer","content":[{"type":"input_text","text":"One."},{"type":"input_text","text":"Two."}]}`)}
	got, err := NewTranslator(events.Responses, events.AISDK).Messages(in)
	if err != nil || len(got) != 1 || string(got[0]) != `{"role":"system","content":"One.\nTwo."}` {
		t.Errorf("%s, %v", got, err)
	}
}

// A session in any other dialect is valid for its provider, and has the same calls, results
// and texts.
func TestTranslate(t *testing.T) {
	messages := []codec.Raw{
		codec.Raw(`{"role":"user","content":"Fix it."}`),
		codec.Raw(`{"role":"assistant","content":[{"type":"thinking","thinking":"Look.","signature":"s"},` +
			`{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}},` +
			`{"type":"tool_use","id":"t2","name":"bash","input":{"command":"ls"}}]}`),
		codec.Raw(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"b"},` +
			`{"type":"tool_result","tool_use_id":"t1","content":"a","is_error":true},{"type":"text","text":"Go on."}]}`),
		codec.Raw(`{"role":"assistant","content":"Done."}`),
	}
	data, err := codec.Marshal(payload{V: 1, ID: "i", Turn: 1, Format: events.Anthropic, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	s := Session{Name: "s", Format: events.Anthropic, Turns: []Turn{{Number: 1, Payload: data, Messages: messages}}}
	want := []string{
		"Fix it.", "I look.", `t1 read{"path":"a"}`, `t2 bash{"command":"ls"}`, "t2 b", "t1 a", "Go on.", "Done.",
	}
	for _, f := range events.Formats() {
		got, err := s.As(f)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if bad := validate.Messages(f, got.Turns[0].Messages); len(bad) > 0 {
			t.Errorf("%s: %v in %s", f, bad, got.Turns[0].Messages)
		}
		turn, err := events.DecodeTurn(got.Turns[0].Payload)
		if err != nil || turn.Format != f || len(turn.Messages) != len(got.Turns[0].Messages) {
			t.Fatalf("%s: %+v, %v", f, turn, err)
		}
		msgs, err := f.ReadNew(turn.Messages)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		var contents []string
		for _, m := range msgs {
			for _, p := range m.Parts {
				switch p.Kind {
				case dialect.PartText:
					contents = append(contents, p.Content())
				case dialect.PartCall:
					contents = append(contents, p.CallID+" "+p.Tool+string(p.Args))
				case dialect.PartResult:
					contents = append(contents, p.CallID+" "+p.Content())
				}
			}
		}
		if diff := cmp.Diff(want, contents); diff != "" {
			t.Errorf("%s: %s", f, diff)
		}
	}
}
