package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/micro"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/partition"

	"github.com/nats-io/nats.go"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxAnswers is how many histories are rendered at once.
	maxAnswers = 8
	// AnswerTimeout bounds an answer, the wait for its turn included.
	AnswerTimeout = 10 * time.Second
	// maxAnswerBytes bounds a page of a history.
	maxAnswerBytes = 4 << 20
	// answerMargin is what a page stays below the server's max_payload.
	answerMargin = 64 << 10
	// commitPause is how long an answer waits between two looks at what is
	// committed.
	commitPause = 2 * time.Millisecond
)

// Why a request is refused; the caller may send it again.
var (
	ErrNotServed = errors.New("the partition of this session is not served yet")
	ErrBusy      = errors.New("the worker could not answer in time")
	ErrStopping  = errors.New("the worker is stopping")
)

// Config describes a [service]. All fields are required.
type Config struct {
	Read, Commit *nats.Conn
	JS           jetstream.JetStream
	Partitions   *partition.Set
	Compaction   *compaction.Config
	Listener     observe.Listener
	Owner        string                                  // of the worker
	Version      string                                  // of the program
	Ready        <-chan struct{}                         // closed when the worker is caught up
	Subscribed   func()                                  // called when requests come in from now on
	Describe     func(endpoint string) map[string]string // metadata of an endpoint for discovery
}

// Service answers requests. It holds a partition's lock only to copy what the
// ledger holds; texts are read and rendered outside.
type Service struct {
	config Config
	slots  chan struct{} // one for each answer that is being rendered

	forwards chan struct{} // has one for each question that is sent to another worker
	awaiting chan struct{} // has one for each request that waits for a turn
	ended    chan struct{} // closed when no answer is given any more
}

// New returns a service that answers once it runs.
func New(c Config) *Service {
	return &Service{
		config: c, slots: make(chan struct{}, maxAnswers), forwards: make(chan struct{}, maxForwards),
		awaiting: make(chan struct{}, maxAwaiting), ended: make(chan struct{}),
	}
}

// endpoint is what may be requested, whatever way the request comes.
type endpoint struct {
	name, subject string
	answer        func(context.Context, []byte) (any, error)
	slow          bool // reads the log: each answer has a slot
	awaits        bool // a request may wait for a turn
	// partition returns whose question it is: only the worker that serves the partition
	// can answer. Nil leaves it to any worker. An error leaves it to any, too: the
	// answer reports what is wrong.
	partition func(request []byte) (int, error)
}

func (s *Service) endpoints() []endpoint {
	return []endpoint{
		{"check", events.SubjectCheck, s.check, false, true, s.partitionOf},
		{"context", events.SubjectContext, s.context, true, true, s.partitionOf},
		{"files", events.SubjectFiles, s.files, true, false, s.partitionOf},
		{"history", events.SubjectHistory, s.compactions, true, false, s.partitionOf},
		{"recall", events.SubjectRecall, s.recall, true, false, s.partitionOf},
		{"sessions", events.SubjectSessions, s.sessions, true, false, s.partitionAfter},
		{"stats", events.SubjectStats, s.stats, false, true, s.partitionOf},
		{"health", events.SubjectHealth, s.health, false, false, nil},
	}
}

// partitionOf is the partition of the session that a request is about.
func (s *Service) partitionOf(request []byte) (int, error) {
	a, err := events.RequestAddress(request)
	return events.PartitionOf(a, s.config.Partitions.Count()), err
}

// Run answers until ctx ends, and returns when the last answer is given, or until does.
func (s *Service) Run(ctx, until context.Context) error {
	svc, err := micro.AddService(s.config.Read, micro.Config{
		Name: events.ServiceName, Version: strconv.Itoa(events.Version) + ".0.0", // of the contract: a program's need not be semantic
		Description: "answers questions about the sessions of compactd",
		Metadata:    map[string]string{"version": s.config.Version, "owner": s.config.Owner},
	})
	if err != nil {
		return fmt.Errorf("start service: %w", err)
	}
	defer func() { _ = svc.Stop() }() // fails only on a closed connection, where nothing is left to stop
	for _, e := range s.endpoints() {
		guarded := func(ctx context.Context, r micro.Request) {
			if mayReply(r.Reply()) && !s.takeAwaiting(ctx, e, r, false) && !s.forward(ctx, e, r) {
				s.handle(ctx, e, r)
			}
		}
		if err := svc.AddEndpoint(e.name, micro.ContextHandler(ctx, guarded), micro.WithEndpointSubject(e.subject), micro.WithEndpointMetadata(s.config.Describe(e.name))); err != nil {
			return fmt.Errorf("start service: endpoint %s: %w", e.name, err)
		}
		if err := s.addOfTenant(ctx, svc, e, guarded); err != nil {
			return fmt.Errorf("start service: endpoint %s: %w", e.name, err)
		}
	}
	if err := s.config.Read.FlushTimeout(AnswerTimeout); err != nil && ctx.Err() == nil {
		return fmt.Errorf("start service: %w", err)
	}
	s.config.Subscribed() // the server sends questions here from now on
	<-ctx.Done()
	close(s.ended)
	_ = svc.Stop()
	if nc := s.config.Read; nc.IsConnected() {
		_ = nc.FlushTimeout(time.Second) // the server sends no request here any more; if not, the caller waits in vain
	}
	for range maxAnswers { // from here on none begins
		select {
		case s.slots <- struct{}{}:
		case <-until.Done():
			return nil
		}
	}
	return nil
}

// mayReply reports whether answers may go to a subject: a request must not make
// the worker publish where others may not.
func mayReply(subject string) bool {
	root, _, _ := strings.Cut(subject, ".")
	switch root {
	case "", "session", "log", "out", events.ServiceName:
		return false
	}
	return root[0] != '$'
}

// handle answers a request that this worker was sent.
func (s *Service) handle(ctx context.Context, e endpoint, r micro.Request) {
	data := r.Data()
	if e.slow || len(data) > events.MaxRequestBytes { // others of this endpoint would wait for it
		s.answerLater(ctx, r, func(ctx context.Context) (any, error) { return e.answer(ctx, data) })
		return
	}
	s.answer(r, func() (any, error) { return e.answer(ctx, data) })
}

// stats answers how a session stands.
func (s *Service) stats(_ context.Context, data []byte) (any, error) {
	in, err := events.DecodeStatsRequest(data)
	if err != nil {
		return nil, err
	}
	out := &events.StatsResponse{V: events.Version}
	var bad error
	_, _, err = s.inspect(in.Address(), func(l *compaction.Ledger) {
		if !l.HasTurns() {
			return
		}
		var st compaction.Stats
		if st, bad = l.Stats(s.config.Compaction, in.RequestedModel()); bad != nil {
			return
		}
		*out = events.StatsResponse{
			V: events.Version, Known: true, Turns: st.Turns, Messages: int64(st.Messages), Generation: st.Generation,
			Through: st.Through, Parked: int64(st.Parked), Prepared: st.Prepared, Waiting: st.Waiting,
			NeedsCompaction: st.Budget.ShouldCompact, Budget: st.Budget,
		}
	})
	return out, cmp.Or(err, bad)
}

// health answers how this worker is.
func (s *Service) health(context.Context, []byte) (any, error) {
	out := &events.HealthResponse{
		V: events.Version, Status: events.HealthOK,
		Version: s.config.Version, Owner: s.config.Owner, Config: s.config.Compaction.Hash(),
	}
	for id := range s.config.Partitions.Count() {
		if !s.config.Partitions.IsAssigned(id) {
			continue
		}
		if out.Partitions++; s.config.Partitions.At(id) != nil {
			out.Served++
		}
	}
	if out.Served < out.Partitions || !s.config.Commit.IsConnected() {
		out.Status = events.HealthStarting
		select {
		case <-s.config.Ready:
			out.Status = events.HealthDegraded
		default:
		}
	}
	return out, nil
}
