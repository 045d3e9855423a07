package compaction_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
)

// E6: a ledger that was stored under rules 3 has other hashes of its turns. It goes on as
// one that was made of the log: turns that are sent again are recognised, the result of
// the job that was pending is taken, and later outcomes lead to the same history.
func TestLedgerOfRules3(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "rules-3-ledger.json")) // written by 0.1.0, after event seq
	if err != nil {
		t.Fatal(err)
	}
	var old struct {
		Seq             compaction.Seq
		Tenant, Session string
		Rows            []compaction.Row
	}
	if err := json.Unmarshal(data, &old); err != nil {
		t.Fatal(err)
	}
	at := events.Address{Tenant: old.Tenant, Session: old.Session}
	g := readGolden(t, goldenDir(3))
	lines := byEvent(g.emitted)
	whole, restored := newPlayer(t, defaultConfig(t)), newPlayer(t, defaultConfig(t))
	var again []logged // turns that the stored ledger has
	later := 0
	for _, e := range g.log {
		if e.address() != at {
			continue
		}
		whole.apply(e, lines[e.Seq])
		if e.Seq <= old.Seq {
			restored.texts[e.Seq] = whole.texts[e.Seq]
			if e.Kind == events.KindTurn {
				again = append(again, e)
			}
		}
		if e.Seq == old.Seq {
			if restored.ledgers[at], err = stored.ReadLedger(at, old.Rows); err != nil {
				t.Fatal(err)
			}
			restored.stored[at] = map[string][]byte{}
			for _, r := range old.Rows {
				restored.stored[at][r.Name] = r.Data
			}
			restored.sentAgain(again)
		}
		if e.Seq > old.Seq {
			restored.apply(e, lines[e.Seq])
			if later++; later == 2 { // with rows of both forms
				restored.checkpoint()
				restored.crash()
				restored.sentAgain(again)
			}
		}
	}
	want, _, _ := whole.ledger(at).View()
	got, _, _ := restored.ledger(at).View()
	if len(again) < 5 || whole.hash(want) != restored.hash(got) || whole.ledger(at).Budget() != restored.ledger(at).Budget() {
		t.Errorf("after %d turns the view has %d entries, of the log %d", len(again), len(got.Entries), len(want.Entries))
	}
}

// sentAgain publishes turns that were taken once more: as they were, and with another
// text.
func (p *player) sentAgain(turns []logged) {
	p.t.Helper()
	taken := 0
	for _, e := range turns {
		if outs, _ := p.decide(e); len(outs) == 0 {
			taken++
		}
		e.Payload = strings.Replace(e.Payload, `"content":"`, `"content":"!`, 1)
		outs, _ := p.decide(e)
		if len(outs) != 1 {
			p.t.Fatalf("another turn at %d has %d outcomes", e.Seq, len(outs))
		}
		if r, ok := outs[0].Body.(*events.Rejected); !ok || r.Code != events.CodeTurnConflict {
			p.t.Fatalf("another turn at %d is %+v", e.Seq, outs[0].Body)
		}
	}
	if taken != len(turns) {
		p.t.Fatalf("%d of %d turns were recognised", taken, len(turns))
	}
}
