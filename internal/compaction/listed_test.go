package compaction_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Every difference between what was published and what is returned is listed: the messages
// in view that no edit names are returned byte for byte, in their order.
func TestEveryChangeIsListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		history := g.anything()
		if g.odds(50, "proper") {
			history = g.proper()
		}
		a := newAgent(t, g.config())
		seen := named{}
		for _, turn := range g.turns(history) {
			for _, o := range a.publish(turn) {
				if c, ok := o.Body.(*events.Compacted); ok && o.View != nil {
					_, changes, err := compaction.RenderListed(o.View, func(s compaction.Seq) ([]events.Message, error) { return a.texts[s], nil })
					if err != nil {
						t.Fatal(err)
					}
					raw, err := a.render(o.View)
					if err != nil {
						t.Fatal(err)
					}
					seen.add(c.Edits)
					unlisted(t, a, o.View, seen.with(c.Edits, changes), raw)
				}
			}
		}
	})
}

// named are messages that edits name: those of all generations, since a clear is listed once.
type named map[events.Position]bool

func (n named) add(edits []events.Edit) {
	for _, e := range edits {
		if !e.Op.Repairs() {
			n[measure.MessageOf(e.Position)] = true
		}
	}
}

// with returns the messages that repairs of this generation name as well.
func (n named) with(lists ...[]events.Edit) func(measure.Entry) bool {
	repairs, unbound := named{}, []events.Edit{}
	for _, list := range lists {
		for _, e := range list {
			switch {
			case e.Op == events.OpUnbind:
				unbound = append(unbound, e)
			case e.Op.Repairs():
				repairs[measure.MessageOf(e.Position)] = true
				if e.Op == events.OpJoin && e.To != nil {
					repairs[*e.To] = true
				}
			}
		}
	}
	return func(e measure.Entry) bool {
		at := measure.MessageOf(e.Position())
		for _, u := range unbound {
			to := u.Position
			if u.To != nil {
				to = *u.To
			}
			if u.Compare(at) <= 0 && at.Compare(to) <= 0 {
				return true
			}
		}
		return n[at] || repairs[at]
	}
}

// unlisted fails if a message that no edit names is not returned as it came.
func unlisted(t *rapid.T, a *agent, v *compaction.View, listed func(measure.Entry) bool, raw []events.Raw) {
	t.Helper()
	next := 0
	for i := range v.Entries {
		e := v.Entries[i]
		if e.Kind >= measure.KindTruncation || i > 0 && e.SameMessage(&v.Entries[i-1]) || listed(e) {
			continue
		}
		want := a.texts[e.Seq][e.Index].Raw
		for next < len(raw) && !bytes.Equal(raw[next], want) {
			next++
		}
		if next == len(raw) {
			t.Fatalf("%s: turn %d, message %d is not returned as it came, and no edit names it:\n%s\nhistory:\n%s", v.Format, e.Turn, e.Index, want, lines(raw))
		}
		next++
	}
}
