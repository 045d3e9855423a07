package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
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
	// what Speed asks for.
	Gap time.Duration
	// Speed is how many times faster than recorded the turns come; 0 does not
	// wait at all. A recorded pause counts as at most MaxPause.
	Speed float64
	// Parallel is the number of sessions at once. Default 4.
	Parallel int
	// Progress is told after each turn; nil for none.
	Progress func()
}

// MaxPause bounds a recorded pause between two turns, before Speed.
const MaxPause = time.Minute

// settleTimeout is how long the workers may be silent about what was published,
// and listenTimeout how long what is stored may take to be heard.
const (
	settleTimeout = 2 * time.Minute
	listenTimeout = 5 * time.Second
)

// Run replays the sessions and waits until the workers have decided on all of
// their turns. Only those that are being published are taken from sessions.
func Run(ctx context.Context, c Config, sessions iter.Seq[transcript.Session]) (*Report, error) {
	c.Tenant = cmp.Or(c.Tenant, events.DefaultTenant)
	c.Parallel = cmp.Or(c.Parallel, 4)
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &run{config: c, js: js, streams: streams, published: map[uint64]time.Time{}, heard: map[string]time.Time{}}
	sub, err := c.Conn.Subscribe(events.Published(events.KindCompacted, events.Address{Tenant: c.Tenant, Session: "*"}), r.hear)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection may be gone
	if err := sub.SetPendingLimits(-1, -1); err != nil {
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
	streams *topology.Streams
	seen    []*SessionReport // by publish, in the order of the sessions

	mu        sync.Mutex           // guards the fields below
	published map[uint64]time.Time // by sequence: when the turn was sent
	heard     map[string]time.Time // by id of the outcome
	last      uint64               // sequence of the last turn published

	duplicates int // turns whose id the server had
}

func (r *run) publish(ctx context.Context, sessions iter.Seq[transcript.Session]) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.config.Parallel)
	for s := range sessions {
		if ctx.Err() != nil {
			break
		}
		r.seen = append(r.seen, newSessionReport(r.address(s), s))
		g.Go(func() error {
			var before time.Time
			for _, t := range s.Turns {
				if err := r.pause(ctx, before, t.At); err != nil {
					return err
				}
				before = t.At
				if err := r.send(ctx, s, t); err != nil {
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

func (r *run) send(ctx context.Context, s transcript.Session, t transcript.Turn) error {
	began := time.Now()
	a := r.address(s)
	ack, err := Persist(ctx, r.js, events.KindTurn, a, MessageID(a, t.ID), t.Payload)
	_, repeated := errors.AsType[*DuplicateError](err)
	if repeated { // of an earlier replay, or of another tenant: workers ignore a turn that they have
		ack, err = Persist(ctx, r.js, events.KindTurn, a, uuid.NewString(), t.Payload)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	if repeated {
		r.duplicates++
	}
	r.published[ack.Sequence] = began
	r.last = max(r.last, ack.Sequence)
	r.mu.Unlock()
	if r.config.Progress != nil {
		r.config.Progress()
	}
	return nil
}

// retryFor is how long an event without an answer is sent again, as an agent would.
const retryFor = time.Minute

// CodeDuplicateID names a [*DuplicateError] to programs.
const CodeDuplicateID events.Code = "client_duplicate_id"

// DuplicateError says that the server has the message id of an event that was sent for
// the first time: nothing was stored of the event. The message that has the id is an
// earlier copy, or one of another tenant, for the server compares ids over all of them.
type DuplicateError struct {
	ID  string
	Seq uint64 // of the message that has the id
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("nothing was stored: the server has a message of the id %s already, at sequence %d", e.ID, e.Seq)
}

// Persist publishes an event until it is acknowledged, for a minute at most: under
// one id it is stored once, however often it is sent. A duplicate of a first try is a
// [*DuplicateError]; one that follows a try without an answer is that try.
func Persist(ctx context.Context, js jetstream.JetStream, k events.Kind, a events.Address, id string, payload []byte) (*jetstream.PubAck, error) {
	until, unknown := time.Now().Add(retryFor), false
	for {
		ack, err := Publish(ctx, js, k, a, id, payload)
		taken, repeated := errors.AsType[*DuplicateError](err)
		if repeated && unknown {
			return &jetstream.PubAck{Stream: topology.LogStream, Sequence: taken.Seq, Duplicate: true}, nil
		}
		if err == nil || ctx.Err() != nil || time.Now().After(until) || !unanswered(err) && !jsapi.InProcess(err) {
			return ack, err
		}
		unknown = unknown || !nobody(err) && !jsapi.InProcess(err)
		time.Sleep(100 * time.Millisecond) // a reconnect takes about as long
	}
}

// space is the namespace of message ids.
var space = uuid.MustParse("3b1f6f43-9f0f-5d2e-8d0b-5a1f2f3b6c77")

// MessageID is the Nats-Msg-Id of an event that has the same one whenever it is
// published: it is bound to tenant and session. "" where the event has no id.
func MessageID(a events.Address, id string) string {
	if id == "" {
		return ""
	}
	return uuid.NewSHA1(space, fmt.Appendf(nil, "%s\x00%s\x00%s", a.Tenant, a.Session, id)).String()
}

// unanswered reports whether nobody said if the event was stored.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || nobody(err)
}

// nobody reports whether no stream was there to store the event.
func nobody(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
}

func (r *run) address(s transcript.Session) events.Address {
	return events.Address{Tenant: r.config.Tenant, Session: s.Name + r.config.Suffix}
}

func (r *run) hear(m *nats.Msg) {
	now := time.Now()
	var h events.Header
	if events.Unmarshal(m.Data, &h) != nil {
		return // counted as undelivered
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard[h.ID] = now
}

// Publish publishes an event of any kind, once, and returns where it is in the log. A
// duplicate is a [*DuplicateError].
func Publish(ctx context.Context, js jetstream.JetStream, k events.Kind, a events.Address, id string, payload []byte) (*jetstream.PubAck, error) {
	subject, err := events.Input(k, a)
	if err != nil {
		return nil, err
	}
	if limit := connect.MaxPayload(js.Conn()); len(payload)+1024 > limit {
		return nil, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("the event has %d bytes; the server takes %d", len(payload), limit))
	}
	m := &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{}}
	if id != "" {
		m.Header.Set(nats.MsgIdHdr, id)
	}
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	if ack.Duplicate {
		return nil, fmt.Errorf("publish: %w", &DuplicateError{id, ack.Sequence})
	}
	return ack, nil
}
