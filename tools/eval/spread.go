package main

import (
	"fmt"
	"slices"

	"compactd/internal/ops/facts"
)

// spread is how a share differs between sessions: the session is the unit that is sampled.
type spread struct{ each []facts.Share }

func (s *spread) add(x facts.Share) {
	if x.All > 0 {
		s.each = append(s.each, x)
	}
}

// String is the least and the most of a session, and of all sessions but one.
func (s *spread) String() string {
	if len(s.each) == 0 {
		return "no session"
	}
	var own, without []float64
	for i, x := range s.each {
		own = append(own, x.Ratio())
		var rest facts.Share
		for k, o := range s.each {
			if k != i {
				rest = rest.Plus(o)
			}
		}
		without = append(without, rest.Ratio())
	}
	out := fmt.Sprintf("%d sessions, %s to %s", len(own), number(slices.Min(own)), number(slices.Max(own)))
	if len(own) > 1 {
		out += fmt.Sprintf("; one left out %s to %s", number(slices.Min(without)), number(slices.Max(without)))
	}
	return out
}
