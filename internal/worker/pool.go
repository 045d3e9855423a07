package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/events"
	"compactd/internal/summarize"
)

// slots is the number of jobs of each lane that one worker works on at a time.
// Emergencies have their own, so that a full house of others never holds one up.
var slots = map[events.Lane]int{events.LaneEmergency: 2, events.LaneNormal: 4, events.LaneBackground: 2}

const (
	// jobAckWait is how long a job may go without a sign of life before another
	// worker gets it.
	jobAckWait = 30 * time.Second
	// jobDeliveries is how often a job is tried before it is told as failed.
	jobDeliveries = 5
	// lanePause is how long a lane rests before its consumer is made again.
	lanePause = time.Second
	// jobPause is how long a job rests after a failure that may pass.
	jobPause = 5 * time.Second
)

// pool works on the jobs of all partitions, whoever owns them.
type pool struct {
	nc         *nats.Conn
	js         jetstream.JetStream
	summarizer summarize.Summarizer
	listener   *Listener
}

// run works until ctx ends; jobs under way are then given back.
func (p *pool) run(ctx context.Context) {
	var lanes sync.WaitGroup
	for _, lane := range events.Lanes {
		lanes.Go(func() { p.lane(ctx, lane) })
	}
	lanes.Wait()
}

// lane works on one lane until ctx ends. A consumer that was deleted, by an
// operator or with its stream, is made again.
func (p *pool) lane(ctx context.Context, lane events.Lane) {
	for {
		if err := p.consume(ctx, lane); ctx.Err() == nil {
			p.interrupted("read jobs", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lanePause):
		}
	}
}

// consume works on what one consumer delivers, and ends with it.
func (p *pool) consume(ctx context.Context, lane events.Lane) error {
	c, err := p.js.CreateOrUpdateConsumer(ctx, broker.OutcomesStream, jetstream.ConsumerConfig{
		Durable:       broker.JobConsumer(lane),
		FilterSubject: events.JobFilter(lane),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       jobAckWait,
		MaxDeliver:    jobDeliveries,
	})
	if err != nil {
		return err
	}
	free := make(chan struct{}, slots[lane])
	var busy sync.WaitGroup
	defer busy.Wait()
	it, err := c.Messages(jetstream.PullMaxMessages(slots[lane]))
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
			return err
		}
		busy.Go(func() {
			defer func() { <-free }()
			p.work(ctx, m)
		})
	}
}

// work handles one delivery of a job: its result is published before the job is
// acknowledged, so that a death in between only repeats it. The first result of a
// job wins.
func (p *pool) work(ctx context.Context, m jetstream.Msg) {
	stop := p.keepAlive(ctx, m)
	defer stop()
	at, lane, err := events.ParseJob(m.Subject())
	var job events.Job
	if err == nil {
		err = events.Unmarshal(m.Data(), &job)
	}
	if err != nil {
		p.interrupted("read job", err)
		p.settle("end job", m.Term()) // nobody can read it
		return
	}
	call(p.listener.SummaryStarted, SummaryStarted{at.Address, lane, job.ID})
	began := time.Now()
	result, err := p.result(ctx, at.Address, &job, lastDelivery(m))
	if err == nil {
		failpoint("summarized")
		err = p.publish(ctx, at.Address, result)
	}
	if err != nil {
		if ctx.Err() == nil {
			p.interrupted("summarize", err)
		}
		p.settle("give job back", m.NakWithDelay(jobPause))
		return
	}
	failpoint("summary-published")
	p.settle("end job", m.Ack())
	call(p.listener.SummaryDone, SummaryDone{at.Address, lane, job.ID, result.Failure, result.Model, time.Since(began)})
}

func lastDelivery(m jetstream.Msg) bool {
	md, err := m.Metadata()
	return err == nil && md.NumDelivered >= jobDeliveries
}

// keepAlive tells the server that the job is being worked on.
func (p *pool) keepAlive(ctx context.Context, m jetstream.Msg) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		t := time.NewTicker(jobAckWait / 3)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				p.settle("keep job", m.InProgress())
			}
		}
	}()
	return cancel
}

// result summarizes. Its error is worth another try; what is not becomes a
// summary that says why there is none.
func (p *pool) result(ctx context.Context, a events.Address, job *events.Job, last bool) (*events.Summary, error) {
	s, err := p.summarize(ctx, a, job)
	if err != nil {
		if !last && !final(err) || ctx.Err() != nil {
			return nil, err
		}
		s = &events.Summary{Failure: failureOf(err), Record: []events.RecordLine{}}
	}
	s.Header, s.Job = events.Header{V: events.Version, ID: "summary-" + job.ID}, job.ID
	return s, nil
}

// final reports whether another try would end in the same way.
func final(err error) bool {
	_, gone := errors.AsType[*broker.GoneError](err)
	return gone || errors.Is(err, summarize.ErrNothing) || errors.Is(err, summarize.ErrNoRoom) || errors.Is(err, errPanic)
}

// failureOf names a failure without quoting any text.
func failureOf(err error) string {
	_, gone := errors.AsType[*broker.GoneError](err)
	switch {
	case gone:
		return "source_gone"
	case errors.Is(err, summarize.ErrNothing):
		return "nothing_to_summarize"
	case errors.Is(err, summarize.ErrNoRoom):
		return "no_room"
	default:
		return "internal"
	}
}

var errPanic = errors.New("panic")

// summarize reads the range of a job and calls the summarizer.
func (p *pool) summarize(ctx context.Context, a events.Address, job *events.Job) (s *events.Summary, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	in, err := p.input(ctx, a, job)
	if err != nil {
		return nil, err
	}
	return p.summarizer.Summarize(ctx, in)
}

func (p *pool) input(ctx context.Context, a events.Address, job *events.Job) (summarize.Input, error) {
	in := summarize.Input{Format: job.Format, MaxUnits: job.MaxUnits, Focus: job.Focus}
	seqs := job.Seqs
	if job.Previous != 0 {
		seqs = slices.Concat([]uint64{job.Previous}, seqs)
	}
	bodies, err := broker.GetLog(ctx, p.nc, seqs)
	if err != nil {
		return in, err
	}
	for _, b := range bodies {
		if at, err := events.ParseLog(b.Subject); err != nil || at.Address != a {
			return in, &broker.GoneError{Seqs: []uint64{b.Seq}} // its place in the log is another's now
		}
	}
	if job.Previous != 0 {
		if in.Previous, err = events.DecodeSummary(bodies[0].Data); err != nil {
			return in, fmt.Errorf("read previous summary: %w", err)
		}
		bodies = bodies[1:]
	}
	for i, b := range bodies {
		turn := job.Turn + int64(i)
		messages, err := readMessages(job.Format, b.Data)
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

// publish stores the result as an event of its session.
func (p *pool) publish(ctx context.Context, a events.Address, s *events.Summary) error {
	subject, err := events.Input(events.KindSummary, a)
	if err != nil {
		return err
	}
	data, err := events.Marshal(s)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	m.Header.Set(nats.MsgIdHdr, s.Job)
	_, err = p.js.PublishMsg(ctx, m)
	return err
}

func (p *pool) settle(step string, err error) {
	if err != nil {
		p.interrupted(step, err)
	}
}

func (p *pool) interrupted(step string, err error) {
	call(p.listener.Interrupted, Interrupted{Partition: -1, Step: step, Err: err})
}
