package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/trace"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/policies"
	"compactd/internal/worker/spending"
	"compactd/internal/worker/syncs"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxSummaries limits the files of one request that are summarized at once.
	maxSummaries = 4
	// AnswerTimeout bounds an answer, the wait for its turn included.
	AnswerTimeout = 10 * time.Second
	// LongestAnswer bounds an answer that waits for models.
	LongestAnswer = events.MaxSummaryWait + AnswerTimeout
	// maxAnswerBytes bounds a page of a history.
	maxAnswerBytes = 4 << 20
	// answerMargin is the distance of a page from the server's max_payload, in bytes.
	answerMargin = 64 << 10
	// commitPause is the pause between two reads of the committed position.
	commitPause = 2 * time.Millisecond
)

// Reasons of a refusal; the caller may send the request again.
var (
	ErrNotServed = errors.New("the partition of this session is not served yet")
	ErrBusy      = limit.ErrBusy
	ErrStopping  = errors.New("the worker is stopping")
)

// errOtherTenant: a permission for a subject must not reach other tenants.
var errOtherTenant = errors.New("the request names another tenant than its subject")

// Config describes a [Service]. All fields but Limiter and Summarizer are required.
type Config struct {
	Read, Commit *nats.Conn
	Answers      *nats.Conn          // reads what answers need
	Publish      jetstream.JetStream // of a user that may publish what agents publish
	JS           jetstream.JetStream
	Partitions   *partition.Set
	Limiter      *limit.Limiter       // nil: its own
	Summarizer   summarize.Summarizer // of attached files, if it supports them; nil: the embedded summarizer
	Listener     observe.Listener
	Owner        string             // of the worker
	HTTP         string             // address of its console, "" for none
	Board        *observe.Board     // nil: an empty one
	Policies     *policies.Policies // of tenants; nil follows none
	Audit        *audit.Log         // of operators; nil records nothing
	Spending     *spending.Spending // of tenants; nil adds up nothing
	WhatIf       WhatIf             // nil compares no policies
	Version      string             // of the program
	Ready        <-chan struct{}    // closed when the worker is caught up
	Subscribed   func()             // called when requests come in from now on
}

// Service answers requests. It holds a partition's lock only to copy from the ledger; it reads and
// renders texts outside the lock.
type Service struct {
	config     Config
	operations []Operation

	limiter   *limit.Limiter
	running   atomic.Int64 // answers
	syncer    *syncs.Syncer
	answering context.Context //nolint:containedctx // ends with Run: then no answer is given any more
	end       context.CancelFunc
}

// New returns a service that answers over NATS once it runs.
func New(c Config) *Service {
	s := &Service{config: c, operations: Operations(), limiter: c.Limiter}
	if s.limiter == nil {
		s.limiter = limit.New(limit.Config{})
	}
	if s.config.Board == nil {
		s.config.Board = observe.NewBoard()
	}
	s.syncer = syncs.New(s, syncs.Config{Compaction: c.Partitions.Compaction, Texts: c.Partitions.Payloads, MaxBytes: s.maxEvent})
	s.answering, s.end = context.WithCancel(context.Background())
	return s
}

// Limiter is the limiter of all requests.
func (s *Service) Limiter() *limit.Limiter { return s.limiter }

// Compaction is the config in force.
func (s *Service) Compaction() *compaction.Config { return s.config.Partitions.Compaction() }

// Answers is the connection that reads what answers need.
func (s *Service) Answers() *nats.Conn { return s.config.Answers }

// Serving returns the service, unless it has ended or its worker is not ready yet.
func (s *Service) Serving() (*Service, error) {
	if s.answering.Err() != nil {
		return nil, ErrStopping
	}
	select {
	case <-s.config.Ready:
		return s, nil
	default:
		return nil, ErrNotServed
	}
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

// answer answers a request; if another worker serves the session, it passes the request on.
func (s *Service) answer(ctx context.Context, o *Operation, request []byte) ([]byte, error) {
	c, err := s.decode(ctx, o, request)
	if err == nil {
		err = s.allowed(ctx, c)
	}
	if err == nil {
		err = s.recorded(ctx, o, c)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.serve(ctx, o, c, false)
	if err != nil {
		return nil, err
	}
	return s.encode(ctx, out)
}

// decode reads a request once it has a processor.
func (s *Service) decode(ctx context.Context, o *Operation, request []byte) (c *call, err error) {
	defer recovered(&err)
	limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	if err := limit.Of(ctx).ComputeOver(limited, limit.Weight(request)); err != nil {
		return nil, orEnded(limited, err)
	}
	if c, err = o.decode(s, request); err != nil {
		return nil, err
	}
	return c, orEnded(limited, limit.Of(ctx).Yield(limited))
}

// encode writes an answer. A panic fails this answer alone.
func (s *Service) encode(ctx context.Context, out any) (_ []byte, err error) {
	defer recovered(&err)
	if data, ok := out.(codec.Raw); ok { // of another worker
		return data, nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	if err := limit.Of(ctx).Yield(limited); err != nil {
		return nil, orEnded(limited, err)
	}
	data, err := codec.Marshal(out)
	if err != nil {
		return nil, err
	}
	if most := connect.MaxPayload(s.config.Read); len(data) > most {
		return nil, tooLarge(out, len(data), most)
	}
	limit.Of(ctx).Rest() // a slow reader may follow
	return data, nil
}

// tooLarge refuses an answer of more bytes than a message may have.
func tooLarge(out any, bytes, most int) error {
	e := events.Refuse(events.CodeTooLarge, fmt.Sprintf("the answer has %d bytes, more than the %d of a message", bytes, most), "Raise max_payload of the server: one value is larger than a page.")
	if _, synced := out.(*events.SyncResponse); synced {
		e.Hint = "Send the same sync with the form parts, which repeats no message that you have; this one was recorded."
	}
	return e
}

// anyWorker is the partition of a request that any worker can answer.
const anyWorker = -1

// elsewhere reports whether another worker has to answer.
func (s *Service) elsewhere(c *call) bool {
	return c.partition != anyWorker && s.config.Partitions.At(c.partition) == nil
}

// serve answers a request, and holds the places that it needs meanwhile. The answer of another
// worker is an [codec.Raw]. A panic fails this answer alone.
func (s *Service) serve(ctx context.Context, o *Operation, c *call, alone bool) (_ any, err error) {
	defer recovered(&err)
	s.running.Add(1)
	defer s.running.Add(-1)
	if o.syncs {
		var end func(error)
		ctx, end = trace.Start(ctx, o.Name, events.Address{Tenant: c.tenant, Session: c.session})
		defer func() { end(err) }()
	}
	if c.wait.Waits() {
		return held(ctx, limit.Of(ctx), limit.Waits, func() (any, error) { return s.awaitAndAnswer(ctx, o, c, alone) })
	}
	return s.following(ctx, c, alone, func() (any, error) { return s.serveNow(ctx, o, c, alone) })
}

// serveNow answers a request that waits for no event, here or through the worker that serves the
// partition.
func (s *Service) serveNow(ctx context.Context, o *Operation, c *call, alone bool) (any, error) {
	switch op := limit.Of(ctx); {
	case s.elsewhere(c) && !alone:
		out, err := held(ctx, op, limit.Forwards, func() (any, error) {
			request, err := c.payload()
			if err != nil {
				return nil, err
			}
			return s.ownerAnswer(ctx, o, c, request)
		})
		return counted(ctx, o, out, err)
	case o.syncs || o.long:
		limited, cancel := context.WithTimeoutCause(ctx, o.limit(), ErrBusy)
		defer cancel()
		defer context.AfterFunc(s.answering, cancel)()
		return held(limited, op, limit.Waits, func() (any, error) { return s.run(limited, o, c) })
	default:
		return s.run(ctx, o, c)
	}
}

// held calls fn with a place of a class. It waits for the place without a processor, which the
// holder of a place may need.
func held[A any](ctx context.Context, op *limit.Operation, class limit.Class, fn func() (A, error)) (A, error) {
	limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	release := func() {}
	err := op.Idle(limited, func() (err error) {
		release, err = op.Hold(limited, class)
		return err
	})
	defer release()
	if err != nil {
		var none A
		return none, orEnded(limited, err)
	}
	return fn()
}

// run answers a request here.
func (s *Service) run(ctx context.Context, o *Operation, c *call) (any, error) {
	limited, cancel := context.WithTimeoutCause(ctx, o.limit(), ErrBusy)
	defer cancel()
	if !o.slow || o.steps {
		return c.answer(limited)
	}
	return Reading(limited, func() (any, error) { return c.answer(limited) })
}

// recovered makes an error of a panic.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("answer: panic: %v", r)
	}
}

// whyEnded returns the reason why ctx ended.
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

// refuse is [Refusal], and reports unexpected errors to the listener.
func (s *Service) refuse(err error) *events.ServiceError {
	e := Refusal(err)
	if _, elsewhere := errors.AsType[*events.ServiceError](err); e.Code == events.CodeInternal && !elsewhere {
		s.config.Listener.Retry(-1, "answer", err)
	}
	return e
}

// Refusal turns an error into the one that the caller receives.
func Refusal(err error) *events.ServiceError {
	bad, invalid := errors.AsType[*events.Invalid](err)
	_, gone := errors.AsType[*stream.GoneError](err)
	if refused, ok := errors.AsType[*events.ServiceError](err); ok {
		return refused // by another worker
	}
	switch {
	case errors.Is(err, errOtherTenant):
		return events.Refuse(events.CodeForbidden, err.Error(), "Name the tenant of the subject in the payload too.")
	case invalid:
		return events.Refuse(bad.Code(), bad.Error(), bad.Hint())
	case jsapi.Unreachable(err), errors.As(err, new(*jetstream.APIError)):
		return events.Refuse(events.CodeUnavailable, "the server of the streams gives no answer now", "Ask again in a moment.")
	case errors.Is(err, ErrNotServed), errors.Is(err, ErrBusy), errors.Is(err, ErrStopping):
		return events.Refuse(events.CodeUnavailable, err.Error(), "Ask again in a moment.")
	case errors.Is(err, partition.ErrMoved):
		return events.Refuse(events.CodeWrongPartition, err.Error(), "Read the partitions of the log again.")
	case gone:
		return events.Refuse(events.CodeGone, "a text of this session is no longer in the log", "Send the whole history again with replaces_from 1.")
	}
	return events.Refuse(events.CodeInternal, "a defect of the worker kept it from answering", "See the log of the worker, and report it.")
}
