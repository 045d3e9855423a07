package main

import (
	"context"
	"fmt"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
	"compactd/internal/summarize"
)

var address = events.Address{Tenant: "default", Session: "s"}

// play is one run of a recording through the core, with a log of its own.
type play struct {
	*recording
	config  *compaction.Config
	ledger  *compaction.Ledger
	seq     measure.Seq
	texts   map[measure.Seq][]dialect.Message
	made    map[uint64]*events.Summary // by sequence
	emitted func(*play, compaction.Outcome) error

	published int           // turns
	jobs      []*events.Job // without an answer
}

func newPlay(r *recording, c *compaction.Config, emitted func(*play, compaction.Outcome) error) *play {
	return &play{
		recording: r, config: c, emitted: emitted, ledger: compaction.NewLedger(address),
		texts: map[measure.Seq][]dialect.Message{}, made: map[uint64]*events.Summary{},
	}
}

// publish lets the core decide turn i at a time of the log.
func (p *play) publish(i int, now int64) error {
	t := &p.turns[i]
	p.seq, p.published = t.seq, i+1
	p.texts[t.seq] = t.messages
	turn := *t.turn
	turn.Time = now
	return p.decide(&turn)
}

// answer puts a summary into the log.
func (p *play) answer(s *events.Summary, now int64) error {
	data, err := codec.Marshal(s)
	if err != nil {
		return err
	}
	p.seq++
	r, messages, err := stored.ReadResult(data, p.seq)
	if err != nil {
		return err
	}
	r.Time = now
	p.texts[p.seq], p.made[uint64(p.seq)] = messages, s
	return p.decide(r)
}

// compact requests a compaction.
func (p *play) compact(now int64) error {
	p.seq++
	r, err := stored.ReadRequest(events.KindCompact, fmt.Appendf(nil, `{"v":1,"id":"compact-%d"}`, p.seq), p.seq)
	if err != nil {
		return err
	}
	r.Time = now
	return p.decide(r)
}

func (p *play) decide(in compaction.Input) error {
	outs, next := compaction.Decide(p.ledger, in, p.config)
	next.Install(p.ledger)
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Rejected:
			return fmt.Errorf("session %s: an event was rejected: %s", p.name, b.Code)
		case *events.Job:
			p.jobs = append(p.jobs, b)
		}
		if err := p.emitted(p, o); err != nil {
			return err
		}
	}
	return nil
}

// input is what a job has summarized, as a summarizer reads it from the log.
func (p *play) input(j *events.Job) summarize.Input {
	in := summarize.Input{MaxUnits: j.MaxUnits, Focus: j.Focus, Previous: p.made[j.Previous]}
	for i, seq := range j.Seqs {
		for k, m := range p.texts[measure.Seq(seq)] {
			at := events.Position{Turn: j.Turn + int64(i), Index: int64(k)}
			if j.Holds(at) {
				in.Messages = append(in.Messages, summarize.Message{Turn: at.Turn, Index: at.Index, Message: m})
			}
		}
	}
	return in
}

// summarize answers a job with what a summarizer makes of it.
func (p *play) summarize(ctx context.Context, s summarize.Summarizer, j *events.Job, now int64) error {
	made, err := s.Summarize(ctx, p.input(j))
	if err != nil {
		return fmt.Errorf("session %s: summarize turns %d to %d: %w", p.name, j.From.Turn, j.To.Turn, err)
	}
	made.Header, made.Job = events.Header{V: events.Version, ID: "summary-" + j.ID}, j.ID
	return p.answer(made, now)
}

// run publishes all turns. Jobs are answered before the next one.
func (p *play) run(ctx context.Context, by summarize.Summarizer) error {
	for i, t := range p.turns {
		if err := p.publish(i, t.at); err != nil {
			return err
		}
		if err := p.work(ctx, by, t.at); err != nil {
			return err
		}
	}
	return nil
}

// work answers the jobs.
func (p *play) work(ctx context.Context, by summarize.Summarizer, now int64) error {
	for len(p.jobs) > 0 {
		j := p.jobs[0]
		p.jobs = p.jobs[1:]
		if err := p.summarize(ctx, by, j, now); err != nil {
			return err
		}
	}
	return nil
}

// history is a view as its agent gets it.
func (p *play) history(v *render.View) ([]dialect.Message, error) {
	raw, _, err := render.Render(v, func(s measure.Seq) ([]dialect.Message, error) { return p.texts[s], nil })
	if err != nil {
		return nil, err
	}
	return p.format.ReadAll(raw)
}

// condensed returns the edit that put a summary in place, nil if none did.
func condensed(o compaction.Outcome) *events.Edit {
	c, ok := o.Body.(*events.Compacted)
	if !ok || !c.Compacted {
		return nil
	}
	i := slices.IndexFunc(c.Edits, func(e events.Edit) bool { return e.Op == events.OpCondense })
	if i < 0 {
		return nil
	}
	return &c.Edits[i]
}
