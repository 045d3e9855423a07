package whatif

import (
	"cmp"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
	"compactd/internal/summarize"
)

// core is a session as a worker holds it: its ledger, and the texts of its log.
type core struct {
	address events.Address
	ledger  *compaction.Ledger
	texts   map[measure.Seq][]dialect.Message
	made    map[uint64]*events.Summary // by sequence
	again   measure.Repeated           // by all that was decided
	ended   events.Cost                // of sessions of this name that are over
}

func newCore(a events.Address) *core {
	return &core{
		address: a, ledger: compaction.NewLedger(a),
		texts: map[measure.Seq][]dialect.Message{}, made: map[uint64]*events.Summary{},
	}
}

// decide decides on an event as a worker does, applies it, and returns what is reported.
func (c *core) decide(e *Event, config *compaction.Config) []compaction.Outcome {
	if c.ledger.Expired(e.Time, config) {
		c.begin(c.bill(config))
	}
	in, err := c.read(e, config)
	if err != nil {
		return compaction.Reject(compaction.Event{Seq: e.Seq, ID: e.ID, Kind: e.Kind, Address: c.address}, err, config)
	}
	known, again, bill := c.ledger.HasTurns(), c.ledger.Repeated(), c.bill(config)
	outs, next := compaction.Decide(c.ledger, in, config)
	next.Install(c.ledger)
	c.again = c.again.Plus(c.ledger.Repeated().Since(again))
	if known && !c.ledger.HasTurns() { // it has ended
		c.begin(bill)
	}
	return outs
}

// begin makes room for another session of the name.
func (c *core) begin(bill events.Cost) { c.ledger, c.ended = compaction.NewLedger(c.address), bill }

// bill is the money that workers count for all decisions: by usage, if turns have one.
func (c *core) bill(config *compaction.Config) events.Cost {
	return c.ended.Plus(c.ledger.Describe(config).Cost)
}

// read reads an event, and keeps its text.
func (c *core) read(e *Event, config *compaction.Config) (compaction.Input, error) {
	if err := (events.Location{Kind: e.Kind, Address: c.address}).Validate(); err != nil {
		return nil, err
	}
	switch e.Kind {
	case events.KindTurn:
		turn, messages, err := stored.ReadTurn(config, c.ledger, e.Data, e.Seq)
		if err != nil {
			return nil, err
		}
		turn.ID, turn.Time, c.texts[e.Seq] = cmp.Or(turn.ID, e.ID), e.Time, messages
		return turn, nil
	case events.KindSummary:
		result, messages, err := stored.ReadResult(e.Data, e.Seq)
		if err != nil {
			return nil, err
		}
		s, err := events.DecodeSummary(e.Data)
		if err != nil {
			return nil, err
		}
		result.Time, c.texts[e.Seq], c.made[uint64(e.Seq)] = e.Time, messages, s
		return result, nil
	}
	request, err := stored.ReadRequest(e.Kind, e.Data, e.Seq)
	if err != nil {
		return nil, err
	}
	request.ID, request.Time = cmp.Or(request.ID, e.ID), e.Time
	return request, nil
}

// render writes a view as its agent gets it.
func (c *core) render(v *render.View) (raw []codec.Raw, read []dialect.Message, err error) {
	raw, _, err = render.Render(v, func(s measure.Seq) ([]dialect.Message, error) { return c.texts[s], nil })
	if err != nil {
		return nil, nil, err
	}
	read, err = v.Format.ReadAll(raw)
	return raw, read, err
}

// input is the input of a job, as a worker reads it from the log.
func (c *core) input(j *events.Job) summarize.Input {
	in := summarize.Input{MaxUnits: j.MaxUnits, Focus: j.Focus, Previous: c.made[j.Previous]}
	for i, seq := range j.Seqs {
		for k, m := range c.texts[measure.Seq(seq)] {
			if at := (events.Position{Turn: j.Turn + int64(i), Index: int64(k)}); j.Holds(at) {
				in.Messages = append(in.Messages, summarize.Message{Turn: at.Turn, Index: at.Index, Message: m})
			}
		}
	}
	return in
}
