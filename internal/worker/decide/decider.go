package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/stored"
)

// Decider turns the events of one partition into outcomes and keeps its ledgers.
// One goroutine at a time may use it.
type Decider struct {
	Config  *compaction.Config
	Store   Store // nil without checkpoints
	Cache   map[events.Address]*Entry
	Dirty   []*Entry // changed since the last checkpoint
	Weight  int      // estimated bytes of the ledgers in Cache
	Events  int      // number since the last checkpoint
	decoder events.Decoder
	turn    compaction.Turn // buffers of the last turn and its decision, reused
	next    compaction.Next
	clock   uint64 // number of uses of ledgers
	seen    uint64 // clock at the last call of EvictUnused
	LoadErr error  // a ledger could not be loaded: the file cannot be trusted

	Repeated   measure.Repeated // by the last event
	namesAgain bool             // the last event is the session's first turn in a new thirtieth of the retention (NamesAgain)

	described      map[events.Address]compaction.Overview // of sessions outside of Cache
	describedUnder *compaction.Config
}

// New returns a decider without ledgers that decides under c.
func New(c *compaction.Config) *Decider {
	return &Decider{Config: c, Cache: map[events.Address]*Entry{}, described: map[events.Address]compaction.Overview{}}
}

// largeEvent is the size of an event, in bytes, above which its buffers are not kept for the next event. They take
// up to ten times its size.
const largeEvent = 256 << 10

// Process decides an event and applies it. text reports whether the event holds text for views.
func (d *Decider) Process(e Event) (_ []compaction.Outcome, text bool) {
	if len(e.Data) > largeEvent {
		defer d.shrink()
	}
	d.Repeated, d.namesAgain = measure.Repeated{}, false
	k, err := d.open(e)
	if err != nil {
		return d.reject(e, err), false
	}
	outs, err := d.decide(k, e)
	if err != nil {
		return d.reject(e, err), false
	}
	return outs, e.Kind == events.KindTurn || e.Kind == events.KindSummary
}

// Bytes estimates the bytes that a decision reads: the event and, except for turns, a ledger in memory.
func (d *Decider) Bytes(e Event) int {
	if k := d.Cache[e.Address]; k != nil && e.Kind != events.KindTurn {
		return len(e.Data) + k.weight
	}
	return len(e.Data)
}

// ForkedBy returns the point where the session of the last processed event branched off, if the log of the
// other session has to name the branch: the event is the turn that branched off, or see
// [compaction.Config.NamesAgain]. Else it returns nil.
func (d *Decider) ForkedBy(e Event) *compaction.Forked {
	k := d.Cache[e.Address]
	if e.Kind != events.KindTurn || k == nil || k.Ledger == nil {
		return nil
	}
	if f := k.Ledger.ForkedFrom(); f != nil && (f.Seq == e.Seq || d.namesAgain) {
		return f
	}
	return nil
}

// maxEditsBytes limits the edits of one compaction as JSON. They are always published whole, since
// a recovery applies them to the ledger, and must fit the smallest max_payload in use, a
// server's default of 1 MiB.
const maxEditsBytes = 768 << 10

// unwieldy reports whether an outcome is a compaction with more edits than a server may accept. No
// normal agent gets near that, but a worker that could not commit one would stop for all sessions.
func unwieldy(o compaction.Outcome) bool {
	const most = 160 // maximum bytes of an edit
	c, ok := o.Body.(*events.Compacted)
	if !ok || len(c.Edits) <= maxEditsBytes/most {
		return false
	}
	data, err := codec.Marshal(c.Edits)
	return err != nil || len(data) > maxEditsBytes
}

// ApplyRecorded applies an event and its published outcomes.
func (d *Decider) ApplyRecorded(e Event, outs []compaction.Outcome) (err error) {
	if len(e.Data) > largeEvent {
		defer d.shrink()
	}
	k, err := d.open(e)
	if err != nil {
		return nil // the first decision rejected it too
	}
	if slices.ContainsFunc(outs, resets) {
		d.reset(k)
		return nil
	}
	l := k.ledger()
	in, err := d.read(e, l)
	if err != nil {
		return nil // the first decision rejected it too
	}
	defer func() {
		if r := recover(); r != nil {
			err = d.lost(k)
		}
	}()
	known := l.HasTurns()
	compaction.Apply(l, in, outs, d.Config)
	d.changed(k, l, known, e.Kind)
	return nil
}

// resets reports whether an outcome means that its session begins again.
func resets(o compaction.Outcome) bool {
	r, ok := o.Body.(*events.Rejected)
	return ok && r.Code == events.CodeSessionReset
}

// open returns the entry of an event's session. An error is the reason to reject the event, or a
// failed load of the ledger. An expired session begins again. It expires by the time of its
// next event, so it makes no difference whether its ledger was dropped before.
func (d *Decider) open(e Event) (*Entry, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	k, err := d.entry(e.Address)
	if err != nil {
		d.LoadErr = err
		return nil, err
	}
	if k.Ledger != nil && k.Ledger.Expired(e.Time, d.Config) {
		d.reset(k)
	}
	return k, nil
}

// decide decides an event and installs the next ledger. An error is the reason to reject the event.
// A panic of the decision leaves the ledger unchanged.
func (d *Decider) decide(k *Entry, e Event) (outs []compaction.Outcome, err error) {
	installs := false
	defer func() {
		switch r := recover(); {
		case r != nil && installs:
			outs, err = nil, d.lost(k)
		case r != nil:
			outs, err = nil, fmt.Errorf("decide: panic: %v", r)
		}
	}()
	l := k.ledger()
	in, err := d.read(e, l)
	if err != nil {
		return nil, err
	}
	if (e.Kind == events.KindCompact || e.Kind == events.KindRewind) && l.Overedited() {
		return nil, events.NewInvalid(events.CodeTooManyEdits, "", "the session has many times more edits than messages")
	}
	outs = d.next.Decide(l, in, d.Config)
	if slices.ContainsFunc(outs, unwieldy) {
		d.reset(k)
		return nil, events.NewInvalid(events.CodeSessionReset, "", "a compaction has too many edits for one event; the session begins again")
	}
	known, repeated, last := l.HasTurns(), l.Repeated(), l.LastTurnAt()
	installs = true
	d.next.Install(l)
	d.namesAgain = known && d.Config.NamesAgain(last, l.LastTurnAt())
	d.Repeated = l.Repeated().Since(repeated)
	d.changed(k, l, known, e.Kind)
	return outs, nil
}

// lost resets a session after a panic during a change of its ledger. The returned error is for its
// agent.
func (d *Decider) lost(k *Entry) error {
	d.reset(k)
	return events.NewInvalid(events.CodeSessionReset, "", "the session begins again")
}

// changed keeps or drops a ledger after an event. known reports whether it had turns before.
func (d *Decider) changed(k *Entry, l *compaction.Ledger, known bool, kind events.Kind) {
	switch {
	case l.HasTurns():
		d.put(k, l)
	case known || kind == events.KindForget: // the session ended, or must leave the file too
		d.reset(k)
	}
}

// read reads the payload of an event.
func (d *Decider) read(e Event, l *compaction.Ledger) (compaction.Input, error) {
	switch e.Kind {
	case events.KindTurn:
		d.decoder.ID = e.ID
		in, err := d.decoder.Turn(e.Data, l.Format())
		if err != nil {
			return nil, err
		}
		turn := d.Config.TurnInto(&d.turn, l, in, e.Seq)
		turn.ID, turn.Time = cmp.Or(turn.ID, e.ID), e.Time
		return turn, nil
	case events.KindSummary:
		result, _, err := stored.ReadResult(e.Data, e.Seq)
		if err != nil {
			return nil, err
		}
		result.Time = e.Time
		return result, nil
	default:
		request, err := stored.ReadRequest(e.Kind, e.Data, e.Seq)
		if err != nil {
			return nil, err
		}
		request.ID, request.Time = cmp.Or(request.ID, e.ID), e.Time
		return request, nil
	}
}

// maxKind limits the bytes of an unknown kind: any client may choose it.
const maxKind = 32

func (d *Decider) reject(e Event, err error) []compaction.Outcome {
	if len(e.Kind) > maxKind {
		e.Kind = events.Kind(strings.ToValidUTF8(string(e.Kind[:maxKind]), ""))
	}
	return compaction.Reject(compaction.Event{Seq: e.Seq, ID: e.ID, Kind: e.Kind, Address: e.OutcomeAddress()}, err, d.Config)
}
