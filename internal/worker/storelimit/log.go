package storelimit

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Log keeps one tenant from filling SESSIONS for the others, for events that workers publish.
type Log struct{ share }

// NewLog returns a limit that has counted nothing yet.
func NewLog(js jetstream.JetStream, held, most int64) *Log {
	return &Log{share{js: js, stream: topology.LogStream, held: held, most: most, since: tally{}, count: func(ctx context.Context, last uint64, found tally) error {
		return stream.ReadLogSizes(ctx, js, last, func(tenant string, bytes int64) { found.add(tenant, bytes+envelope) })
	}}}
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
	l.charge(tenant, n)
}
