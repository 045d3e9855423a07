package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/erase"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/spending"
)

const (
	// jobAckWait is the time without a renewal after which the server delivers a job to another
	// worker.
	jobAckWait = 30 * time.Second
	// jobRenewal is the interval at which a worker renews a delivery.
	jobRenewal = jobAckWait / 3
	// jobDeliveries limits the attempts of a job before it is published as failed; see
	// [tries]. The server has no such limit: a job whose workers all crashed is delivered once
	// more and published as failed, so no job ends without an outcome.
	jobDeliveries = 5
	// heldPause is the time for which a job is given back when this worker already holds its maximum. Such a
	// delivery is not an attempt.
	heldPause = 2 * time.Minute
	// lanePause is the pause before the consumer of a lane is created again.
	lanePause = time.Second
	// jobPause is the pause of a job after a transient failure.
	jobPause = 5 * time.Second
)

// Pool works on the jobs of all partitions, whichever worker owns them.
type Pool struct {
	NC *nats.Conn
	JS jetstream.JetStream
	// Texts reads the log in sweeps, each for several jobs.
	Texts *stream.Texts
	// AheadBytes limits the texts that each lane reads ahead for jobs that wait for a slot of
	// their tenant.
	AheadBytes int
	Summarizer summarize.Summarizer
	Listener   *observe.Listener
	Tracer     observe.Tracer // may be nil
	// Allow returns [spending.ErrBudget] if the tenant's budget allows no model for a job; nil allows all.
	Allow func(context.Context, events.Address, *events.Job) error
	// Private reports whether no model may read the content of a tenant. It may be nil.
	Private func(tenant string) bool
	// Limiter shares the processors that decode and redact texts. It may be nil.
	Limiter *limit.Limiter
}

// Run works until ctx ends, and then gives running jobs back.
func (p *Pool) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, lane := range events.Lanes {
		all.Go(func() { p.lane(ctx, lane) })
	}
	all.Wait()
}

// lane works on one lane until ctx ends. It creates a deleted consumer again, while running jobs
// continue.
func (p *Pool) lane(ctx context.Context, lane events.Lane) {
	var busy sync.WaitGroup
	defer busy.Wait()
	free := make(chan struct{}, laneTerms[lane].slots)
	tenants := newShares(laneTerms[lane].share)
	report := func(err error) { p.Listener.Retry(-1, "read jobs", err) }
	_ = retry.Every(lanePause).Do(ctx, report, func() error { // ends only with ctx
		return p.consume(ctx, lane, free, tenants, busy.Go)
	})
}

// consume starts work on each job that a consumer delivers, until the consumer fails. It requests a
// job only when a slot is free: a buffered job is not renewed, and would use up its
// deliveries.
func (p *Pool) consume(ctx context.Context, lane events.Lane, free chan struct{}, tenants *shares, start func(func())) error {
	c, err := p.JS.CreateOrUpdateConsumer(ctx, topology.OutcomesStream, jetstream.ConsumerConfig{
		Durable:       stream.JobConsumer(lane),
		FilterSubject: events.JobFilter(lane),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       jobAckWait,
		MaxDeliver:    -1,
		MaxAckPending: -1, // each worker limits the jobs that it holds
	})
	if err != nil {
		return err
	}
	defer tenants.drop(func(m jetstream.Msg) { p.ack("give job back", m.NakWithDelay(0)) })
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	go p.renewHeld(renewing, tenants)
	it, err := c.Messages(jetstream.PullMaxMessages(1), jetstream.PullHeartbeat(stream.Heartbeat))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, it.Stop)()
	defer it.Stop()
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		m, err := it.Next()
		if err != nil {
			<-free
			return err
		}
		tenant := tenantOf(m)
		if !tenants.take(tenant) { // the free slots are for other tenants
			<-free
			if !tenants.hold(tenant, m) {
				p.ack("give job back", m.NakWithDelay(heldPause))
			}
			continue
		}
		start(func() {
			defer func() { <-free }()
			p.share(ctx, tenants, tenant, m)
		})
	}
}

// did records a step of a job that ends now.
func (p *Pool) did(d *delivery, step observe.Step) {
	if p.Tracer == nil || d.trace == "" {
		return
	}
	step.Trace, step.Address, step.Job, step.Kind = d.trace, d.address, d.job.ID, events.KindJob
	step.Seq, step.Ended = measure.Seq(d.job.CausedBy.Seq), time.Now()
	p.Tracer.Did(step)
}

// work handles one delivery of a job. It publishes the result before it acknowledges the job, so
// that a crash in between only repeats the job. The first result of a job wins.
func (p *Pool) work(ctx context.Context, m jetstream.Msg) {
	stop := p.keepAlive(ctx, m)
	defer stop()
	d, err := readDelivery(m)
	if err != nil {
		p.Listener.Retry(-1, "read job", err)
		p.ack("end job", m.Term()) // no worker can read it
		return
	}
	observe.Call(p.Listener.SummaryStarted, observe.SummaryStarted{Address: d.address, Lane: d.lane, Job: d.job.ID, Attempt: d.number})
	began := time.Now()
	var result *events.Summary
	defer func() { p.did(d, observe.Step{Name: observe.StepSummarize, Began: began, Err: err}) }()
	erased, err := erase.LastForgetOf(ctx, p.NC, d.address) // before any text is read
	if err == nil && erased > d.job.CausedBy.Seq {          // an erasure of its source is under way
		err = erase.Repeat(ctx, p.JS, d.address, d.job.ID, d.job.CausedBy.Seq)
	}
	if err == nil {
		result, err = p.result(ctx, d)
	}
	if err == nil {
		failpoint.Pass("summarized")
		err = p.publish(ctx, d, result, erased)
	}
	stop()
	if errors.Is(err, erase.ErrErased) {
		p.ack("end job", m.Ack()) // no partition waits for it
		return
	}
	if err != nil {
		p.giveBack(ctx, m, d, err)
		return
	}
	failpoint.Pass("summary-published")
	p.ack("end job", m.Ack())
	observe.Call(p.Listener.SummaryDone, observe.SummaryDone{
		Address: d.address, Lane: d.lane, Job: d.job.ID, Failure: result.Failure, Took: time.Since(began), Attempt: d.number, Model: result.Model, Usage: result.Usage,
	})
}

// delivery is one attempt at a job.
type delivery struct {
	partition   int
	address     events.Address
	lane        events.Lane
	job         events.Job
	number      uint64    // from 1
	requestedAt time.Time // by the server's clock
	trace       events.Trace
	ahead       *texts             // may be nil
	calls       []events.ModelCall // with usage that providers counted
}

func readDelivery(m jetstream.Msg) (*delivery, error) {
	at, lane, err := events.ParseJob(m.Subject())
	if err != nil {
		return nil, err
	}
	if !stream.Outcome(m.Subject(), m.Headers()) {
		return nil, fmt.Errorf("%s: no worker committed the job", m.Subject())
	}
	md, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	d := &delivery{partition: at.Partition, address: at.Address, lane: lane, number: md.NumDelivered, requestedAt: md.Timestamp, trace: events.ReadTrace(m.Headers()[events.HeaderTrace])}
	if m, ok := m.(*aheadMsg); ok {
		d.ahead = m.read
	}
	return d, codec.Unmarshal(m.Data(), &d.job)
}

// maxWait returns the time that the job can still wait for its models: 0 if the caller of a compaction
// waits for it.
func (d *delivery) maxWait() time.Duration {
	if d.job.Manual != nil {
		return 0
	}
	return laneTerms[d.lane].remaining(time.Since(d.requestedAt), d.number)
}

// giveBack returns a job for another delivery: at once if this worker stops, later if its models
// are busy or something failed.
func (p *Pool) giveBack(ctx context.Context, m jetstream.Msg, d *delivery, err error) {
	pause := jobPause
	later, busy := errors.AsType[*summarize.RetryAfterError](err)
	switch {
	case ctx.Err() != nil:
		pause = 0
	case busy:
		pause = pauseBefore(later, d.maxWait(), d.number)
		observe.Call(p.Listener.SummaryDelayed, observe.SummaryDelayed{Address: d.address, Lane: d.lane, Job: d.job.ID, Attempt: d.number, Pause: pause, Err: later.Err})
	default:
		p.Listener.Retry(-1, "summarize", err)
	}
	p.ack("give job back", m.NakWithDelay(pause))
}

// keepAlive renews the delivery of a job until stop is called.
func (p *Pool) keepAlive(ctx context.Context, m jetstream.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		retry.Tick(ctx, jobRenewal, func() { p.ack("keep job", m.InProgress()) })
	}()
	return func() { cancel(); <-ended }
}

// renewHeld renews the deliveries of waiting jobs until ctx ends.
func (p *Pool) renewHeld(ctx context.Context, tenants *shares) {
	retry.Tick(ctx, jobRenewal, func() { tenants.each(func(m jetstream.Msg) { p.ack("keep job", m.InProgress()) }) })
}

// tries returns the number of deliveries that a job of an age may have: jobDeliveries, and those that
// were given back because the tenant had too many jobs.
func tries(age time.Duration) uint64 {
	return jobDeliveries + uint64(min(max(0, age), compaction.JobExpiry*time.Millisecond)/heldPause)
}

// result returns an error only if another attempt may succeed. Any other failure becomes a summary
// with Failure set. A job that crashed every worker is not tried again.
func (p *Pool) result(ctx context.Context, d *delivery) (s *events.Summary, err error) {
	most := tries(time.Since(d.requestedAt))
	if err = errCrashed; d.number <= most {
		s, err = p.summarize(ctx, d)
	}
	if err != nil {
		if d.number < most && !final(err) || ctx.Err() != nil {
			return nil, err
		}
		s = &events.Summary{Failure: failureOf(err), Record: []events.RecordLine{}}
	}
	if len(d.calls) > 1 || len(d.calls) == 1 && d.calls[0].Model != s.Model {
		s.Calls = d.calls
	}
	s.Header, s.Job = events.Header{V: events.Version, ID: "summary-" + d.job.ID}, d.job.ID
	return s, nil
}

// final reports whether another attempt would fail in the same way.
func final(err error) bool {
	_, gone := errors.AsType[*stream.GoneError](err)
	return gone || errors.Is(err, spending.ErrBudget) || errors.Is(err, summarize.ErrNothing) || errors.Is(err, summarize.ErrNoRoom) ||
		errors.Is(err, summarize.ErrTooMuch) || errors.Is(err, errPanic)
}

// failureOf returns the name of a failure, without quoting any text.
func failureOf(err error) string {
	_, gone := errors.AsType[*stream.GoneError](err)
	switch {
	case gone:
		return "source_gone"
	case errors.Is(err, spending.ErrBudget):
		return events.FailureBudget
	case errors.Is(err, errCrashed):
		return "dead"
	case errors.Is(err, summarize.ErrNothing):
		return "nothing_to_summarize"
	case errors.Is(err, summarize.ErrNoRoom):
		return "no_room"
	case errors.Is(err, summarize.ErrTooMuch):
		return "too_much_text"
	default:
		return "internal"
	}
}

var (
	errPanic   = errors.New("panic")
	errCrashed = errors.New("job was delivered too often; every worker that took it crashed")
	errLimit   = errors.New("the try took longer than its lane allows")
)

// summarize reads the range of a job and calls the summarizer.
func (p *Pool) summarize(ctx context.Context, d *delivery) (s *events.Summary, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	if p.Allow != nil {
		if err := p.Allow(ctx, d.address, &d.job); err != nil {
			return nil, err
		}
	}
	in, err := p.input(ctx, d)
	if err != nil {
		return nil, err
	}
	in.Tenant, in.MaxWait, in.OnAttempt = d.address.Tenant, d.maxWait(), p.attempted(d)
	return p.write(ctx, laneTerms[d.lane].limit, in)
}

// write calls the summarizer. After the time limit it calls the embedded one.
func (p *Pool) write(ctx context.Context, most time.Duration, in summarize.Input) (*events.Summary, error) {
	limited, cancel := context.WithTimeoutCause(ctx, most, errLimit)
	defer cancel()
	paced, end := p.Limiter.Paced(limited, limit.Account{Tenant: in.Tenant})
	defer end()
	s, err := p.Summarizer.Summarize(paced, in)
	if err != nil && errors.Is(context.Cause(limited), errLimit) {
		paced, end := p.Limiter.Paced(ctx, limit.Account{Tenant: in.Tenant})
		defer end()
		return extract.New().Summarize(paced, in)
	}
	return s, err
}

// attempted returns a func that records the result of each called model and reports it to the listener.
func (p *Pool) attempted(d *delivery) func(summarize.Attempt) {
	return func(a summarize.Attempt) {
		if e, ok := errors.AsType[*model.Error](a.Err); ok && e.Kind == model.OverQuota {
			observe.Call(p.Listener.OverQuota, observe.OverQuota{Address: d.address, Lane: d.lane, Job: d.job.ID, Model: a.Model})
			return
		}
		if a.Usage != (events.SummaryUsage{}) {
			d.calls = append(d.calls, events.ModelCall{Model: a.Model, SummaryUsage: a.Usage})
		}
		p.did(d, observe.Step{Name: observe.StepChat, Model: a.Model, Usage: a.Usage, Err: a.Err, Began: time.Now().Add(-a.Took)})
		observe.Call(p.Listener.ModelCalled, observe.ModelCalled{Address: d.address, Lane: d.lane, Job: d.job.ID, Model: a.Model, Usage: a.Usage, Err: a.Err})
	}
}

func (p *Pool) input(ctx context.Context, d *delivery) (summarize.Input, error) {
	job := &d.job
	in := summarize.Input{MaxUnits: job.MaxUnits, Focus: job.Focus, Writer: summarize.Writer{Provider: job.Provider, Model: job.Model}}
	if p.Private != nil && p.Private(d.address.Tenant) {
		in.Writer = summarize.NoModel
	}
	stored := d.ahead.take()
	if stored == nil {
		var err error
		if stored, err = p.Texts.Get(ctx, seqsOf(job)); err != nil {
			return in, err
		}
	}
	for _, b := range stored {
		if at, err := events.ParseLog(b.Subject); err != nil || at.Address != d.address {
			return in, &stream.GoneError{Seqs: []uint64{b.Seq}} // another event has the sequence
		}
	}
	if job.Previous != 0 {
		var err error
		if in.Previous, err = events.DecodeSummary(stored[0].Data); err != nil {
			return in, fmt.Errorf("read previous summary: %w", err)
		}
		stored = stored[1:]
	}
	paced, end := p.Limiter.Paced(ctx, limit.Account{Tenant: d.address.Tenant})
	defer end()
	for i, b := range stored {
		if err := paced.Err(); err != nil {
			return in, err
		}
		turn := job.Turn + int64(i)
		messages, err := payload.ReadMessages(job.Format, b.Data)
		if err != nil {
			return in, fmt.Errorf("read turn %d: %w", turn, err)
		}
		for k, m := range messages {
			if at := (events.Position{Turn: turn, Index: int64(k)}); job.Holds(at) {
				in.Messages = append(in.Messages, summarize.Message{Turn: turn, Index: int64(k), Message: m})
			}
		}
	}
	return in, nil
}

// publish stores the result as an event of its session, unless the session was erased after the
// sequence erased.
func (p *Pool) publish(ctx context.Context, d *delivery, s *events.Summary, erased uint64) error {
	subject, err := events.Input(events.KindSummary, d.address)
	if err != nil {
		return err
	}
	data, err := codec.Marshal(s)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	m.Header.Set(nats.MsgIdHdr, s.Job)
	if d.trace != "" {
		m.Header[events.HeaderTrace] = []string{string(d.trace)}
	}
	taken, err := erase.PublishUnlessErased(ctx, p.JS, m, d.partition, d.address, erased)
	if taken != nil {
		p.Listener.Retry(-1, "publish summary", taken)
	}
	if err == nil {
		err = erase.Repeat(ctx, p.JS, d.address, d.job.ID, erased)
	}
	return err
}

func (p *Pool) ack(step string, err error) {
	if err != nil {
		p.Listener.Retry(-1, step, err)
	}
}
