package compaction

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// Request is an event with a request about a session, beside its turns.
type Request struct {
	Seq  measure.Seq
	ID   string
	Time int64 // of the log, in Unix milliseconds

	kind events.Kind
	body any // *events.Compact, *events.Rewind, *events.Idle, *events.Branch or *Overflow; nil for session.end and session.forget
}

// NewCompact makes the request of a session.compact.
func NewCompact(c *events.Compact, seq measure.Seq) *Request {
	return &Request{Seq: seq, ID: c.ID, kind: events.KindCompact, body: c}
}

// NewRewind makes the request of a session.rewind.
func NewRewind(w *events.Rewind, seq measure.Seq) *Request {
	return &Request{Seq: seq, ID: w.ID, kind: events.KindRewind, body: w}
}

// NewIdle makes the request of a session.idle.
func NewIdle(i *events.Idle, seq measure.Seq) *Request {
	return &Request{Seq: seq, ID: i.ID, kind: events.KindIdle, body: i}
}

// NewBranch makes the request of a session.branch.
func NewBranch(b *events.Branch, seq measure.Seq) *Request {
	return &Request{Seq: seq, ID: b.ID, kind: events.KindBranch, body: b}
}

// NewEnd makes the request of a session.end.
func NewEnd(e *events.End, seq measure.Seq) *Request {
	return &Request{Seq: seq, ID: e.ID, kind: events.KindEnd}
}

// NewForget makes the request of a session.forget.
func NewForget(e *events.Erasure, seq measure.Seq) *Request {
	return &Request{Seq: seq, ID: e.ID, kind: events.KindForget}
}

func (r *Request) event(a events.Address) (Event, int64) {
	return Event{r.Seq, r.ID, r.kind, a}, r.Time
}

// request decides about a request.
func (d *decision) request(l *Ledger, r *Request) {
	if r.kind == events.KindForget {
		d.erase()
		return
	}
	if _, ok := r.body.(*events.Branch); ok { // no client waits, so it is never refused
		return
	}
	if l.LastTurn() == 0 {
		d.reject(events.CodeUnknownSession, l)
		return
	}
	if l.worked(r).Entries > maxWork {
		d.reject(events.CodeTooMuchWork, l)
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
		if measure.Seq(b.Since) == l.LastTurnSeq() && l.Idle(d.now, d.config) { // else a turn has come since it was written
			d.idle(l.fork())
		}
	case nil: // the end
		d.abort(l, l)
	}
}

// idle clears content of a session whose cache is cold, so that it is not sent again.
func (d *decision) idle(l *Ledger) {
	if l.cache.policy.Prune.IdleAfter() > 0 {
		d.clear(l, events.ReasonIdle, (*stage.Draft).ClearIdle)
		return
	}
	plan := l.planForCost()
	if measure.Reaches(l.saved(&plan), l.thresholds().Available, retryShare) {
		d.emitPlan(l, plan, events.ReasonIdle)
	}
}

// applyRequest makes the changes of a request that do not depend on its outcomes.
func (l *Ledger) applyRequest(r *Request) {
	l.work = l.worked(r)
	switch b := r.body.(type) {
	case *events.Compact:
		l.breaker = breaker{} // a request by hand tries again
	case *Overflow:
		l.overflowed(b)
	case *events.Idle:
		l.idleHandled = l.idleHandled || measure.Seq(b.Since) == l.LastTurnSeq()
	case *events.Branch:
		l.addBranch(b.Branch, r.Seq)
	case nil: // session.end or session.forget
		*l = *NewLedger(l.Address)
	}
}

// erase emits that a session counts as never published. It does not use the ledger, and emits nothing else,
// not even an answer to an open request: once the session is erased, the same event finds no turns before it,
// and must have the same outcome.
func (d *decision) erase() {
	d.emit(events.KindForgotten, func(h events.Header) any {
		return &events.Forgotten{Header: h, Config: d.config.Hash(), CausedBy: d.cause(), Seq: uint64(d.event.Seq)}
	})
}

// work is the number of entries that requests of a session went through. It drains with the time of the log.
type work struct {
	Entries int64 `json:"entries,omitzero"`
	At      int64 `json:"at_ms,omitzero"` // Unix milliseconds
}

const (
	// maxWork is the number of entries that rewinds and compactions by hand may go through at once, and in an
	// hour: 200 requests in a session of 20,000, a second's work, which events of 16 bytes can cause. A
	// single request is always within it.
	maxWork = 4_000_000
	workMS  = 3_600_000
	// leastWork is the minimum for a request.
	leastWork = 256
)

// worked is the work of the session including a request.
func (l *Ledger) worked(r *Request) work {
	switch r.body.(type) {
	case *events.Compact, *events.Rewind:
	default:
		return l.work
	}
	passed := min(max(r.Time-l.work.At, 0), workMS)
	left := max(l.work.Entries-passed*maxWork/workMS, 0)
	return work{left + min(max(int64(l.entries.n+len(l.edits)), leastWork), maxWork), max(r.Time, l.work.At)}
}
