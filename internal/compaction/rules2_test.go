package compaction_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// E6: what was published under rules 2 is applied as it was decided then. A
// turn whose results have no ids was taken, and stays; a usage that no reader recognised then
// does not count, though it can be read now.
func TestOutcomesOfRules2(t *testing.T) {
	p := newPlayer(t, defaultConfig(t))
	at := events.Address{Tenant: "default", Session: "old"}
	event := func(seq compaction.Seq, payload string) logged {
		return logged{Seq: seq, Kind: events.KindTurn, Tenant: at.Tenant, Session: at.Session, Payload: payload}
	}
	p.apply(event(1, `{"turn":1,"messages":[{"role":"user","content":"one"},{"role":"tool","content":"`+strings.Repeat("x", 400)+`"},{"role":"assistant","content":"a"}]}`), nil)
	unread := event(2, `{"turn":2,"usage":{"inputTokens":9000,"outputTokens":3},"messages":[{"role":"user","content":"two"},{"role":"assistant","content":"b"}]}`)
	p.apply(unread, []emitted{{Seq: 2, Kind: events.KindRejected, Body: events.Raw(`{"v":1,"id":"r","config":"0011223344556677",` +
		`"caused_by":{"seq":2},"seq":2,"kind":"turn","code":"usage_unknown","message":"?"}`)}})
	l := p.ledger(at)
	if l.LastTurn() != 2 || len(l.Entries()) != 5 {
		t.Errorf("turn %d with %d entries", l.LastTurn(), len(l.Entries()))
	}
	if c := l.Budget().Breakdown.Correction; c != 0 {
		t.Errorf("a usage that was emitted not to count corrects by %d", c)
	}
	view, _, _ := l.View()
	if raw := p.render(view); len(raw) != 6 { // with the call that was made up then
		t.Errorf("%d messages:\n%s", len(raw), lines(raw))
	}
	// The same events are decided otherwise now.
	fresh := newPlayer(t, defaultConfig(t))
	outs, _ := fresh.decide(event(1, `{"turn":1,"messages":[{"role":"tool","content":"x"}]}`))
	if r, ok := outs[0].Body.(*events.Rejected); !ok || r.Code != events.CodeMissingCallID || fresh.ledger(at).HasTurns() {
		t.Errorf("decided %+v", outs)
	}
}
