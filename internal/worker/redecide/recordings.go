package redecide

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/weigh"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
)

// Recording holds the decided events of one session.
type Recording struct {
	Address events.Address
	Events  []RecordedEvent
}

// RecordedEvent is one event of a session, with the config of its decision.
type RecordedEvent struct {
	Seq    measure.Seq
	ID     string // of the message, or ""
	Time   int64  // of the log, in Unix milliseconds
	Kind   events.Kind
	Data   []byte
	Config *compaction.Config
}

// ErrOlder: the log no longer has the beginning of the session, so it cannot be decided again.
var ErrOlder = errors.New("it began before the log does")

// ErrTooLarge: the events of the session have more bytes than [Span.Most].
var ErrTooLarge = errors.New("its events are too large")

// Recordings calls fn with each session that has an event in the span, from its first event
// to the last in the span. For a session that cannot be decided again, fn receives the reason and no
// events. Recordings only reads. It holds one session in memory, and the names of all sessions of a
// partition and of those split off from it.
func Recordings(ctx context.Context, nc *nats.Conn, s Span, counters []weigh.Counter, fn func(Recording, error) error) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("read sessions: %w", err)
	}
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		return fmt.Errorf("read sessions: %w", err)
	}
	r := &recorder{js: js, span: s, first: streams.Log.First, configs: outcomelog.NewConfigResolver(js, parseWith(counters))}
	for _, ids := range s.families(streams.Partitions) {
		f, err := readFamily(ctx, nc, js, streams.Partitions, ids)
		if err == nil && f.end > 0 {
			err = r.read(ctx, f, fn)
		}
		if err != nil {
			return fmt.Errorf("read sessions of partitions %v: %w", ids, err)
		}
	}
	return nil
}

// recorder is one call of [Recordings].
type recorder struct {
	js      jetstream.JetStream
	span    Span
	first   uint64 // sequence of the log
	configs *outcomelog.ConfigResolver
}

func (r *recorder) read(ctx context.Context, f *family, fn func(Recording, error) error) error {
	all, err := r.addresses(ctx, f)
	if err != nil {
		return err
	}
	for _, a := range all {
		found, err := r.session(ctx, f, a)
		unknown, ok := errors.AsType[*outcomelog.UnknownConfigError](err)
		switch {
		case errors.Is(err, ErrOlder), errors.Is(err, ErrTooLarge):
			err = fn(Recording{Address: a}, err)
		case ok:
			err = fn(Recording{Address: a}, unknown)
		case err == nil:
			err = fn(found, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addresses returns the sessions with an event in the span, in the order of their first
// one there.
func (r *recorder) addresses(ctx context.Context, f *family) (out []events.Address, err error) {
	seen := map[events.Address]bool{}
	headers := stream.Selection{Filters: r.span.logFilters(f.ids), UpTo: f.end, HeadersOnly: true}
	_, err = r.span.read(ctx, r.js, headers, func(e decide.Event) error {
		_, decided := f.decider(&e)
		if decided != nil && !r.span.From.after(&e) && !seen[e.Address] && e.Address.Validate() == nil {
			seen[e.Address] = true
			out = append(out, e.Address)
		}
		return nil
	})
	return out, err
}

// session reads the events of one session.
func (r *recorder) session(ctx context.Context, f *family, a events.Address) (Recording, error) {
	out := Recording{Address: a}
	bytes, one := 0, Span{Tenant: a.Tenant, Session: a.Session, To: r.span.To}
	_, err := one.read(ctx, r.js, stream.Selection{Filters: one.logFilters(f.table.Path(a)), UpTo: f.end}, func(e decide.Event) error {
		_, markers := f.decider(&e)
		if markers == nil {
			return nil
		}
		if len(out.Events) == 0 && r.first > 1 && !begins(e) {
			return ErrOlder
		}
		if bytes += len(e.Data); r.span.Most > 0 && bytes > r.span.Most {
			return ErrTooLarge
		}
		config, err := r.configs.Get(ctx, markers.ConfigAt(e.Seq))
		out.Events = append(out.Events, RecordedEvent{e.Seq, e.ID, e.Time, e.Kind, e.Data, config})
		return err
	})
	return out, err
}
