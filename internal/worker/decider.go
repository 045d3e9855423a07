package worker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/overflow"
)

// event is one message of the log.
type event struct {
	events.Location
	seq compaction.Seq
	// pending is how many events of the partition were behind it when it was sent.
	pending uint64
	id      string // Nats-Msg-Id, "" when the publisher set none
	time    int64  // of the log, in Unix milliseconds
	data    []byte
}

// decider turns the events of one partition into outcomes and keeps its ledgers.
// It is for one goroutine.
type decider struct {
	config  *compaction.Config
	store   loader // nil without checkpoints
	cache   map[events.Address]*cacheEntry
	dirty   []*cacheEntry // that changed since the last checkpoint
	weight  int           // bytes that the ledgers in kept take, about
	events  int           // since the last checkpoint
	clock   uint64        // uses of ledgers so far
	loadErr error         // a ledger could not be loaded: the file cannot be trusted
}

func newDecider(c *compaction.Config) *decider {
	return &decider{config: c, cache: map[events.Address]*cacheEntry{}}
}

// decide judges an event and applies it. It reports whether the event holds text
// that a view may show.
func (d *decider) process(e event) (_ []compaction.Outcome, text bool) {
	d.expire(e)
	outs, in := d.decide(e)
	if slices.ContainsFunc(outs, unwieldy) {
		d.reset(e.Address)
		return d.reject(e, events.NewInvalid(events.CodeSessionReset, "", "a compaction has too many edits for one event; the session begins anew")), false
	}
	if err := d.apply(e, in, outs); err != nil {
		return d.reject(e, err), false
	}
	return outs, in != nil && (e.Kind == events.KindTurn || e.Kind == events.KindSummary)
}

// maxEditsBytes bounds the edits of one compaction as JSON. They must be told
// whole, since a ledger is brought up to date by them, and must fit the smallest
// max_payload in use, the 1 MiB that is a server's default.
const maxEditsBytes = 768 << 10

// unwieldy reports whether an outcome is a compaction whose edits no server might
// take: no agent comes near that, and a worker that could not commit it would
// stop for all.
func unwieldy(o compaction.Outcome) bool {
	const most = 160 // bytes that one edit may need
	c, ok := o.Body.(*events.Compacted)
	if !ok || len(c.Edits) <= maxEditsBytes/most {
		return false
	}
	data, err := events.Marshal(c.Edits)
	return err != nil || len(data) > maxEditsBytes
}

// record applies an event and what was told about it before.
func (d *decider) applyRecorded(e event, outs []compaction.Outcome) error {
	d.expire(e)
	if slices.ContainsFunc(outs, resets) {
		d.reset(e.Address)
		return nil
	}
	if in, err := d.read(e); err == nil { // else unreadable then as now: told as a rejection
		return d.apply(e, in, outs)
	}
	return nil
}

// resets reports whether an outcome says that its session begins anew.
func resets(o compaction.Outcome) bool {
	r, ok := o.Body.(*events.Rejected)
	return ok && r.Code == events.CodeSessionReset
}

// judge decides without changing a ledger.
func (d *decider) decide(e event) (outs []compaction.Outcome, in compaction.Input) {
	defer func() {
		if r := recover(); r != nil {
			outs, in = d.reject(e, fmt.Errorf("decide: panic: %v", r)), nil
		}
	}()
	in, err := d.read(e)
	if err != nil {
		return d.reject(e, err), nil
	}
	l, err := d.ledger(e.Address)
	if err != nil {
		d.loadErr = err
		return nil, nil
	}
	if (e.Kind == events.KindCompact || e.Kind == events.KindRewind) && l.Overedited() {
		return d.reject(e, events.NewInvalid(events.CodeTooManyEdits, "", "the session has many times more edits than messages")), nil
	}
	return compaction.Decide(l, in, d.config), in
}

// read reads an event of a kind that is acted on.
func (d *decider) read(e event) (compaction.Input, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	switch e.Kind {
	case events.KindTurn:
		l, err := d.ledger(e.Address)
		if err != nil {
			d.loadErr = err
			return nil, err
		}
		turn, err := d.config.MeasureTurn(l, e.data, e.seq)
		if err != nil {
			return nil, err
		}
		turn.ID, turn.Time = cmp.Or(turn.ID, e.id), e.time
		return turn, nil
	case events.KindSummary:
		result, _, err := compaction.ReadResult(e.data, e.seq)
		if err != nil {
			return nil, err
		}
		result.Time = e.time
		return result, nil
	default:
		request, err := readRequest(e)
		if err != nil {
			return nil, err
		}
		request.ID, request.Time = cmp.Or(request.ID, e.id), e.time
		return request, nil
	}
}

// readRequest reads an event that asks something of a session.
func readRequest(e event) (*compaction.Request, error) {
	if e.Kind == events.KindOverflow {
		return overflow.Read(e.data, e.seq)
	}
	return compaction.ReadRequest(e.Kind, e.data, e.seq)
}

// apply brings the ledger up to date. Should the code panic half-way, the ledger
// cannot be trusted: the session begins anew, and its agent is told so.
func (d *decider) apply(e event, in compaction.Input, outs []compaction.Outcome) (err error) {
	if in == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			d.reset(e.Address)
			err = events.NewInvalid(events.CodeSessionReset, "", "the session begins anew")
		}
	}()
	l, err := d.ledger(e.Address)
	if err != nil {
		d.loadErr = err
		return nil
	}
	known := l.HasTurns()
	compaction.Apply(l, in, outs, d.config)
	switch {
	case l.HasTurns():
		d.put(e.Address, l)
	case known || e.Kind == events.KindForget: // it has ended, or is to leave the file too
		d.reset(e.Address)
	}
	return nil
}

// maxKind bounds a kind nobody knows, in bytes: it comes from a stranger's
// subject.
const maxKind = 32

func (d *decider) reject(e event, err error) []compaction.Outcome {
	if len(e.Kind) > maxKind {
		e.Kind = events.Kind(strings.ToValidUTF8(string(e.Kind[:maxKind]), ""))
	}
	return compaction.Reject(compaction.Event{Seq: e.seq, ID: e.id, Kind: e.Kind, Address: e.address()}, err, d.config)
}

// address is where outcomes of the event go: _._ when its ids are not valid.
func (e *event) address() events.Address {
	if e.Address.Validate() != nil {
		return events.Address{Tenant: events.Unknown, Session: events.Unknown}
	}
	return e.Address
}
