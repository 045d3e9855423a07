package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize/extract"
	"compactd/tools/needs"
)

// betweenDialects is how much a share of a session may differ between dialects.
const betweenDialects = 0.02

// evalDialects prints what the real sessions keep in each dialect, and by how much that differs
// from the dialect they were recorded in: a session is the same work whatever the form of its messages.
func evalDialects(ctx context.Context, c *corpus, p printer) error {
	tokens, err := newSizes()
	if err != nil {
		return err
	}
	preset := policy.Default()
	recorded := map[string]inDialect{} // by session
	var worst [len(inDialect{})]float64
	for _, f := range append([]events.Format{""}, events.Formats()...) { // as recorded first
		var all inDialect
		var largest strings.Builder
		for _, r := range c.sample(sampled) {
			got, err := r.in(ctx, f, tokens, preset)
			if err != nil {
				p.note("left out: %s as %s: %v", r.name, f, err)
				continue
			}
			if f == "" {
				recorded[r.name] = got
			}
			for i, s := range got {
				all[i] = all[i].Plus(s)
				if d := math.Abs(s.Ratio() - recorded[r.name][i].Ratio()); d > worst[i] {
					worst[i] = d
					fmt.Fprintf(&largest, "; %s of %s %s for %s", shareNames[i], r.name, s, recorded[r.name][i])
				}
			}
		}
		name := string(f)
		if f == "" {
			name = "recorded"
		}
		for i, s := range all {
			p.line(fmt.Sprintf("dialect_%s/%s", shareNames[i], name), s.Ratio(), goal{}, s.String())
		}
		if largest.Len() > 0 {
			p.note("%s%s", name, largest.String())
		}
	}
	for i, d := range worst {
		p.line("between_dialects_"+shareNames[i], d, atMost(betweenDialects), "the most of a session")
	}
	return nil
}

// inDialect is what a session keeps in a dialect, by shareNames.
type inDialect [3]facts.Share

var shareNames = [len(inDialect{})]string{"needed_later", "needed_lines", "retention"}

// in plays the session in a dialect, "" for its own.
func (r *recording) in(ctx context.Context, f events.Format, tokens *sizes, policy policy.Policy) (out inDialect, err error) {
	session := r.session
	if f != "" {
		if session, err = session.As(f); err != nil {
			return out, err
		}
	}
	if r, err = record(session, false); err != nil {
		return out, err
	}
	s := needs.Read(r.messages())
	e := &needing{tokens, needs.Common([]*needs.Session{s}), map[*recording]*needs.Session{r: s}}
	n, err := e.session(ctx, r, policy)
	if err != nil {
		return out, err
	}
	out[0], out[1] = n.kept[0], n.kept[1]
	all, err := tenTimes(ctx, r, extract.New())
	if err != nil {
		return out, err
	}
	for _, k := range all {
		for _, s := range k.shares {
			out[2] = out[2].Plus(s)
		}
	}
	return out, err
}
