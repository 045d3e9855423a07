package decide

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// E6: a recorded rejection stands. Its turn is not taken when the log is applied again, though
// today's rules would take it, and the next turn of its session, decided now, is the first.
func TestRecordedRejection(t *testing.T) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	d := New(config)
	d.Store = rows{}
	a := events.Address{Tenant: events.DefaultTenant, Session: strings.Repeat("s", 65)}
	turn := func(seq measure.Seq) Event {
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

// A session that ends, or begins again, takes nothing off what its agents did again after compactions.
func TestRepeatedNeverFalls(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens = 0, 0
	config, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	a := events.Address{Tenant: events.DefaultTenant, Session: "s"}
	for _, last := range []struct {
		kind events.Kind
		data string
	}{
		{events.KindEnd, `{"v":1}`},
		{events.KindForget, `{"v":1}`},
		{events.KindTurn, `{"v":1,"turn":1,"messages":[{"role":"user","content":"again"}]}`},
		{events.KindTurn, `{"v":1,"turn":9,"replaces_from":1,"messages":[{"role":"user","content":"other"}]}`},
	} {
		d := New(config)
		d.Store = rows{}
		var seq measure.Seq
		process := func(kind events.Kind, data string) {
			seq++
			d.Process(Event{Location: events.Location{Kind: kind, Address: a}, Seq: seq, Time: int64(seq), Data: []byte(data)})
		}
		var all measure.Repeated
		for i := 1; i <= 12; i++ {
			process(events.KindTurn, fmt.Sprintf(`{"v":1,"turn":%d,"format":"anthropic","model":{"provider":"anthropic","context_window":8000,"max_output_tokens":1000},"messages":[`+
				`{"role":"user","content":"read it"},`+
				`{"role":"assistant","content":[{"type":"tool_use","id":"t%[1]d","name":"read","input":{"path":"%[3]d.go"}}]},`+
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%[1]d","content":%[2]q}]}]}`, i, strings.Repeat("some text ", 800), i%6))
			all = all.Plus(d.Repeated)
		}
		if all == (measure.Repeated{}) {
			t.Fatal("the agent did nothing again")
		}
		process(last.kind, last.data)
		if d.Repeated.Rereads < 0 || d.Repeated.Reruns < 0 {
			t.Errorf("%s %s: %+v", last.kind, last.data, d.Repeated)
		}
	}
}
