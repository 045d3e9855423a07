package compaction_test

import (
	"slices"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// A turn with more messages, or contents in them, than a turn may have is refused, in any dialect. One
// that was taken before there was a bound stays.
func TestTooManyMessages(t *testing.T) {
	calls := msg{role: dialect.RoleAssistant}
	for i := range events.MaxTurnParts + 1 {
		calls.calls = append(calls.calls, callNo(i))
	}
	most := slices.Repeat([]msg{user(0), assistant(0)}, events.MaxTurnMessages/2)
	for _, f := range events.Formats() {
		for name, test := range map[string]struct {
			messages []msg
			refused  bool
		}{"most": {most, false}, "messages": {append(slices.Clone(most), user(0)), true}, "contents": {[]msg{user(0), calls}, true}} {
			a := newAgent(t, defaultConfig(t))
			turn := object{"format": f, "messages": messages(f, test.messages...), "model": object{"context_window": 1 << 30}}
			outs := a.publish(turn)
			if refused := slices.ContainsFunc(outs, isRefused(events.CodeTooManyMessages)); refused != test.refused || refused && a.ledger.LastTurn() != 0 {
				t.Errorf("%s, %s: refused %t at turn %d", f, name, refused, a.ledger.LastTurn())
			}
			in, err := a.read(turn)
			if err != nil {
				t.Fatal(err)
			}
			if compaction.Apply(a.ledger, in, nil, a.config); a.ledger.LastTurn() == 0 {
				t.Errorf("%s, %s: a recorded turn is not taken", f, name)
			}
		}
	}
}

func isRefused(code events.Code) func(compaction.Outcome) bool {
	return func(o compaction.Outcome) bool {
		r, ok := o.Body.(*events.Rejected)
		return ok && r.Code == code
	}
}
