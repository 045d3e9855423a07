package compaction_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/validate"
)

// E6: an outcome is a fact, whatever rules made it. Under the rules of
// testdata/recorded.jsonl outcomes have no request, correction, direction or way back.
// They are applied unchanged: today's rules would call the summary stale.
func TestRecordedOutcomes(t *testing.T) {
	recorded := byEvent(readLines[emitted](t, filepath.Join("testdata", "recorded.jsonl")))
	p := newPlayer(t, defaultConfig(t))
	at := events.Address{Tenant: "default", Session: "recorded"}
	for i, n := range []int{0, 1, 51, 3} { // 51 reads the file of 1
		body := object{"turn": i + 1, "messages": messages(events.OpenAI, round(n)...), "format": events.OpenAI}
		e := logged{Seq: measure.Seq(i + 1), Kind: events.KindTurn, Tenant: at.Tenant, Session: at.Session, Payload: string(raws(body)[0])}
		p.apply(e, recorded[e.Seq])
	}
	p.apply(logged{
		Seq: 5, Kind: events.KindSummary, Tenant: at.Tenant, Session: at.Session,
		Payload: `{"v":1,"id":"summary-1","job":"job-1","text":"They read two files.","record":[],"model":"m"}`,
	}, recorded[5])
	l := p.ledger(at)
	if l.Generation() != 3 || l.LastTurn() != 4 {
		t.Errorf("generation %d, turn %d", l.Generation(), l.LastTurn())
	}
	for gen, want := range [][]string{
		{}, {measure.ClearText, refers}, {measure.ClearText, measure.TruncateText}, {"They read two files."},
	} {
		p.shows(l.ViewAt(int64(gen)), want)
	}
	p.checkpoint()
	p.crash()
	compaction.Apply(p.ledger(at), nil, nil, p.config) // sums follow from the config
	sameLedger(t, l.Dump(), p.ledger(at).Dump())
}

// E6: a turn that was taken stays, though today's rules refuse it: its results have no ids.
func TestRecordedTurn(t *testing.T) {
	p := newPlayer(t, defaultConfig(t))
	at := events.Address{Tenant: "default", Session: "recorded"}
	turn := logged{
		Seq: 1, Kind: events.KindTurn, Tenant: at.Tenant, Session: at.Session,
		Payload: `{"turn":1,"messages":[{"role":"user","content":"one"},{"role":"tool","content":"` + strings.Repeat("x", 400) + `"},{"role":"assistant","content":"a"}]}`,
	}
	p.apply(turn, nil)
	l := p.ledger(at)
	if l.LastTurn() != 1 || len(l.Entries()) != 3 {
		t.Errorf("turn %d with %d entries", l.LastTurn(), len(l.Entries()))
	}
	view := l.View()
	if raw := p.render(view); len(raw) != 4 { // with a call for the result
		t.Errorf("%d messages:\n%s", len(raw), lines(raw))
	}
	fresh := newPlayer(t, defaultConfig(t))
	outs, _ := fresh.decide(turn)
	if r, ok := outs[0].Body.(*events.Rejected); !ok || r.Code != events.CodeMissingCallID || fresh.ledger(at).HasTurns() {
		t.Errorf("decided %+v", outs)
	}
}

// refers is the end of the placeholder of a read that was repeated.
const refers = "refer to latest read below"

// shows checks that a view is valid, and that these texts are in it, once each,
// and no other that compactd puts in place of messages.
func (p *player) shows(v *render.View, texts []string) {
	p.t.Helper()
	raw := p.render(v)
	if bad := validate.Messages(v.Format, raw); len(bad) > 0 {
		p.t.Fatalf("%v in\n%s", bad, lines(raw))
	}
	text := fmt.Sprintf("%s", raw)
	for _, s := range []string{measure.ClearText, measure.TruncateText, refers, "They read two files."} {
		want := 0
		if slices.Contains(texts, s) {
			want = 1
		}
		if got := strings.Count(text, s); got != want {
			p.t.Fatalf("%d of %q, not %d, in\n%s", got, s, want, lines(raw))
		}
	}
}
