package compaction_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
)

// logged is one event of a recorded log.
type logged struct {
	Seq     measure.Seq `json:"seq"`
	Time    int64       `json:"time"` // Unix milliseconds
	Kind    events.Kind `json:"kind"`
	Tenant  string      `json:"tenant"`
	Session string      `json:"session"`
	Payload string      `json:"payload"` // malformed ones too
}

func (e *logged) address() events.Address {
	return events.Address{Tenant: e.Tenant, Session: e.Session}
}

// emitted is one outcome as it was committed, with the hash of its messages in place
// of the messages.
type emitted struct {
	Seq      measure.Seq `json:"seq"` // of the event
	Kind     events.Kind `json:"kind"`
	Body     codec.Raw   `json:"body"`
	Messages string      `json:"messages,omitzero"` // SHA-256 of the rendered history
}

// player does with a log what a worker does: it decides on events, or applies what
// was emitted about them.
type player struct {
	t       fataler
	config  *compaction.Config
	ledgers map[events.Address]*compaction.Ledger
	stored  map[events.Address]map[string][]byte
	texts   map[measure.Seq][]dialect.Message
}

func newPlayer(t fataler, c *compaction.Config) *player {
	return &player{
		t: t, config: c,
		ledgers: map[events.Address]*compaction.Ledger{},
		stored:  map[events.Address]map[string][]byte{},
		texts:   map[measure.Seq][]dialect.Message{},
	}
}

func (p *player) ledger(a events.Address) *compaction.Ledger {
	if p.ledgers[a] == nil {
		p.ledgers[a] = compaction.NewLedger(a)
	}
	return p.ledgers[a]
}

func (p *player) read(e logged) (compaction.Input, error) {
	switch e.Kind {
	case events.KindTurn:
		turn, msgs, err := stored.ReadTurn(p.config, p.ledger(e.address()), []byte(e.Payload), e.Seq)
		if err != nil {
			return nil, err
		}
		turn.Time, p.texts[e.Seq] = e.Time, msgs
		return turn, nil
	case events.KindSummary:
		result, msgs, err := stored.ReadResult([]byte(e.Payload), e.Seq)
		if err != nil {
			return nil, err
		}
		result.Time, p.texts[e.Seq] = e.Time, msgs
		return result, nil
	case events.KindOverflow:
		return timed(e)(stored.ReadRequest(e.Kind, []byte(e.Payload), e.Seq))
	default:
		return timed(e)(stored.ReadRequest(e.Kind, []byte(e.Payload), e.Seq))
	}
}

// timed gives a request the time of its event.
func timed(e logged) func(*compaction.Request, error) (compaction.Input, error) {
	return func(r *compaction.Request, err error) (compaction.Input, error) {
		if err != nil {
			return nil, err
		}
		r.Time = e.Time
		return r, nil
	}
}

// decide decides on an event, applies it, and returns what is emitted.
func (p *player) decide(e logged) ([]compaction.Outcome, []emitted) {
	in, err := p.read(e)
	if err != nil {
		outs := compaction.Reject(compaction.Event{Seq: e.Seq, Kind: e.Kind, Address: e.address()}, err, p.config)
		return outs, p.emitted(e, outs)
	}
	l := p.ledger(e.address())
	outs, next := compaction.Decide(l, in, p.config)
	next.Install(l)
	return outs, p.emitted(e, outs)
}

func (p *player) emitted(e logged, outs []compaction.Outcome) []emitted {
	var out []emitted
	for _, o := range outs {
		body, err := codec.Marshal(o.Body)
		if err != nil {
			p.t.Fatal(err)
		}
		line := emitted{Seq: e.Seq, Kind: o.Kind, Body: body}
		if o.View != nil {
			line.Messages = p.hash(o.View)
		}
		out = append(out, line)
	}
	return out
}

func (p *player) render(v *render.View) []codec.Raw {
	raw, err := renderView(p.t, v, p.texts)
	if err != nil {
		p.t.Fatal(err)
	}
	return raw
}

func (p *player) hash(v *render.View) string {
	data, err := codec.Marshal(p.render(v))
	if err != nil {
		p.t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// apply applies what was emitted about an event.
func (p *player) apply(e logged, lines []emitted) {
	in, err := p.read(e)
	if err != nil {
		return // unreadable then as now
	}
	compaction.Apply(p.ledger(e.address()), in, outcomes(p.t, lines), p.config)
}

func outcomes(t fataler, lines []emitted) (outs []compaction.Outcome) {
	for _, line := range lines {
		body, err := events.DecodeOutcome(line.Kind, line.Body)
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, compaction.Outcome{Kind: line.Kind, Body: body})
	}
	return outs
}

// checkpoint stores all ledgers.
func (p *player) checkpoint() {
	for a, l := range p.ledgers {
		rows, err := stored.Rows(l)
		if err != nil {
			p.t.Fatal(err)
		}
		l.Stored()
		have := p.stored[a]
		if have == nil || !l.HasTurns() {
			have = map[string][]byte{}
			p.stored[a] = have
		}
		for _, r := range rows {
			have[r.Name] = r.Data
		}
	}
}

// crash drops all ledgers, and restores those that are stored.
func (p *player) crash() {
	clear(p.ledgers)
	for a, have := range p.stored {
		var rows []compaction.Row
		for name, data := range have {
			rows = append(rows, compaction.Row{Name: name, Data: data})
		}
		l, err := stored.ReadLedger(a, rows)
		if err != nil {
			p.t.Fatal(err)
		}
		p.ledgers[a] = l
	}
}

// byEvent groups what was emitted by the event it was emitted about.
func byEvent(lines []emitted) map[measure.Seq][]emitted {
	out := map[measure.Seq][]emitted{}
	for _, line := range lines {
		out[line.Seq] = append(out[line.Seq], line)
	}
	return out
}

// dumps copies all ledgers, in the order of their addresses.
func (p *player) dumps() []compaction.Dump {
	var out []compaction.Dump
	for _, a := range sortedKeys(p.ledgers) {
		if p.ledgers[a].HasTurns() {
			out = append(out, p.ledgers[a].Dump())
		}
	}
	return out
}

func compareAddresses(a, b events.Address) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Session, b.Session))
}
