package payload

import (
	"bytes"
	"errors"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/observe"
)

// B11: a history that is not valid for its provider is not published, and the reason quotes
// nothing of it. Here the defect is a view without its first message. A message that an agent
// sent is published as it came.
func TestInvalidHistory(t *testing.T) {
	for name, test := range map[string]struct {
		messages string
		drop     int
		invalid  bool
	}{
		"valid":            {`{"role":"user","content":"canary"},{"role":"assistant","content":"canary"}`, 0, false},
		"planted defect":   {`{"role":"user","content":"canary"},{"role":"assistant","content":"canary"}`, 1, true},
		"the agent's own":  {`{"role":"user","content":[{"canary":1}]},{"role":"assistant","content":"canary"}`, 0, false},
		"its own, joined":  {`{"role":"user","content":[{"canary":1}]},{"role":"user","content":"canary"},{"role":"assistant","content":"canary"}`, 0, false},
		"a call of no one": {`{"role":"user","content":"canary"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":"canary"}`, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := events.Address{Tenant: "default", Session: "s"}
			data := []byte(`{"format":"anthropic","messages":[` + test.messages + `]}`)
			r := NewRenderer(nil, 1<<20)
			r.Put(decide.Event{Location: events.Location{Address: a, Kind: events.KindTurn}, Seq: 1, Data: data})
			msgs, err := Texts(events.KindTurn, data)
			if err != nil {
				t.Fatal(err)
			}
			view := &render.View{Format: events.Anthropic}
			for i := test.drop; i < len(msgs); i++ {
				m, err := events.Anthropic.Read(msgs[i].Raw)
				if err != nil {
					t.Fatal(err)
				}
				view.Entries = append(view.Entries, measure.Measure(m, measure.Entry{Seq: 1, Turn: 1, Index: uint32(i)})...)
			}
			out, omitted, err := r.Outcome(t.Context(), nil, a, compaction.Outcome{Kind: events.KindCompacted, Body: &events.Compacted{Compacted: true}, View: view}, 1<<20)
			var got events.Compacted
			if err := codec.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			bad, ok := errors.AsType[*InvalidError](err)
			if ok != test.invalid || got.MessagesOmitted != test.invalid || (omitted == observe.OmittedInvalid) != test.invalid {
				t.Fatalf("omitted %q, %v: %s", omitted, err, out)
			}
			if !ok {
				return
			}
			if bytes.Contains([]byte(bad.Error()), []byte("canary")) || len(got.Notes) != 1 || got.Notes[0].Code != events.CodeInvalidHistory {
				t.Errorf("%v, notes %+v", bad, got.Notes)
			}
		})
	}
}
