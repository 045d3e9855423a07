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
	// createTime bounds the first try to make a consumer. Each one after it has a quarter
	// of that more, up to maxCreateTime: a cluster under load may be slow. It must not grow
	// fast, as tries are lost while there is no leader, and on a node that is cut off.
	createTime    = 2 * time.Second
	maxCreateTime = 10 * time.Second
	// consumerLife is how long the server keeps a consumer that nobody asks.
	consumerLife = 5 * time.Minute
	// replacePause keeps consumers that are lost at once from following each other
	// without end.
	replacePause = 100 * time.Millisecond
)

var (
	errReconnected = errors.New("the link was lost for a while: what was under way may be missing")
	errBehind      = errors.New("the copy that was read from is behind its leader")
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
	r.first, err = r.next(limited, func(err error) bool {
		return errors.Is(err, errNoAnswer) || hasCode(err, codeNoLeader, codeNotLeader, codeOffline, codeOfflineReason)
	})
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

// stop waits for the gate's fn, lets nothing pass any more, and has the consumer deleted:
// whoever reads a thousand sessions would have a thousand. fn must not call it.
func (r *reader) stop() {
	r.cancel()
	r.work.Wait()
	r.gate.close()
	newest, _ := r.gate.delivered()
	if !r.js.Conn().IsConnected() {
		return // it ends by itself too
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, r.stream, newest)
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
	limit := createTime
	_ = retry(ctx, nil, func() error { // err says more
		cons, err = r.create(ctx, limit)
		limit = min(limit+createTime/4, maxCreateTime)
		if err != nil && again(err) {
			return err
		}
		return permanent(err)
	})
	return cons, err
}

func (r *reader) create(ctx context.Context, limit time.Duration) (jetstream.Consumer, error) {
	one, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := r.config
	c.Name = nuid.Next()
	if last := r.gate.begin(c.Name); last > 0 {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, last+1
	}
	cons, err := r.js.CreateConsumer(one, r.stream, c)
	if err == nil {
		return cons, nil
	}
	r.forget(c.Name) // it may have been made
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w within %s", errNoAnswer, limit)
	}
	return nil, err
}

// exhausted reports whether the server has nothing left for the newest consumer and
// all that it sent has passed the gate.
func (r *reader) exhausted(ctx context.Context) bool {
	one, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	name, seq := r.gate.delivered()
	c, err := r.js.Consumer(one, r.stream, name)
	return err == nil && c.CachedInfo().NumPending == 0 && c.CachedInfo().Delivered.Consumer == seq
}

// forget asks for the end of a consumer and awaits no answer: it ends by itself too.
func (r *reader) forget(consumer string) {
	if nc := r.js.Conn(); nc.IsConnected() {
		_ = nc.Publish(apiDeleteConsumer+r.stream+"."+consumer, nil)
	}
}
