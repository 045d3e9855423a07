package llm

import (
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/snippet"
)

// accept makes a summary of the answer of a model, or returns why the answer is unusable.
func (n *promptBuilder) accept(r *model.Reply, prompt string) (*events.Summary, error) {
	if err := checkFinish(r); err != nil {
		return nil, err
	}
	a, err := readAnswer(r.Text)
	if err != nil {
		return nil, err
	}
	all := n.merged(a, newSource(prompt))
	record := n.digest.Record(n.in.Limit())
	room := summarize.Room(n.in.MaxUnits, record)
	text := all.Text(room-extract.NoticeRoom(room), n.digest.Focus)
	switch {
	case text == "" || record == nil:
		return nil, summarize.ErrNoRoom
	case codec.Units(text) >= n.units:
		return nil, &Unusable{ReasonNotSmaller}
	}
	return &events.Summary{Text: extract.Noticed(text, room), Record: record}, nil
}

// merged checks an answer against the input: exact facts replace the model's. from is the prompt.
func (n *promptBuilder) merged(a *answer, from *source) *extract.Sections {
	own, old := n.digest.Sections(), &extract.Sections{}
	if n.digest.Previous != nil {
		old = extract.Parse(n.digest.Previous.Text)
	}
	turns := n.span(old)
	for k := range extract.Kinds {
		if !a.has[k] {
			a.Sections[k] = own[k]
			continue
		}
		for i := range a.Sections[k] {
			l := &a.Sections[k][i]
			l.Text, l.Turns = from.grounded(from.verified(l.Text)), within(l.Turns, turns)
			if k != extract.Rules { // RulesOf holds those against the user's words
				l.Text = n.digest.LabelClaim(l.Text)
			}
		}
		a.Sections[k] = extract.United(nil, a.Sections[k])
	}
	a.Sections[extract.Goal] = before(n.first(old[extract.Goal]), a.Sections[extract.Goal])
	a.Sections[extract.Next] = before(own[extract.Next], a.Sections[extract.Next])
	kept, foreign := n.digest.RulesOf(a.Sections[extract.Rules])
	a.Sections[extract.Rules] = kept
	a.Sections[extract.Discoveries] = extract.United(a.Sections[extract.Discoveries], foreign)
	return &a.Sections
}

// span is the range of turns that a summary can cover.
func (n *promptBuilder) span(old *extract.Sections) [2]int64 {
	var all [2]int64
	for _, lines := range old {
		for _, l := range lines {
			all = extract.JoinTurns(all, l.Turns)
		}
	}
	if n.digest.Previous != nil {
		for _, r := range n.digest.Previous.Record {
			all = extract.JoinTurns(all, r.Turns)
		}
	}
	for _, m := range n.in.Messages {
		all = extract.JoinTurns(all, [2]int64{m.Turn, m.Turn})
	}
	return all
}

// within returns the turns of a line if they are possible, else all (C7).
func within(turns, all [2]int64) [2]int64 {
	if turns[0] < all[0] || turns[1] > all[1] || turns[0] > turns[1] {
		return all
	}
	return turns
}

// before puts lines of code before the model's, without lines of the same meaning. Marks are only ours.
func before(pins, written []extract.Line) []extract.Line {
	known := extract.PhrasesOf(pins)
	out := slices.Clone(pins)
	for _, l := range written {
		l.Text = strings.TrimPrefix(strings.TrimPrefix(l.Text, extract.FirstLabel), extract.LatestLabel)
		o := extract.PhraseOf(l.Text)
		if !slices.ContainsFunc(known, func(s extract.Phrase) bool { return s.Covers(o, extract.SamePercent) }) {
			out = append(out, l)
		}
	}
	return out
}

// first returns the line of the session's first request, as the previous summary condensed it.
func (n *promptBuilder) first(old []extract.Line) []extract.Line {
	for _, l := range old {
		if strings.HasPrefix(l.Text, extract.FirstLabel) {
			return []extract.Line{l}
		}
	}
	if p := n.digest.Previous; p != nil {
		for _, r := range p.Record {
			if r.Kind == events.RecordUser {
				return []extract.Line{{Text: extract.FirstLabel + snippet.Clip(r.Text, extract.GoalUnits), Turns: r.Turns}}
			}
		}
		return nil
	}
	if len(n.digest.Users) == 0 {
		return nil
	}
	l := n.digest.Users[0]
	l.Text = extract.FirstLabel + l.Text
	return []extract.Line{l}
}
