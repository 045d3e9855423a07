package main

import (
	"context"
	"errors"
	"fmt"

	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/tools/needs"
)

// evalAgents prints what the recorded agents needed after their own compactions, and which share
// of it their summaries have: beside the summary of the same messages that needs no model, and the
// newest messages cut, both of no more tokens.
func evalAgents(ctx context.Context, c *corpus, tokens *sizes, read map[*recording]*needs.Session, common map[string]struct{}, p printer) error {
	var recorded, own, cut [2]facts.Share
	var each [2]spread
	compactions := 0
	for _, r := range c.long() {
		var session [2]facts.Share
		var last int
		var previous *events.Summary
		for i := range r.turns {
			if r.turns[i].summary == "" {
				continue
			}
			stop := i + 1
			for stop < len(r.turns) && r.turns[stop].summary == "" {
				stop++
			}
			compactions++
			size := tokens.count(r.turns[i].summary)
			made, text, err := summaryOf(ctx, r, last, i, previous, size, tokens)
			if err != nil {
				return fmt.Errorf("session %s: %w", r.name, err)
			}
			previous, last = made, i
			want := read[r].After(i, stop, common)
			for _, x := range []struct {
				shares *[2]facts.Share
				text   string
			}{{&recorded, r.turns[i].summary}, {&own, text}, {&cut, tokens.newest(r, i, size)}} {
				has := want.In(x.text)
				shares := [2]facts.Share{{Kept: has.Idents, All: len(want.Idents)}, {Kept: has.Lines, All: len(want.Lines)}}
				for k := range shares {
					x.shares[k] = x.shares[k].Plus(shares[k])
				}
				if x.shares == &own {
					session[0], session[1] = session[0].Plus(shares[0]), session[1].Plus(shares[1])
				}
			}
		}
		for k := range each {
			each[k].add(session[k])
		}
	}
	for i, what := range []string{"needed_later", "needed_lines"} {
		if own[i].All == 0 {
			p.note("%s/summary: nothing was needed after the %d compactions of agents", what, compactions)
			continue
		}
		p.line(what+"/summary", own[i].Ratio(), goal{}, fmt.Sprintf("%s; %s; %d compactions of agents", own[i], &each[i], compactions))
		p.line(what+"/summary/agent", recorded[i].Ratio(), goal{}, recorded[i].String())
		p.line(what+"/summary/cut", cut[i].Ratio(), goal{}, cut[i].String())
	}
	return nil
}

// summaryOf is the embedded summary of turns from ≤ i < to that has at most so many tokens.
func summaryOf(ctx context.Context, r *recording, from, to int, previous *events.Summary, most int64, tokens *sizes) (*events.Summary, string, error) {
	in := summarize.Input{Previous: previous}
	for _, t := range r.turns[from:to] {
		for k, m := range t.messages {
			in.Messages = append(in.Messages, summarize.Message{Turn: t.number, Index: int64(k), Message: m})
		}
	}
	for in.MaxUnits = 6 * most; in.MaxUnits > 0; in.MaxUnits = in.MaxUnits * 9 / 10 {
		made, err := extract.New().Summarize(ctx, in)
		if err != nil {
			return nil, "", err
		}
		if text := needs.Text([]dialect.Message{made.Message()}); tokens.count(text) <= most {
			return made, text, nil
		}
	}
	return nil, "", errors.New("no summary is small enough")
}
