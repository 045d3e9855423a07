package decide

import (
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// E6: a recorded rejection stands. Its turn is not taken when the log is applied again, though
// today's rules would take it, and the next turn of its session, decided now, is the first.
func TestRecordedRejection(t *testing.T) {
	config, err := compaction.NewConfig(compaction.DefaultPolicy(), compaction.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	d := New(config)
	d.Store = rows{}
	a := events.Address{Tenant: events.DefaultTenant, Session: strings.Repeat("s", 65)}
	turn := func(seq compaction.Seq) Event {
		return Event{
			Location: events.Location{Kind: events.KindTurn, Address: a}, Seq: seq, Time: int64(seq),
			Data: []byte(`{"v":1,"turn":1,"model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"user","content":"go on"}]}`),
		}
	}
	rejected := compaction.Outcome{Kind: events.KindRejected, Body: &events.Rejected{Seq: 1, Kind: events.KindTurn, Code: events.CodeBadID}}
	if err := d.ApplyRecorded(turn(1), []compaction.Outcome{rejected}); err != nil {
		t.Fatal(err)
	}
	if l, err := d.Ledger(a); err != nil || l != nil && l.HasTurns() {
		t.Fatalf("a turn that was rejected is taken (%v)", err)
	}
	if outs, _ := d.Process(turn(2)); len(outs) > 0 {
		t.Errorf("now it is rejected: %+v", outs[0].Body)
	}
	if l, err := d.Ledger(a); err != nil || l == nil || l.LastTurn() != 1 {
		t.Errorf("now it is not taken (%v)", err)
	}
}
