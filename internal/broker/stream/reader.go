package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
)

// Reader reads a part of a stream in order, one message at a time, with successive
// consumers: each continues after the last message of the previous one.
//
// The ordered consumer of nats.go requests its next consumer under the same name until it gets
// an answer. A cluster may place that consumer on a node that is cut off, and treats the node as up
// for minutes. Then every attempt goes to that node, no error is reported, and a caller
// that stops the reading waits too. Here every attempt has a new name, and may be placed
// elsewhere.
//
// A consumer reads from one copy of the stream, which may be behind the others. A message
// that it delivers is durable; its end is only the end of that copy.
//
// A message that two consumers in a row did not deliver is read from the leader by its
// sequence, so no message stops the reading.
// See docs/adr/0015.
type Reader struct {
	js      jetstream.JetStream
	stream  string
	config  jetstream.ConsumerConfig // of the first consumer, without its name
	first   jetstream.Consumer
	order   orderFilter
	OnError func(error) // receives why a consumer was replaced, or could not be made; set before Start
	// onFetched receives a message that was read by its sequence, and the reason; set before Start.
	onFetched func(seq uint64, why error)
	// onReplace is called before a consumer is replaced; set before Start. Its context ends with the reading.
	onReplace func(context.Context)

	stuck struct { // last message passed when consumers delivered nothing
		at    uint64
		times int
	}

	behind chan struct{} // receives a token to replace the consumer
	ended  chan error    // receives an error when the connection was closed
	cancel context.CancelFunc
	work   sync.WaitGroup
}

const (
	// consumerLife is the time that the server keeps a consumer without requests.
	consumerLife = 5 * time.Minute
	// leaveTime limits the wait for the deletion of a consumer. The server expires it anyway.
	leaveTime = 250 * time.Millisecond
	// replacePause is the pause before a consumer is replaced, in case consumers fail at once.
	replacePause = 100 * time.Millisecond
)

var (
	errReconnected = errors.New("the link was lost for a while: what was under way may be missing")
	errBehind      = errors.New("the copy that was read from is behind, or a message was missed")
)

// OpenReader makes the first consumer, once a cluster has a leader for the stream.
func OpenReader(ctx context.Context, js jetstream.JetStream, from string, config jetstream.ConsumerConfig) (*Reader, error) {
	config.AckPolicy, config.InactiveThreshold = jetstream.AckNonePolicy, consumerLife
	config.MemoryStorage, config.Replicas = true, 1
	if len(config.FilterSubjects) == 1 { // puts the filter into the request's subject, which permissions can restrict
		config.FilterSubject, config.FilterSubjects = config.FilterSubjects[0], nil
	}
	r := &Reader{js: js, stream: from, config: config, OnError: func(error) {}, onFetched: func(uint64, error) {}, onReplace: func(context.Context) {}, behind: make(chan struct{}, 1), ended: make(chan error, 1), cancel: func() {}}
	if config.OptStartSeq > 0 {
		r.order.last = config.OptStartSeq - 1 // a copy that is behind may begin before the start
	}
	limited, cancel := context.WithTimeout(ctx, jsapi.ElectionTime)
	defer cancel()
	var err error
	r.first, err = r.next(limited, func(err error) bool { return jsapi.Leaderless(err) || errors.Is(err, jsapi.ErrNoAnswer) })
	return r, err
}

// Handle sets the receiver of the messages. Call it before Start. An error of fn ends the reading.
func (r *Reader) Handle(fn func(jetstream.Msg, *jetstream.MsgMetadata) error) { r.order.fn = fn }

// Pending returns the number of messages for the first consumer at its creation.
func (r *Reader) Pending() uint64 { return r.first.CachedInfo().NumPending }

// Start reads until Stop, or until the connection is closed.
func (r *Reader) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.work.Go(func() { r.run(ctx) })
}

// Stop ends the reading and waits for fn, which must not call it. It does not wait for the deletion of
// the consumer.
func (r *Reader) Stop() { r.deleteConsumer(r.halt()) }

// Leave is Stop for callers that read many parts: it waits until the consumer is deleted, so that
// consumers do not accumulate on the server.
func (r *Reader) Leave() {
	newest := r.halt()
	if !r.js.Conn().IsConnected() {
		return // the consumer expires
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, r.stream, newest)
}

func (r *Reader) halt() (newest string) {
	r.cancel()
	r.work.Wait()
	r.order.close()
	newest, _ = r.order.delivered()
	return newest
}

func (r *Reader) run(ctx context.Context) {
	nc := r.js.Conn()
	status := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(status)
	cons := r.first
	for {
		why := r.consume(ctx, cons, status)
		if !r.awaitLink(ctx, status) {
			break
		}
		r.OnError(why)
		r.onReplace(ctx)
		r.deleteConsumer(cons.CachedInfo().Name)
		if r.isStuck(why) {
			r.fetch(ctx, why)
		}
		var err error
		if cons, err = r.next(ctx, func(err error) bool {
			again := r.awaitLink(ctx, status)
			if again {
				r.OnError(fmt.Errorf("make a consumer: %w", err))
			}
			return again
		}); err != nil {
			break
		}
	}
	if nc.IsClosed() {
		r.ended <- nats.ErrConnectionClosed
	}
}

// awaitLink waits while the link is lost, since a request would be delayed. It reports whether the
// reading continues.
func (r *Reader) awaitLink(ctx context.Context, status <-chan nats.Status) bool {
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

// consume reads with one consumer until it fails, and returns the reason.
func (r *Reader) consume(ctx context.Context, cons jetstream.Consumer, status <-chan nats.Status) error {
	lost := make(chan error, 1)
	nc := r.js.Conn()
	p := &puller{
		nc: nc, next: subjectNext + r.stream + "." + cons.CachedInfo().Name, bytes: pullBytes(nc),
		pass: r.order.pass, lose: func(err error) { lost <- err },
	}
	if err := p.start(); err != nil {
		return err
	}
	defer p.stop()
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

// isStuck reports whether two consumers in a row delivered nothing after the same message. A failure
// of the link or of the consumer's node does not count.
func (r *Reader) isStuck(why error) bool {
	for _, other := range []error{
		errReconnected, ErrEnd, jetstream.ErrNoHeartbeat, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerLeadershipChanged,
		jetstream.ErrServerShutdown, nats.ErrNoResponders, nats.ErrConnectionClosed,
	} {
		if errors.Is(why, other) {
			return false
		}
	}
	at := r.order.end()
	if at != r.stuck.at {
		r.stuck.at, r.stuck.times = at, 0
	}
	r.stuck.times++
	return r.stuck.times > 1
}

// fetch reads the next message from the leader by its sequence and passes it on. After an error
// the next consumer tries.
func (r *Reader) fetch(ctx context.Context, why error) {
	last := r.order.end()
	if last == 0 && r.config.DeliverPolicy != jetstream.DeliverByStartSequencePolicy {
		return // the consumer does not deliver every message
	}
	m, err := r.following(ctx, last+1)
	if err != nil {
		r.OnError(fmt.Errorf("read the message after %d by its sequence: %w", last, err))
		return
	}
	if m != nil {
		r.onFetched(m.Seq, why)
		_ = r.order.insert(messageOf(r.stream, m, r.config.HeadersOnly)) // an error is the caller's end
	}
}

// following returns the first message from a sequence on that matches the reader's filters, or nil.
func (r *Reader) following(ctx context.Context, from uint64) (first *jsapi.StoredMsg, err error) {
	filters := r.config.FilterSubjects
	if len(filters) == 0 {
		filters = []string{cmp.Or(r.config.FilterSubject, ">")}
	}
	for _, filter := range filters {
		m, err := jsapi.GetFromLeader(ctx, r.js.Conn(), r.stream, jsapi.GetRequest{Seq: from, NextFor: filter})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if first == nil || m.Seq < first.Seq {
			first = m
		}
	}
	return first, nil
}

// next creates a consumer that begins after the last message passed. again decides whether to retry
// after an error.
func (r *Reader) next(ctx context.Context, again func(error) bool) (cons jetstream.Consumer, err error) {
	config := r.config
	if last := r.order.end(); last > 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, last+1
	}
	cons, err = jsapi.RetryHedged(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
		return r.create(ctx, config)
	}, func(late jetstream.Consumer) { r.deleteConsumer(late.CachedInfo().Name) }, again)
	if err == nil {
		r.order.begin(cons.CachedInfo().Name)
	}
	return cons, err
}

func (r *Reader) create(ctx context.Context, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	config.Name = nuid.Next()
	cons, err := r.js.CreateConsumer(ctx, r.stream, config)
	if err != nil {
		r.deleteConsumer(config.Name) // it may exist
	}
	return cons, err
}

// seen returns the sequence of the stream that the newest consumer has reached, if all messages that it
// delivered have passed. That is at most the end of the copy that it reads from. The copy reports it in
// the heartbeats of a pull: the consumer's state stays at the last delivered message.
func (r *Reader) seen(ctx context.Context) (upTo uint64, ok bool) {
	name, passed := r.order.delivered()
	m, err := r.probe(ctx, name)
	if err != nil {
		return 0, false
	}
	if isDelivery(m) { // the reader's pull will not get this message
		retry.Wake(r.behind)
		return 0, false
	}
	return jsapi.ParseSeq(m.Header.Get(headerLastStream)), m.Header.Get(headerStatus) == statusHeartbeat && jsapi.ParseSeq(m.Header.Get(headerLastConsumer)) == passed
}

// probe requests one message from a consumer and returns the first answer. It uses a separate inbox:
// in the shared inbox of requests a delivered message arrives under its own subject, and the
// client would pass it to another request.
func (r *Reader) probe(ctx context.Context, consumer string) (*nats.Msg, error) {
	nc := r.js.Conn()
	answers := make(chan *nats.Msg, 8) // at most one message, and heartbeats
	sub, err := nc.ChanSubscribe(nc.NewInbox(), answers)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	body := fmt.Appendf(nil, `{"batch":1,"expires":%d,"idle_heartbeat":%d}`, probeTime, probeHeartbeat)
	if err := nc.PublishRequest(subjectNext+r.stream+"."+consumer, sub.Subject, body); err != nil {
		return nil, err
	}
	select {
	case m := <-answers:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(probeTime):
		return nil, jsapi.ErrNoAnswer
	}
}

const (
	// A probe gets a heartbeat after probeHeartbeat, and fails after probeTime.
	probeHeartbeat = 10 * time.Millisecond
	probeTime      = time.Second
)

// deleteConsumer requests the deletion of a consumer without waiting for the answer: an idle consumer
// expires anyway.
func (r *Reader) deleteConsumer(consumer string) {
	if nc := r.js.Conn(); consumer != "" && nc.IsConnected() { // "": the next consumer is not created yet
		_ = nc.Publish(subjectDeleteConsumer+r.stream+"."+consumer, nil)
	}
}
