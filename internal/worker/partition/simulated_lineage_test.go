package partition

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/decide"
)

// holdAnswers looks which answers are what a ledger gives, behind an event.
func (s *simulation) holdAnswers(d *decide.Decider, a events.Address) error {
	for _, x := range s.answers {
		if x.held || x.address != a || x.out.Through.Turn == 0 {
			continue
		}
		l, err := d.Ledger(a)
		if err != nil {
			return err
		}
		if l.Through() != x.out.Through {
			continue
		}
		view := l.View()
		if x.out.Turns < l.LastTurn() {
			view = l.ViewThrough(x.out.Generation, x.out.Turns)
		} else if l.Generation() != x.out.Generation {
			continue
		}
		known := s.render(view)
		want := slices.Concat(known, x.tail)
		if x.held = sameMessages(want, x.applied) || sameMessages(slices.Concat(known, x.last), x.applied) || x.refused && sameMessages(known, x.applied); !x.held {
			s.note("at %+v %s was to be sent\n%s\nand is sent\n%s", l.Through(), x.caller.name, want, x.applied)
		}
	}
	return nil
}

// unheld is an error if the parts of an answer gave no history that its session ever had.
func (s *simulation) unheld() error {
	for _, x := range s.answers {
		if !x.held && x.out.Through.Turn > 0 {
			return fmt.Errorf("%s: no history of %s is what the answer at %+v, generation %d, gives:\n%s",
				x.caller.name, x.address.Session, x.out.Through, x.out.Generation, x.applied)
		}
	}
	return nil
}

// former is what a session was before an event.
type former struct {
	messages  []codec.Raw
	chain     []events.Link
	retracted []compaction.Retracted
}

func formerOf(d *decide.Decider, e decide.Event, b *book) (x former, err error) {
	l, err := d.Ledger(e.Address)
	if err == nil && b != nil {
		x.messages, x.chain, x.retracted = b.messages(), l.Chain(), l.Retracted()
	}
	return x, err
}

// wantLineage checks that a session has a history that one caller had, and that it became another
// one by request alone: its first message stays, and what it remembers as retracted takes its
// place back from no call.
func (s *simulation) wantLineage(e decide.Event, was former, now []codec.Raw) error {
	root := rootOf(e.Address.Session)
	switch {
	case s.lineages[root] == nil: // its agent publishes turns
		return nil
	case !s.isLineage(root, now):
		return fmt.Errorf("%s has a history that no caller had:\n%s", e.Address.Session, now)
	}
	if s.explicit[e.ID] || len(was.messages) == 0 || len(now) == 0 || e.Kind != events.KindTurn {
		return nil
	}
	if events.OpenAI.DigestOf(was.messages[:1]) != events.OpenAI.DigestOf(now[:1]) {
		return fmt.Errorf("%s began with\n%s\nand begins with\n%s", e.Address.Session, was.messages[0], now[0])
	}
	for _, r := range was.retracted {
		from, n := -1, int(r.Messages)
		for i := range was.chain {
			if i == 0 && r.Base == (events.Digest{}) {
				from = 0
			}
			if was.chain[i].Whole == r.Base {
				from = int(was.chain[i].End)
			}
		}
		begins := func(list []codec.Raw) bool {
			return from >= 0 && len(list) >= from+n && events.OpenAI.DigestOf(list[from:from+n]) == r.First
		}
		if begins(now) && !begins(was.messages) && len(was.messages) >= from+n {
			return fmt.Errorf("%s: a lineage that came back took the place of another one:\n%s", e.Address.Session, e.Data)
		}
	}
	return nil
}

// wantFamilies checks that the log names each branch, and that branches end with their session, once.
func (s *simulation) wantFamilies(forks []decide.Event, parents map[measure.Seq]events.Address) error {
	if s.counts.EventsLost > 0 {
		return nil
	}
	after := func(e decide.Event, k events.Kind, a events.Address, names string) bool {
		return slices.ContainsFunc(s.log[e.Seq:], func(x decide.Event) bool {
			return x.Kind == k && x.Address == a && (names == "" || bytes.Contains(x.Data, []byte(`"`+names+`"`)))
		})
	}
	for _, e := range forks {
		s.synced.Named++
		if !after(e, events.KindBranch, parents[e.Seq], e.Address.Session) {
			return fmt.Errorf("event %d: the log does not name %s as a branch of %s", e.Seq, e.Address.Session, parents[e.Seq].Session)
		}
	}
	for _, fork := range forks {
		for _, e := range s.log[fork.Seq:] {
			if e.Kind == events.KindForget && e.Address == fork.Address { // nothing of the fork is left
				break
			}
			if _, ends := endingOf(e.Kind, e.Seq, e.Data); !ends || e.Address != parents[fork.Seq] {
				continue
			}
			if e.Kind == events.KindEnd && !events.IsBranch(e.Address.Session, fork.Address.Session) {
				continue
			}
			s.synced.Families++
			s.counts.Families++
			if !after(e, e.Kind, fork.Address, "") && !after(e, events.KindForget, fork.Address, "") {
				return fmt.Errorf("event %d: session.%s of %s, and its branch %s goes on", e.Seq, e.Kind, e.Address.Session, fork.Address.Session)
			}
		}
	}
	passed := map[string]measure.Seq{}
	for _, e := range s.log {
		if x, ends := endingOf(e.Kind, e.Seq, e.Data); ends && strings.HasPrefix(x.id, familyPrefix) {
			if passed[x.id] > 0 {
				return fmt.Errorf("event %d: session.%s of %s was passed on before, as event %d", e.Seq, e.Kind, e.Address.Session, passed[x.id])
			}
			passed[x.id] = e.Seq
		}
	}
	return nil
}
