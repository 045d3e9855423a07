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

// Log keeps one tenant from filling SESSIONS for the others, for events that workers publish. A tenant
// holds at most timesFree times the free space, and the last twentieth is reserved for events other than
// turns, such as erasures.
type Log struct {
	js jetstream.JetStream

	mu      sync.Mutex // guards the fields below
	held    int64      // bytes in the stream at the last read
	most    int64      // bound of the stream; 0 or less without a bound
	added   int64      // bytes stored since
	tenants tally      // of held and added; only of this process until the stream is counted
	since   tally      // the part of tenants stored since the last count of the stream began
	counted time.Time
}

// NewLog returns a limit that has counted nothing yet.
func NewLog(js jetstream.JetStream, held, most int64) *Log {
	return &Log{js: js, held: held, most: most, tenants: tally{}, since: tally{}}
}

// Run follows the size of SESSIONS until ctx ends.
func (l *Log) Run(ctx context.Context) { keepLooking(ctx, l.look, l.adds) }

// adds reports whether the last read may lack bytes.
func (l *Log) adds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.added > 0
}

// look reads the size of SESSIONS. If a tenant may be over its share, it also counts the bytes of
// each tenant. The next look repeats a failed read.
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
	for tenant, bytes := range l.since { // some bytes may count twice
		found.add(tenant, bytes)
	}
	l.tenants, l.counted = found, time.Now()
}

// envelope estimates the stored bytes of an event without its payload.
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

// free returns the free space of SESSIONS above the reserve. The caller holds mu.
func (l *Log) free() int64 { return max(0, l.most-l.most/reserveParts-l.held-l.added) }
