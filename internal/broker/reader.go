package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// reader reads a part of a stream in order, one message at a time, with one consumer
// after the other: each goes on where the one before it came to.
//
// nats.go has an ordered consumer, which asks for its next one by the same name until it
// is answered. A cluster may place that on a node that is cut off, which it takes to be alive
// for minutes. From then on every try goes to that node, no error is told, and who would stop the
// reading waits too. Here every try has a name of its own, and may be placed elsewhere.
//
// A consumer reads from one copy of the stream, which may be behind the others. What it
// delivers is stored for good; that it has no more to deliver says how far it has come, and
// no more.
type reader struct {
	js      jetstream.JetStream
	stream  string
	config  jetstream.ConsumerConfig // of the first consumer, without its name
	first   jetstream.Consumer
	gate    gate
	onError func(error) // told why a consumer was replaced, or is not yet; set before start

	behind chan struct{} // takes one when another consumer is to go on
	ended  chan error    // gets one when the connection was closed
	cancel context.CancelFunc
	work   sync.WaitGroup
}

const (
	// consumerLife is how long the server keeps a consumer that nobody asks.
	consumerLife = 5 * time.Minute
	// leaveTime is how long the end of a consumer is waited for. It comes later too.
	leaveTime = 250 * time.Millisecond
	// replacePause keeps consumers that are lost at once from following each other
	// without end.
	replacePause = 100 * time.Millisecond
)

var (
	errReconnected = errors.New("the link was lost for a while: what was under way may be missing")
	errBehind      = errors.New("the copy that was read from is behind, or a message was missed")
)

// openReader makes the first consumer, once a cluster has a leader for the stream.
func openReader(ctx context.Context, js jetstream.JetStream, from string, config jetstream.ConsumerConfig) (*reader, error) {
	config.AckPolicy, config.InactiveThreshold = jetstream.AckNonePolicy, consumerLife
	config.MemoryStorage, config.Replicas = true, 1
	if len(config.FilterSubjects) == 1 { // then the subject of the request names it, for those who restrict it
		config.FilterSubject, config.FilterSubjects = config.FilterSubjects[0], nil
	}
	r := &reader{js: js, stream: from, config: config, onError: func(error) {}, behind: make(chan struct{}, 1), ended: make(chan error, 1), cancel: func() {}}
	if config.OptStartSeq > 0 {
		r.gate.last = config.OptStartSeq - 1 // a copy that is behind begins at its own end, where that is before it
	}
	limited, cancel := context.WithTimeout(ctx, electionTime)
	defer cancel()
	var err error
	r.first, err = r.next(limited, func(err error) bool { return leaderless(err) || errors.Is(err, errNoAnswer) })
	return r, err
}

// pending is how much the server had for the first consumer when it was made.
func (r *reader) pending() uint64 { return r.first.CachedInfo().NumPending }

// start reads until stop, or until the connection is closed.
func (r *reader) start(opts ...jetstream.PullConsumeOpt) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.work.Go(func() { r.run(ctx, opts) })
}

// stop waits for the gate's fn and lets nothing pass any more. fn must not call it. The end
// of the consumer is not waited for.
func (r *reader) stop() { r.forget(r.halt()) }

// leave is stop for whoever reads one part after the other: it waits until the consumer
// is deleted, or there would soon be a thousand.
func (r *reader) leave() {
	newest := r.halt()
	if !r.js.Conn().IsConnected() {
		return // it ends by itself too
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, r.stream, newest)
}

func (r *reader) halt() (newest string) {
	r.cancel()
	r.work.Wait()
	r.gate.close()
	newest, _ = r.gate.delivered()
	return newest
}

func (r *reader) run(ctx context.Context, opts []jetstream.PullConsumeOpt) {
	nc := r.js.Conn()
	status := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(status)
	cons := r.first
	for {
		why := r.consume(ctx, cons, status, opts)
		if !r.lives(ctx, status) {
			break
		}
		r.onError(why)
		r.forget(cons.CachedInfo().Name)
		var err error
		if cons, err = r.next(ctx, func(err error) bool {
			lives := r.lives(ctx, status)
			if lives {
				r.onError(fmt.Errorf("make a consumer: %w", err))
			}
			return lives
		}); err != nil {
			break
		}
	}
	if nc.IsClosed() {
		r.ended <- nats.ErrConnectionClosed
	}
}

// lives waits while the link is lost: what was sent then would be asked too late. It
// reports whether the reading is to go on.
func (r *reader) lives(ctx context.Context, status <-chan nats.Status) bool {
	pause := time.After(replacePause)
	for nc := r.js.Conn(); ctx.Err() == nil && !nc.IsClosed(); {
		select {
		case <-pause:
			if pause = nil; nc.IsConnected() {
				return true
			}
		case <-status:
			if pause == nil && nc.IsConnected() {
				return true
			}
		case <-ctx.Done():
		}
	}
	return false
}

// consume reads with one consumer, and returns why no more is to be expected of it.
func (r *reader) consume(ctx context.Context, cons jetstream.Consumer, status <-chan nats.Status, opts []jetstream.PullConsumeOpt) error {
	lost := make(chan error, 1)
	lose := func(err error) {
		select {
		case lost <- err:
		default:
		}
	}
	cc, err := cons.Consume(func(m jetstream.Msg) {
		if err := r.gate.pass(m); err != nil {
			lose(err)
		}
	}, append(slices.Clip(opts), jetstream.PullHeartbeat(Heartbeat), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { lose(err) }))...)
	if err != nil {
		return err
	}
	defer cc.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-status:
		return errReconnected
	case <-r.behind:
		return errBehind
	case err := <-lost:
		return err
	}
}

// next makes a consumer that begins after the last message that passed. again says
// whether an error is worth another try.
func (r *reader) next(ctx context.Context, again func(error) bool) (cons jetstream.Consumer, err error) {
	config := r.config
	if last := r.gate.begin(""); last > 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, last+1
	}
	_ = retry(ctx, nil, func() error { // err says more
		cons, err = hasten(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
			return r.create(ctx, config)
		}, func(late jetstream.Consumer) { r.forget(late.CachedInfo().Name) })
		if err != nil && again(err) {
			return err
		}
		return permanent(err)
	})
	if err == nil {
		r.gate.begin(cons.CachedInfo().Name)
	}
	return cons, err
}

func (r *reader) create(ctx context.Context, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	config.Name = nuid.Next()
	cons, err := r.js.CreateConsumer(ctx, r.stream, config)
	if err != nil {
		r.forget(config.Name) // it may have been made
	}
	return cons, err
}

// seen returns the sequence of the stream up to which the newest consumer has looked, once
// all that it found has passed. Where the copy that it reads from ends it stops; so that copy
// says itself how far it goes, whatever others know. It says so in the heartbeats of a pull:
// the consumer's own state stays where the last message was delivered.
func (r *reader) seen(ctx context.Context) (upTo uint64, ok bool) {
	name, passed := r.gate.delivered()
	body := fmt.Appendf(nil, `{"batch":1,"expires":%d,"idle_heartbeat":%d}`, probeTime, probeBeat)
	m, err := request(ctx, r.js.Conn(), &nats.Msg{Subject: apiNext + r.stream + "." + name, Data: body}, probeTime)
	if err != nil {
		return 0, false
	}
	if m.Header.Get(headerStatus) == "" { // a message, which the reader misses now
		wakeUp(r.behind)
	}
	return parseSeq(m.Header.Get(headerLastStream)), m.Header.Get(headerStatus) == "100" && parseSeq(m.Header.Get(headerLastConsumer)) == passed
}

const (
	// probeBeat is when a pull that is made to hear a heartbeat gets one, and probeTime when
	// it is given up.
	probeBeat = 10 * time.Millisecond
	probeTime = time.Second
)

// forget asks for the end of a consumer and awaits no answer: it ends by itself too.
func (r *reader) forget(consumer string) {
	if nc := r.js.Conn(); consumer != "" && nc.IsConnected() { // there is none while the next one is asked for
		_ = nc.Publish(apiDeleteConsumer+r.stream+"."+consumer, nil)
	}
}
