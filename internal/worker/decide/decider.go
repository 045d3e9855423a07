package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/overflow"
)

// Decider turns the events of one partition into outcomes and keeps its ledgers.
// It is for one goroutine.
type Decider struct {
	Config  *compaction.Config
	Store   Store // nil without checkpoints
	Cache   map[events.Address]*Entry
	Dirty   []*Entry // that changed since the last checkpoint
	Weight  int      // bytes that the ledgers in kept take, about
	Events  int      // since the last checkpoint
	clock   uint64   // uses of ledgers so far
	LoadErr error    // a ledger could not be loaded: the file cannot be trusted
}

// New returns a decider without ledgers that decides under c.
func New(c *compaction.Config) *Decider {
	return &Decider{Config: c, Cache: map[events.Address]*Entry{}}
}

// Process decides an event and applies it. It reports whether the event holds text
// that a view may show.
func (d *Decider) Process(e Event) (_ []compaction.Outcome, text bool) {
	d.expire(e)
	outs, in := d.decide(e)
	if slices.ContainsFunc(outs, unwieldy) {
		d.Reset(e.Address)
		return d.reject(e, events.NewInvalid(events.CodeSessionReset, "", "a compaction has too many edits for one event; the session begins anew")), false
	}
	if err := d.apply(e, in, outs); err != nil {
		return d.reject(e, err), false
	}
	return outs, in != nil && (e.Kind == events.KindTurn || e.Kind == events.KindSummary)
}

// maxEditsBytes bounds the edits of one compaction as JSON. They must be published
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

// ApplyRecorded applies an event and what was published about it before.
func (d *Decider) ApplyRecorded(e Event, outs []compaction.Outcome) error {
	d.expire(e)
	if slices.ContainsFunc(outs, resets) {
		d.Reset(e.Address)
		return nil
	}
	if in, err := d.read(e); err == nil { // else unreadable then as now: published as a rejection
		return d.apply(e, in, outs)
	}
	return nil
}

// resets reports whether an outcome means that its session begins again.
func resets(o compaction.Outcome) bool {
	r, ok := o.Body.(*events.Rejected)
	return ok && r.Code == events.CodeSessionReset
}

// decide decides without changing a ledger.
func (d *Decider) decide(e Event) (outs []compaction.Outcome, in compaction.Input) {
	defer func() {
		if r := recover(); r != nil {
			outs, in = d.reject(e, fmt.Errorf("decide: panic: %v", r)), nil
		}
	}()
	in, err := d.read(e)
	if err != nil {
		return d.reject(e, err), nil
	}
	l, err := d.Ledger(e.Address)
	if err != nil {
		d.LoadErr = err
		return nil, nil
	}
	if (e.Kind == events.KindCompact || e.Kind == events.KindRewind) && l.Overedited() {
		return d.reject(e, events.NewInvalid(events.CodeTooManyEdits, "", "the session has many times more edits than messages")), nil
	}
	return compaction.Decide(l, in, d.Config), in
}

// read reads an event of a kind that is acted on.
func (d *Decider) read(e Event) (compaction.Input, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	switch e.Kind {
	case events.KindTurn:
		l, err := d.Ledger(e.Address)
		if err != nil {
			d.LoadErr = err
			return nil, err
		}
		turn, err := d.Config.MeasureTurn(l, e.Data, e.Seq)
		if err != nil {
			return nil, err
		}
		turn.ID, turn.Time = cmp.Or(turn.ID, e.ID), e.Time
		return turn, nil
	case events.KindSummary:
		result, _, err := compaction.ReadResult(e.Data, e.Seq)
		if err != nil {
			return nil, err
		}
		result.Time = e.Time
		return result, nil
	default:
		request, err := readRequest(e)
		if err != nil {
			return nil, err
		}
		request.ID, request.Time = cmp.Or(request.ID, e.ID), e.Time
		return request, nil
	}
}

// readRequest reads an event that requests something of a session.
func readRequest(e Event) (*compaction.Request, error) {
	if e.Kind == events.KindOverflow {
		return overflow.Read(e.Data, e.Seq)
	}
	return compaction.ReadRequest(e.Kind, e.Data, e.Seq)
}

// apply brings the ledger up to date. Should the code panic half-way, the ledger
// cannot be trusted: the session begins again, and its agent receives a rejection.
func (d *Decider) apply(e Event, in compaction.Input, outs []compaction.Outcome) (err error) {
	if in == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			d.Reset(e.Address)
			err = events.NewInvalid(events.CodeSessionReset, "", "the session begins anew")
		}
	}()
	l, err := d.Ledger(e.Address)
	if err != nil {
		d.LoadErr = err
		return nil
	}
	known := l.HasTurns()
	compaction.Apply(l, in, outs, d.Config)
	switch {
	case l.HasTurns():
		d.put(e.Address, l)
	case known || e.Kind == events.KindForget: // it has ended, or is to leave the file too
		d.Reset(e.Address)
	}
	return nil
}

// maxKind bounds a kind that is unknown, in bytes: it comes from a stranger's
// subject.
const maxKind = 32

func (d *Decider) reject(e Event, err error) []compaction.Outcome {
	if len(e.Kind) > maxKind {
		e.Kind = events.Kind(strings.ToValidUTF8(string(e.Kind[:maxKind]), ""))
	}
	return compaction.Reject(compaction.Event{Seq: e.Seq, ID: e.ID, Kind: e.Kind, Address: e.OutcomeAddress()}, err, d.Config)
}

// expire lets a session begin again that was idle for as long as the log keeps an
// event, by the time of the next one. It makes no difference whether the ledger was
// dropped before that.
func (d *Decider) expire(e Event) {
	if e.Validate() != nil {
		return
	}
	l, err := d.Ledger(e.Address)
	if err != nil {
		d.LoadErr = err
		return
	}
	if l.Expired(e.Time, d.Config) {
		d.Reset(e.Address)
	}
}
