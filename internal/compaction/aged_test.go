package compaction_test

import (
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/stored"
)

// A session whose first turns have left the log is covered by later generations
// alone. Its ledger can be stored and read back, and the whole history can be
// sent again, usage of an old generation included.
func TestOutcomesOutliveTheirTurns(t *testing.T) {
	c := configOf(t, withoutSummaries())
	l := compaction.NewLedger(events.Address{Tenant: "default", Session: "aged"})
	take := func(seq measure.Seq, payload string, recorded ...compaction.Outcome) []compaction.Outcome {
		t.Helper()
		turn, _, err := stored.ReadTurn(new(compaction.Config), l, []byte(payload), seq)
		if err != nil {
			t.Fatal(err)
		}
		if recorded != nil {
			compaction.Apply(l, turn, recorded, c)
			return recorded
		}
		outs, next := compaction.Decide(l, turn, c)
		next.Install(l)
		return outs
	}
	take(101, `{"turn":9,"messages":[{"role":"user","content":"still here"}]}`,
		compaction.Outcome{Kind: events.KindCompacted, Body: &events.Compacted{Generation: 5, Compacted: true, TokensSaved: 700, Budget: events.Budget{Level: events.LevelOK}}})
	rows, err := stored.Rows(l)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = stored.ReadLedger(l.Address, rows); err != nil {
		t.Fatal(err)
	}
	outs := take(102, `{"replaces_from":1,"generation":0,"usage":{"input_tokens":900,"output_tokens":5},
		"messages":[{"role":"user","content":"all of it"},{"role":"assistant","content":"yes"}]}`)
	if len(outs) != 0 || l.LastTurn() != 1 || l.Generation() != 5 {
		t.Errorf("emitted %v; turn %d, generation %d", outs, l.LastTurn(), l.Generation())
	}
}
