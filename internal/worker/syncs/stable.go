package syncs

import (
	"sync"
	"time"

	"compactd/internal/align"
	"compactd/internal/events"
)

const (
	// A history is unstable after unstableAfter requests in a row that differ at one index, or
	// tailAfter requests in a row that differ at its end.
	unstableAfter = 3
	tailAfter     = 2
	// A message is stable again after stableAfter growing requests without a change. The number
	// doubles each time that the message changes again, up to maxStable.
	stableAfter = 2
	maxStable   = 64
	// maxTail limits the messages of an end that changes.
	maxTail = 4

	// Limits on remembered histories.
	maxUnstable   = 10_000
	unstableReset = 10 * time.Minute
)

// stability remembers at which index the histories of sessions differ from request to request. It is a
// hint: a worker without it first publishes a turn or two that are then retracted.
type stability struct {
	mu sync.Mutex
	at map[events.Address]*unstable
}

// unstable describes the last differences of a history.
type unstable struct {
	index int // of the last difference, or −1
	times int // differences in a row at the index
	tails int // differences in a row near the end of the session, each at a higher index
	tail  int // number of messages in the end that changes
	watch watch
	after int // requests in a row without a change until it is stable
	last  time.Time
}

// stays compares a history with the watched part, and reports whether the part is stable again. The
// next difference makes it unstable at once.
func (u *unstable) stays(h *align.History) bool {
	if !u.watch.stays(h, u.after) {
		return false
	}
	u.times, u.tails = min(u.times, unstableAfter-1), min(u.tails, tailAfter-1)
	u.watch, u.after = watch{}, min(2*u.after, maxStable)
	return true
}

// watch is an unpublished part of the history in the last request.
type watch struct {
	from, to int
	digest   events.Digest
	length   int // of the history
	same     int // longer requests in a row with the same part
}

// stays compares a history with the part, and reports whether the part was the same after times in a row.
func (w *watch) stays(h *align.History, after int) bool {
	if w.to == 0 || w.to > h.Len() || w.from < h.Before {
		return false
	}
	switch grew := h.Len() > w.length; {
	case w.digestIn(h) != w.digest:
		w.same = 0
	case grew:
		w.same++
	}
	return w.same >= after
}

func (w *watch) digestIn(h *align.History) events.Digest {
	return h.Format.DigestOf(h.From(w.from)[:w.to-w.from])
}

// set watches the messages from ≤ i < to.
func (w *watch) set(h *align.History, from, to int) {
	*w = watch{from: from, to: to, length: h.Len(), same: w.same}
	w.digest = w.digestIn(h)
}

// of returns the entry of a session, and creates a missing one. The caller holds u.mu.
func (u *stability) of(a events.Address) *unstable {
	if u.at == nil || len(u.at) >= maxUnstable {
		u.at = map[events.Address]*unstable{}
	}
	x := u.at[a]
	if x == nil || time.Since(x.last) > unstableReset {
		x = &unstable{index: -1, after: stableAfter}
		u.at[a] = x
	}
	x.last = time.Now()
	return x
}

// differs records that a history differs from the session from an index on, and reports whether it
// differs there in each request. end is the index of the session's end.
func (u *stability) differs(a events.Address, h *align.History, index, end int) bool {
	if h.Len() < end && index > h.Lead { // the agent went back
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	x := u.of(a)
	if index != x.index {
		if end-index > maxTail || h.Len() == end || index < x.index {
			x.tails, x.tail = 0, 0
		}
		if x.tails >= tailAfter { // the end is not published
			x.tail = min(x.tail+end-index, 2*maxTail)
		} else {
			x.watch = watch{}
			if end-index <= maxTail && h.Len() > end {
				x.tails, x.tail = x.tails+1, end-index
			}
		}
		x.index, x.times = index, 0
	} else {
		x.tails, x.tail = 0, 0
	}
	x.times++
	if x.times < unstableAfter {
		return false
	}
	if x.stays(h) {
		return false
	}
	x.watch.set(h, index, index+1)
	return true
}

// until returns the index up to which a history is published: a later end changes with each request.
// known is the index of the session's end.
func (u *stability) until(a events.Address, h *align.History, known int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := h.Len()
	if x := u.at[a]; x == nil || x.tails < tailAfter {
		return n
	}
	x := u.of(a)
	if x.tails < tailAfter {
		return n
	}
	if x.stays(h) {
		return n
	}
	from := max(known, n-x.tail)
	if from < n {
		x.watch.set(h, from, n)
	}
	return from
}

// held returns the number of messages at the end of a history that are not published because they
// change with each request.
func (u *stability) held(a events.Address) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.at[a]; x != nil && x.tails >= tailAfter {
		return x.tail
	}
	return 0
}
