package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"compactd/internal/compaction/policy"
	"compactd/internal/events/codec"
)

// settings are those of what is kept that the fit compares: what text that a call writes into a file,
// and what words are worth where results are worth 4. The first are those of the preset.
var settings = []string{
	`{}`,
	`{"keep":{"written":4,"words":4}}`,
	`{"keep":{"written":8}}`,
	`{"keep":{"written":32}}`,
	`{"keep":{"words":1}}`,
	`{"keep":{"large_factor":1}}`,
}

// evalFit prints what is missed over what the newest messages of the same size miss, each
// repository under the settings that miss least of all others: what a rule that is chosen on known
// sessions keeps of unknown ones.
func evalFit(ctx context.Context, c *corpus, p printer) error {
	e, err := newNeeding([]*corpus{c})
	if err != nil {
		return err
	}
	for _, t := range targets {
		if !t.presets {
			continue
		}
		var under []*needed // each of the settings
		for _, set := range settings {
			policy, err := policy.Default().Set(codec.Raw(set))
			if err != nil {
				return err
			}
			policy.Target = t.share
			n, err := e.measure(ctx, c.sample(3*sampled), windowOf, policy, p)
			if err != nil {
				return err
			}
			under = append(under, n)
		}
		printFit(p, "/"+number(float64(t.share)/1e6), t.missed, under)
	}
	return nil
}

// printFit prints the cross-validated figures of one target.
func printFit(p printer, suffix string, g goal, under []*needed) {
	all, chosen := &session{}, map[int]int{}
	var names []string
	for _, s := range under[0].sessions {
		if !slices.Contains(names, s.repository) {
			names = append(names, s.repository)
		}
	}
	for _, name := range names {
		own := func(s *session) bool { return s.repository == name }
		best, least := 0, math.Inf(1)
		for i, n := range under {
			others := n.total(func(s *session) bool { return !own(s) })
			if x := others.misses(); x < least {
				best, least = i, x
			}
		}
		chosen[best]++
		all.add(under[best].total(own))
	}
	for i, what := range []string{"fit_later_missed_over_cut", "fit_lines_missed_over_cut"} {
		if ratio, ok := all.missedOverCut(i); ok {
			p.line(what+suffix, ratio, g, fmt.Sprintf("kept %s, cut %s; %d repositories, of which %d chose the preset", number(all.kept[i].Ratio()), number(all.cut[i].Ratio()), len(names), chosen[0]))
		}
	}
}

// misses are the two shares that are missed over those that the newest messages miss, added up.
func (s *session) misses() (sum float64) {
	for i := range s.kept {
		ratio, _ := s.missedOverCut(i)
		sum += ratio
	}
	return sum
}
