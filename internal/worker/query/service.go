package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/syncs"

	"github.com/nats-io/nats.go"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxAnswers is how many answers may read the log at once.
	maxAnswers = 8
	// maxForwards is how many requests may wait for the answer of another worker.
	maxForwards = 64
	// maxLong is how many answers may wait for models at once; of these maxSummaries
	// have a file summarized.
	maxLong      = 16
	maxSummaries = 4
	// Of the two, one tenant has at most three quarters.
	maxLongOfTenant      = maxLong * 3 / 4
	maxSummariesOfTenant = maxSummaries * 3 / 4
	// AnswerTimeout bounds an answer, the wait for its turn included.
	AnswerTimeout = 10 * time.Second
	// LongestAnswer bounds one that waits for models.
	LongestAnswer = events.MaxSummaryWait + AnswerTimeout
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

// errOtherTenant: permissions on subjects hold for what is requested.
var errOtherTenant = errors.New("the request names another tenant than its subject")

// Config describes a [Service]. All fields but Summarizer are required.
type Config struct {
	Read, Commit *nats.Conn
	Publish      *nats.Conn // of a user that may publish what agents publish; nil is Read
	JS           jetstream.JetStream
	Partitions   *partition.Set
	Compaction   *compaction.Config
	Summarizer   summarize.Summarizer // of attached files, where it can; nil leaves them to the embedded one
	Listener     observe.Listener
	Owner        string          // of the worker
	Version      string          // of the program
	Ready        <-chan struct{} // closed when the worker is caught up
	Subscribed   func()          // called when requests come in from now on
}

// Service answers requests. It holds a partition's lock only to copy what the
// ledger holds; texts are read and rendered outside.
type Service struct {
	config     Config
	operations []Operation

	slots     places // of answers that read the log
	forwards  places // of requests that are sent to another worker
	fetches   places // of requests that are larger than a message
	awaiting  places // of requests that wait for a turn
	long      places // of answers that may wait for models
	summaries places // of files that are summarized

	longOf, summariesOf *tenantPlaces // of one tenant

	syncs     places // of syncs
	publisher *Publisher
	syncer    *syncs.Syncer
	answering context.Context //nolint:containedctx // ends with Run: then no answer is given any more
	end       context.CancelFunc
}

// New returns a service that answers over NATS once it runs.
func New(c Config) *Service {
	s := &Service{
		config: c, operations: Operations(), slots: make(places, maxAnswers), forwards: make(places, maxForwards), fetches: make(places, maxFetches), awaiting: make(places, maxAwaiting),
		long: make(places, maxLong), summaries: make(places, maxSummaries),
		longOf: newTenantPlaces(maxLongOfTenant), summariesOf: newTenantPlaces(maxSummariesOfTenant), syncs: make(places, maxSyncs),
	}
	var err error
	if s.publisher, err = NewPublisher(cmp.Or(c.Publish, c.Read), c.Read, c.Partitions.Count(), func(err error) { s.retrying(-1, "publish", err) }); err != nil {
		s.retrying(-1, "publish", err) // of options that are constant
	}
	s.syncer = syncs.New(host{s}, c.Compaction)
	s.answering, s.end = context.WithCancel(context.Background())
	return s
}

// places bound what is done at once.
type places chan struct{}

// take is false when all places are taken.
func (p places) take() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

// await waits for a place until ctx ends, and returns why it did.
func (p places) await(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return whyEnded(ctx)
	}
}

func (p places) release() { <-p }

// hold takes a place for a task.
func (p places) hold(t task) (task, error) {
	if !p.take() {
		return nil, ErrBusy
	}
	return func() ([]byte, error) {
		defer p.release()
		return t()
	}, nil
}

// find returns the operation of a name, nil for none.
func (s *Service) find(name string) *Operation {
	for i := range s.operations {
		if s.operations[i].Name == name {
			return &s.operations[i]
		}
	}
	return nil
}

// partitionOf is the partition of the session that a request is about.
func (s *Service) partitionOf(request []byte) (int, error) {
	a, err := events.RequestAddress(request)
	return events.PartitionOf(a, s.config.Partitions.Count()), err
}

// Answer answers a request, by way of the worker that serves the session if it is another
// one. Its error is an [*events.ServiceError].
func (s *Service) Answer(ctx context.Context, o *Operation, request []byte) ([]byte, error) {
	run, _, err := s.admit(ctx, o, request, false)
	var answer []byte
	if err == nil {
		answer, err = run()
	}
	if err != nil {
		return nil, s.refuse(err)
	}
	return answer, nil
}

// Ask is Answer for the operation of a name, for code of this process.
func (s *Service) Ask(ctx context.Context, operation string, request []byte) ([]byte, error) {
	o := s.find(operation)
	if o == nil {
		return nil, fmt.Errorf("there is no operation %q", operation)
	}
	return s.Answer(ctx, o, request)
}

// task answers one request, once, and gives its place back.
type task func() ([]byte, error)

// admit takes the place that a request needs while it is answered, and returns what answers
// it. It is quick where it waits for nothing. Alone keeps it from other workers.
func (s *Service) admit(ctx context.Context, o *Operation, request []byte, alone bool) (t task, quick bool, err error) {
	wait, waits := o.waitsFor(request)
	id, elsewhere := s.ownedElsewhere(o, request)
	switch {
	case waits:
		t, err = s.awaiting.hold(func() ([]byte, error) { return s.awaitAndAnswer(ctx, o, request, wait, alone) })
		return t, false, err
	case elsewhere && !alone:
		t, err = s.forwards.hold(func() ([]byte, error) { return s.ownerAnswer(ctx, id, o, request) })
		return t, false, err
	case o.syncs:
		t, err = s.syncs.hold(func() ([]byte, error) {
			limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
			defer cancel()
			defer context.AfterFunc(s.answering, cancel)()
			return s.answer(limited, o, request)
		})
		return t, false, err
	case o.long:
		t, err = s.long.hold(func() ([]byte, error) {
			limited, cancel := context.WithTimeoutCause(ctx, o.limit(), ErrBusy)
			defer cancel()
			defer context.AfterFunc(s.answering, cancel)()
			return s.answer(limited, o, request)
		})
		return t, false, err
	case o.slow || len(request) > events.MaxRequestBytes: // others of this operation would wait for it
		limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
		if err := s.slots.await(limited); err != nil {
			cancel()
			return nil, false, err
		}
		return func() ([]byte, error) {
			defer cancel()
			defer s.slots.release()
			return s.answer(limited, o, request)
		}, false, nil
	default:
		return func() ([]byte, error) { return s.answer(ctx, o, request) }, true, nil
	}
}

// answer answers a request here. A panic is an error of this answer alone.
func (s *Service) answer(ctx context.Context, o *Operation, request []byte) (data []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("answer: panic: %v", r)
		}
	}()
	v, err := o.answer(s, ctx, request)
	if err != nil {
		return nil, err
	}
	if data, err = events.Marshal(v); err != nil {
		return nil, err
	}
	if most := connect.MaxPayload(s.config.Read); len(data) > most {
		return nil, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("a page with one value of it has %d bytes, more than the %d that the server takes", len(data), most))
	}
	return data, nil
}

// whyEnded returns why the work on an answer ended early.
func whyEnded(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrBusy) {
		return ErrBusy
	}
	return ErrStopping
}

// orEnded returns err, or why ctx ended where that is the reason.
func orEnded(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return whyEnded(ctx)
	}
	return err
}

// refuse is [Refusal], and reports to the listener what was not expected.
func (s *Service) refuse(err error) *events.ServiceError {
	e := Refusal(err)
	if _, elsewhere := errors.AsType[*events.ServiceError](err); e.Code == events.CodeInternal && !elsewhere {
		s.retrying(-1, "answer", err)
	}
	return e
}

func (s *Service) retrying(partition int, step string, err error) {
	observe.Call(s.config.Listener.Retrying, observe.Retrying{Partition: partition, Step: step, Err: err})
}

// Refusal is what the caller receives about an error.
func Refusal(err error) *events.ServiceError {
	e := &events.ServiceError{V: events.Version, Code: events.CodeInternal}
	bad, invalid := errors.AsType[*events.Invalid](err)
	_, gone := errors.AsType[*stream.GoneError](err)
	if refused, ok := errors.AsType[*events.ServiceError](err); ok {
		return refused // by another worker
	}
	switch {
	case errors.Is(err, errOtherTenant):
		e.Code, e.Message, e.Hint = events.CodeForbidden, err.Error(), "Name the tenant of the subject in the payload too."
	case invalid:
		e.Code, e.Message, e.Hint = bad.Code(), bad.Error(), bad.Hint()
	case errors.Is(err, ErrNotServed), errors.Is(err, ErrBusy), errors.Is(err, ErrStopping):
		e.Code, e.Message, e.Hint = events.CodeUnavailable, err.Error(), "Ask again in a moment."
	case gone:
		e.Code, e.Message, e.Hint = events.CodeGone, "a text of this session is no longer in the log", "Send the whole history again with replaces_from 1."
	default:
		e.Message, e.Hint = "a defect of the worker kept it from answering", "See the log of the worker, and report it."
	}
	return e
}
