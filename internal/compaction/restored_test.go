package compaction_test

import (
	"slices"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
)

// restoredOf stores a ledger, and reads it back.
func restoredOf(t *testing.T, l *compaction.Ledger) *compaction.Ledger {
	t.Helper()
	rows, err := stored.Rows(l)
	if err != nil {
		t.Fatal(err)
	}
	out, err := stored.ReadLedger(l.Address, rows)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// P3, P4: a message that its sender hides has no entry, and counts in the digest of the session also after a restart:
// the next turn on a base is taken.
func TestHiddenMessagesAfterRestart(t *testing.T) {
	shown, hidden := object{"role": "user", "content": "shown"}, object{"role": "user", "content": "hidden", "condenseParent": "c"}
	a := newAgent(t, defaultConfig(t))
	a.publish(object{"turn": 1, "format": events.NeuroLink, "messages": []object{shown, hidden}})
	a.publish(object{"turn": 2, "messages": []object{hidden, hidden}})
	a.publish(object{"turn": 4, "messages": []object{shown, hidden}}) // it waits for turn 3
	base := func(l *compaction.Ledger) object {
		chain := l.Chain()
		last := chain[len(chain)-1]
		return object{"turn": len(chain), "digest": last.Whole.String()}
	}
	want := a.ledger
	for i := range 2 {
		restored := restoredOf(t, want)
		if got, want := restored.Chain(), want.Chain(); !slices.Equal(got, want) {
			t.Fatalf("restart %d: the turns are\n%v\nwant\n%v", i, got, want)
		}
		turn := object{"v": 2, "turn": want.LastTurn() + 1, "expect": base(want), "messages": []object{shown}}
		a.ledger = restored
		if outs := a.publish(turn); len(outs) > 0 || restored.LastTurn() < 4 {
			t.Fatalf("restart %d: after %d turns %v", i, restored.LastTurn(), outs)
		}
		want = restored
	}
}

// P4: a turn on a base that waits for the turns before it counts its usage in the same way after a restart.
func TestParkedBaseAfterRestart(t *testing.T) {
	a := newAgent(t, defaultConfig(t))
	text := func(role dialect.Role, s string) []object { return []object{{"role": role, "content": s}} }
	a.publish(object{"turn": 1, "format": events.OpenAI, "messages": text(dialect.RoleUser, "hello")})
	whole := a.ledger.Chain()[0].Whole.String()
	answer := object{
		"v": 2, "turn": 3, "expect": object{"turn": 1, "digest": whole}, "messages": text(dialect.RoleAssistant, "a long answer of the model to the question"),
		"usage": object{"prompt_tokens": 500, "completion_tokens": 40},
	}
	a.publish(answer)
	kept := a.ledger
	restored := restoredOf(t, kept)
	missing := object{"turn": 2, "messages": text(dialect.RoleUser, "and then?")}
	for _, l := range []*compaction.Ledger{kept, restored} {
		a.ledger = l
		a.publish(missing)
		if l.LastTurn() != 3 {
			t.Fatalf("%d turns", l.LastTurn())
		}
	}
	if got, want := restored.Calibration(), kept.Calibration(); got != want || restored.Budget() != kept.Budget() {
		t.Errorf("after a restart: %s, %+v\nwithout: %s, %+v", got, restored.Budget(), want, kept.Budget())
	}
}
