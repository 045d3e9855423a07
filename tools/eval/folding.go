package main

import (
	"fmt"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
	"compactd/tools/needs"
)

const (
	// largeResult is the size of a result from which it is cut, in bytes, and cutTo what is left of it.
	largeResult = 8_000
	cutTo       = 4
	// usedWithin is for how many turns what calls use of a result counts.
	usedWithin = 40
)

// evalFolding prints what calls used later of large results, and the share of it that each way to cut
// them to a quarter keeps.
func evalFolding(c *corpus, p printer) {
	ways := []measure.Direction{measure.KeepLines, measure.KeepBoth, measure.KeepHead, measure.KeepTail}
	idents, lines := make([]facts.Share, len(ways)), make([]facts.Share, len(ways))
	results := 0
	for _, r := range c.long() {
		s := needs.Read(r.messages())
		for t := range r.turns {
			want := s.After(t+1, min(t+1+usedWithin, s.Len()), nil)
			for text := range largeResults(r.turns[t].messages) {
				results++
				all := want.In(text)
				l := measure.DefaultOutputLimits()
				l.MaxBytes = int64(len(text) / cutTo)
				for i, way := range ways {
					l.Keep = way
					cut, _ := measure.LimitOutput(text, l)
					has := want.In(cut)
					idents[i], lines[i] = idents[i].Plus(facts.Share{Kept: has.Idents, All: all.Idents}), lines[i].Plus(facts.Share{Kept: has.Lines, All: all.Lines})
				}
			}
		}
	}
	for i, way := range ways {
		p.line("folding_needed_later/"+string(way), idents[i].Ratio(), goal{}, fmt.Sprintf("%s; %d results of %d bytes and more, cut to a quarter", idents[i], results, largeResult))
		p.line("folding_needed_lines/"+string(way), lines[i].Ratio(), goal{}, lines[i].String())
	}
}

// largeResults walks over the texts of the large results of messages.
func largeResults(messages []dialect.Message) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range messages {
			for k := range messages[i].Parts {
				if q := &messages[i].Parts[k]; q.Kind == dialect.PartResult && len(q.Text) >= largeResult && strings.Contains(q.Text, "\n") && !yield(q.Text) {
					return
				}
			}
		}
	}
}
