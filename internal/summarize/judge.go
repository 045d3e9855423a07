package summarize

import (
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// judge makes a summary of what a model answered to a prompt, or says why there
// is none.
func (n *narration) judge(r *model.Reply, prompt string) (*events.Summary, error) {
	if err := finished(r); err != nil {
		return nil, err
	}
	a, err := readAnswer(r.Text)
	if err != nil {
		return nil, err
	}
	all := n.merged(a, newSource(prompt))
	record := n.digest.record(n.in.max())
	text := all.text(Room(n.in.MaxUnits, record), n.digest.focus)
	if text == "" {
		record = nil
		text = all.text(Room(n.in.MaxUnits, nil), n.digest.focus)
	}
	switch {
	case text == "":
		return nil, ErrNoRoom
	case events.Units(text) >= n.units:
		return nil, &Unusable{ReasonNotSmaller}
	}
	return &events.Summary{Text: text, Record: record}, nil
}

// text returns all lines if they have room, else those that fit does.
func (s *sections) text(room int, focus []string) string {
	shelves := make([]*shelf, kinds)
	for k := range kinds {
		shelves[k] = newShelf(k, s[k], nil)
		for i := range shelves[k].taken {
			shelves[k].taken[i] = true
		}
	}
	if whole := render(shelves); events.Units(whole)+3*tags(whole) <= room {
		return whole
	}
	return s.fit(room, focus)
}

// merged holds an answer against the input: what code knows better stands in
// place of what the model wrote. from is the prompt.
func (n *narration) merged(a *answer, from *source) *sections {
	own, old := n.digest.sections(), &sections{}
	if n.digest.previous != nil {
		old = parse(n.digest.previous.Text)
	}
	turns := n.span(old)
	for k := range kinds {
		if !a.has[k] {
			a.sections[k] = own[k]
			continue
		}
		for i := range a.sections[k] {
			l := &a.sections[k][i]
			l.text, l.turns = n.digest.unclaimed(from.grounded(from.verified(l.text))), within(l.turns, turns)
		}
		a.sections[k] = united(nil, a.sections[k])
	}
	a.sections[goal] = before(n.first(old[goal]), a.sections[goal])
	a.sections[next] = before(own[next], a.sections[next])
	kept, foreign := n.digest.rulesOf(old[rules], a.sections[rules])
	a.sections[rules] = kept
	a.sections[discoveries] = united(a.sections[discoveries], foreign)
	return &a.sections
}

// span is from the first to the last turn that a summary can tell of.
func (n *narration) span(old *sections) [2]int64 {
	var all [2]int64
	for _, lines := range old {
		for _, l := range lines {
			all = joined(all, l.turns)
		}
	}
	if n.digest.previous != nil {
		for _, r := range n.digest.previous.Record {
			all = joined(all, r.Turns)
		}
	}
	for _, m := range n.in.Messages {
		all = joined(all, [2]int64{m.Turn, m.Turn})
	}
	return all
}

// within are the turns of a line if they can be, else all there are (C7).
func within(turns, all [2]int64) [2]int64 {
	if turns[0] < all[0] || turns[1] > all[1] || turns[0] > turns[1] {
		return all
	}
	return turns
}

// before puts lines of code before what a model wrote, without what says the same.
// Marks are ours alone.
func before(pins, written []line) []line {
	known := sayingsOf(pins)
	out := slices.Clone(pins)
	for _, l := range written {
		l.text = strings.TrimPrefix(strings.TrimPrefix(l.text, firstMark), latestMark)
		o := sayingOf(l.text)
		if !slices.ContainsFunc(known, func(s saying) bool { return s.covers(o, samePercent) }) {
			out = append(out, l)
		}
	}
	return out
}

// first is the request that all began with, as it was when it was condensed.
func (n *narration) first(old []line) []line {
	for _, l := range old {
		if strings.HasPrefix(l.text, firstMark) {
			return []line{l}
		}
	}
	if p := n.digest.previous; p != nil {
		for _, r := range p.Record {
			if r.Kind == events.RecordUser {
				return []line{{text: firstMark + clip(r.Text, goalUnits), turns: r.Turns}}
			}
		}
		return nil
	}
	if len(n.digest.users) == 0 {
		return nil
	}
	l := n.digest.users[0]
	l.text = firstMark + l.text
	return []line{l}
}
