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
	since   tally      // of bytes stored since the last read began
	tenants tally      // of held and added; nil while no tenant can be over its share
	counted time.Time
}

// NewLog returns a limit that has counted nothing yet.
func NewLog(js jetstream.JetStream, held, most int64) *Log {
	return &Log{js: js, held: held, most: most, since: tally{}}
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
	stored := l.beginRead()
	state, err := topology.State(ctx, l.js, topology.LogStream)
	if err != nil || !l.endRead(int64(state.Bytes), state.MaxBytes, stored) {
		return
	}
	found := tally{}
	if stream.ReadLogSizes(ctx, l.js, state.Last, func(tenant string, bytes int64) { found.add(tenant, bytes+envelope) }) == nil {
		l.setTenants(found)
	}
}

// beginRead returns the added bytes that a read of SESSIONS includes if it begins now.
func (l *Log) beginRead() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = tally{}
	return l.added
}

// endRead records a read, and reports whether the bytes of each tenant should be counted.
func (l *Log) endRead(held, most, stored int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.most, l.added = held, most, l.added-stored
	if l.tenants != nil && time.Since(l.counted) < countEvery {
		return false
	}
	nearFull := l.most > 0 && l.held+l.added > timesFree*l.free()
	if !nearFull {
		l.tenants = nil // it still counts events that have expired since
	}
	return nearFull
}

// setTenants records the bytes of each tenant up to the last read.
func (l *Log) setTenants(found tally) {
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
	held := max(l.tenants[tenant], l.since[tenant]) // since counts until SESSIONS is counted
	return n <= free && held+n <= timesFree*free
}

// Stored counts an event.
func (l *Log) Stored(tenant string, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(bytes) + envelope
	l.added += n
	l.since.add(tenant, n)
	l.tenants.add(tenant, n)
}

// free returns the free space of SESSIONS above the reserve. The caller holds mu.
func (l *Log) free() int64 { return max(0, l.most-l.most/reserveParts-l.held-l.added) }
