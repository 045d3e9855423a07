package compaction

import (
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// Request is an event that requests something of a session, beside its turns.
type Request struct {
	Seq  Seq
	ID   string
	Time int64 // of the log, in Unix milliseconds

	kind events.Kind
	body any // *events.Compact, *events.Rewind, *events.Idle or *Overflow; nil for session.end and session.forget
}

// ReadRequest reads the payload of a session.compact, session.rewind,
// session.idle, session.end or session.forget. Its error is an [events.Invalid].
func ReadRequest(k events.Kind, data []byte, seq Seq) (*Request, error) {
	r := &Request{Seq: seq, kind: k}
	var err error
	switch k {
	case events.KindCompact:
		var c *events.Compact
		if c, err = events.DecodeCompact(data); err == nil {
			r.ID, r.body = c.ID, c
		}
	case events.KindRewind:
		var w *events.Rewind
		if w, err = events.DecodeRewind(data); err == nil {
			r.ID, r.body = w.ID, w
		}
	case events.KindIdle:
		var i *events.Idle
		if i, err = events.DecodeIdle(data); err == nil {
			r.ID, r.body = i.ID, i
		}
	case events.KindEnd:
		r.ID, err = events.DecodeEnd(data)
	case events.KindForget:
		r.ID, err = events.DecodeForget(data)
	default:
		err = events.NewInvalid(events.CodeUnsupportedKind, "kind", "is not acted on by this version")
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Request) event(a events.Address) (Event, int64) {
	return Event{r.Seq, r.ID, r.kind, a}, r.Time
}

// request decides about what is requested of a session.
func (d *decision) request(l *Ledger, r *Request) {
	if r.kind == events.KindForget {
		d.erase()
		return
	}
	if l.LastTurn() == 0 {
		d.reject(events.CodeUnknownSession, l)
		return
	}
	switch b := r.body.(type) {
	case *events.Compact:
		d.manual(l, b)
	case *events.Rewind:
		d.rewind(l, b)
	case *Overflow:
		d.overflow(l, b)
	case *events.Idle:
		if Seq(b.Since) == l.LastTurnSeq() && l.Idle(d.now, d.config) { // else a turn has come since it was written
			d.clear(l.fork(), events.ReasonIdle, (*stage.Draft).ClearIdle)
		}
	case nil: // the end
		d.abort(l, l)
	}
}

// answer takes what a request changes whatever its outcomes.
func (l *Ledger) answer(r *Request) {
	switch b := r.body.(type) {
	case *events.Compact:
		l.breaker = breaker{} // a request by hand tries again
	case *Overflow:
		l.overflowed(b)
	case *events.Idle:
		l.idleHandled = l.idleHandled || Seq(b.Since) == l.LastTurnSeq()
	case nil: // session.end or session.forget
		*l = *NewLedger(l.Address)
	}
}

// rewind emits the view of an earlier generation, with every turn since.
func (d *decision) rewind(l *Ledger, r *events.Rewind) {
	var to int64
	ok := true
	if r.Generation != nil {
		to = *r.Generation
	} else {
		to, ok = l.undone(r.Steps)
	}
	if !ok || to > l.Generation() {
		d.reject(events.CodeUnknownGeneration, l)
		return
	}
	next := l.fork()
	next.job, next.prepared = nil, nil
	if l.compaction(to) == l.compaction(l.Generation()) { // it is in view
		d.emitUnchanged(l, events.ReasonRewind, events.CodeNothingToDo)
		return
	}
	next.generations = append(next.generations, generation{From: to})
	h := l.history()
	h.View = func(out []Entry) []Entry { return append(out, next.visibleAt(next.Generation())...) }
	plan := budgeted{Plan: h.Plan(0), total: next.cache.thresholds.Target}
	plan.Before = l.draft().Repaired()
	next.generations = next.generations[:l.Generation()]
	d.emitPlan(next, plan, events.ReasonRewind).RewoundTo = &to
	d.abort(l, next)
}

// erase emits that a session counts as never published. The ledger is not looked up, and
// nothing else is emitted, not even an answer to an open request: once the session is
// erased, the same event finds no turns before it, and must have the same outcome.
func (d *decision) erase() {
	d.emit(events.KindForgotten, func(h events.Header) any {
		return &events.Forgotten{Header: h, Config: d.config.Hash(), CausedBy: d.cause(), Seq: uint64(d.event.Seq)}
	})
}
