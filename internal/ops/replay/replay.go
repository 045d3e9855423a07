package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/ops/transcript"
)

// Config describes a replay.
type Config struct {
	Conn *nats.Conn
	// Tenant of all sessions. Default events.DefaultTenant.
	Tenant string
	// Suffix is added to the name of each session, to replay it once more.
	Suffix string
	// Gap is a pause before each turn but the first of a session; it is added to
	// what Speed requests.
	Gap time.Duration
	// Speed is how many times faster than recorded the turns come; 0 does not
	// wait at all. A recorded pause counts as at most MaxPause.
	Speed float64
	// Parallel is the number of sessions at once. Default 4.
	Parallel int
	// Received keeps to what a tenant may do: outcomes are received and requested, the streams are not read.
	Received bool
	// Progress is called after each turn; it may be nil.
	Progress func()
	// Waiting is that of [Publisher].
	Waiting func(error)
	// Undecided is called when all is published and no worker is running; it may be nil.
	Undecided func(error)
}

// MaxPause bounds a recorded pause between two turns, before Speed.
const MaxPause = time.Minute

// Run replays the sessions and waits until the workers have decided on all of
// their turns. Only those that are being published are taken from sessions.
func Run(ctx context.Context, c Config, sessions iter.Seq[transcript.Session]) (*Report, error) {
	c.Tenant = cmp.Or(c.Tenant, events.DefaultTenant)
	c.Parallel = cmp.Or(c.Parallel, 4)
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &run{config: c, js: js, log: Publisher{js, c.Waiting}, tracker: newTracker(), index: map[events.Address]*SessionReport{}, causes: map[string]uint64{}}
	kinds := events.OutcomeKinds
	if !c.Received {
		kinds = []events.Kind{events.KindCompacted}
		if r.streams, err = topology.Describe(ctx, js); err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
	}
	stop, err := subscribe(c.Conn, []string{c.Tenant}, kinds, r.receive)
	defer stop()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := r.publish(ctx, sessions); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	report, err := r.report(ctx)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return report, nil
}

// run is one call of Run.
type run struct {
	config  Config
	js      jetstream.JetStream
	log     Publisher
	streams *topology.Streams // nil where they are not read
	seen    []*SessionReport  // by publish, in the order of the sessions
	tracker *tracker

	mu     sync.Mutex // guards index, causes and the reports in it
	index  map[events.Address]*SessionReport
	causes map[string]uint64 // of received compactions, by id

	duplicates atomic.Int64 // turns whose id the server had
}

func (r *run) publish(ctx context.Context, sessions iter.Seq[transcript.Session]) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.config.Parallel)
	for s := range sessions {
		if ctx.Err() != nil {
			break
		}
		report := r.open(s)
		g.Go(func() error {
			var before time.Time
			for _, t := range s.Turns {
				if err := r.pause(ctx, before, t.At); err != nil {
					return err
				}
				before = t.At
				if err := r.send(ctx, report, t); err != nil {
					return fmt.Errorf("session %s, turn %d: %w", s.Name, t.Number, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// pause waits for the gap, and as long as the recorded agent did, made shorter by
// the speed.
func (r *run) pause(ctx context.Context, before, now time.Time) error {
	d := r.config.Gap
	if r.config.Speed > 0 && !before.IsZero() && now.After(before) {
		d += time.Duration(float64(min(now.Sub(before), MaxPause)) / r.config.Speed)
	}
	if d == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open adds the report of a session.
func (r *run) open(s transcript.Session) *SessionReport {
	out := newSessionReport(events.Address{Tenant: r.config.Tenant, Session: s.Name + r.config.Suffix}, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, out)
	r.index[out.address] = out
	return out
}

func (r *run) send(ctx context.Context, s *SessionReport, t transcript.Turn) error {
	began := time.Now()
	a := s.address
	ack, err := r.log.Persist(ctx, events.KindTurn, a, MessageID(a, t.ID), t.Payload)
	_, repeated := errors.AsType[*stream.IDTakenError](err)
	if repeated { // of an earlier replay, or of another tenant: workers ignore a turn that they have
		ack, err = r.log.Persist(ctx, events.KindTurn, a, uuid.NewString(), t.Payload)
	}
	if err != nil {
		return err
	}
	if s.last = ack.Sequence; repeated {
		s.repeated = true
		r.duplicates.Add(1)
	}
	r.tracker.turn(ack.Sequence, began)
	if r.config.Progress != nil {
		r.config.Progress()
	}
	return nil
}
