package storelimit

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Log keeps one tenant from filling SESSIONS for the others, as far as events come through workers: a
// tenant holds at most timesFree times what is free, and the last twentieth is for events that are no
// turns, such as erasures.
type Log struct {
	js jetstream.JetStream

	mu      sync.Mutex // guards the fields below
	held    int64      // bytes that the stream held when it was read
	most    int64      // that it may hold; 0 or less without a bound
	added   int64      // bytes stored since
	tenants tally      // of held and added; of this process alone until all is counted
	since   tally      // of tenants, stored since a count of the stream began
	counted time.Time
}

// NewLog returns a bound that has counted nothing yet.
func NewLog(js jetstream.JetStream, held, most int64) *Log {
	return &Log{js: js, held: held, most: most, tenants: tally{}, since: tally{}}
}

// Run keeps up with what SESSIONS holds until ctx ends.
func (l *Log) Run(ctx context.Context) { keepLooking(ctx, l.look, l.adds) }

// adds reports bytes that the last reading may lack.
func (l *Log) adds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.added > 0
}

// look reads how full SESSIONS is, and, when a tenant may be over its share, who holds it. A
// failed reading is tried again at the next look.
func (l *Log) look(ctx context.Context) {
	l.mu.Lock()
	before := l.added
	l.mu.Unlock()
	state, err := topology.State(ctx, l.js, topology.LogStream)
	if err != nil {
		return
	}
	l.mu.Lock()
	l.held, l.most, l.added = int64(state.Bytes), state.MaxBytes, l.added-before
	due := l.most > 0 && l.held > timesFree*l.free() && time.Since(l.counted) >= countEvery
	if due {
		l.since = tally{}
	}
	l.mu.Unlock()
	if !due {
		return
	}
	found := tally{}
	if stream.ReadLogSizes(ctx, l.js, state.Last, func(tenant string, bytes int64) { found.add(tenant, bytes+envelope) }) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for tenant, bytes := range l.since { // some of it may be counted twice
		found.add(tenant, bytes)
	}
	l.tenants, l.counted = found, time.Now()
}

// envelope is about what the stream stores of an event beside its payload.
const envelope = 200

// Fits reports whether an event may be stored.
func (l *Log) Fits(k events.Kind, tenant string, bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most <= 0 || k != events.KindTurn {
		return true
	}
	n, free := int64(bytes)+envelope, l.free()
	return n <= free && l.tenants[tenant]+n <= timesFree*free
}

// Stored counts an event.
func (l *Log) Stored(tenant string, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added += int64(bytes) + envelope
	for _, t := range []tally{l.tenants, l.since} {
		t.add(tenant, int64(bytes)+envelope)
	}
}

// free is what SESSIONS has room for beside the reserve; mu is held.
func (l *Log) free() int64 { return max(0, l.most-l.most/reserveParts-l.held-l.added) }
