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

// Reader reads a part of a stream in order, one message at a time, with one consumer
// after the other: each goes on where the one before it stopped.
//
// nats.go has an ordered consumer, which requests its next one by the same name until it
// gets an answer. A cluster may place that on a node that is cut off, and takes that node to be
// up for minutes. From then on every try goes to that node, no error is reported, and a caller
// that stops the reading waits too. Here every try has a name of its own, and may be placed
// elsewhere.
//
// A consumer reads from one copy of the stream, which may be behind the others. A message
// that it delivers is stored for good; its end is only the end of that copy.
//
// A message that two consumers in a row did not bring is read from the leader by its
// sequence: no message stops the reading.
// See docs/adr/0015.
type Reader struct {
	js      jetstream.JetStream
	stream  string
	config  jetstream.ConsumerConfig // of the first consumer, without its name
	first   jetstream.Consumer
	order   orderFilter
	OnError func(error) // receives why a consumer was replaced, or is not yet; set before start
	// onFetched is called with what was read by its sequence, and why; set before start.
	onFetched func(seq uint64, why error)

	stuck struct { // where the last consumer delivered nothing
		at    uint64
		times int
	}

	behind chan struct{} // takes one when another consumer is to go on
	ended  chan error    // gets one when the connection was closed
	cancel context.CancelFunc
	work   sync.WaitGroup
}

const (
	// consumerLife is how long the server keeps a consumer without requests.
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

// OpenReader makes the first consumer, once a cluster has a leader for the stream.
func OpenReader(ctx context.Context, js jetstream.JetStream, from string, config jetstream.ConsumerConfig) (*Reader, error) {
	config.AckPolicy, config.InactiveThreshold = jetstream.AckNonePolicy, consumerLife
	config.MemoryStorage, config.Replicas = true, 1
	if len(config.FilterSubjects) == 1 { // then the subject of the request names it, for those who restrict it
		config.FilterSubject, config.FilterSubjects = config.FilterSubjects[0], nil
	}
	r := &Reader{js: js, stream: from, config: config, OnError: func(error) {}, onFetched: func(uint64, error) {}, behind: make(chan struct{}, 1), ended: make(chan error, 1), cancel: func() {}}
	if config.OptStartSeq > 0 {
		r.order.last = config.OptStartSeq - 1 // a copy that is behind begins at its own end, where that is before it
	}
	limited, cancel := context.WithTimeout(ctx, jsapi.ElectionTime)
	defer cancel()
	var err error
	r.first, err = r.next(limited, func(err error) bool { return jsapi.Leaderless(err) || errors.Is(err, jsapi.ErrNoAnswer) })
	return r, err
}

// Handle sets what gets the messages, before Start. An error of fn ends the reading.
func (r *Reader) Handle(fn func(jetstream.Msg, *jetstream.MsgMetadata) error) { r.order.fn = fn }

// Pending is how much the server had for the first consumer when it was made.
func (r *Reader) Pending() uint64 { return r.first.CachedInfo().NumPending }

// Start reads until Stop, or until the connection is closed.
func (r *Reader) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.work.Go(func() { r.run(ctx) })
}

// Stop waits for the filter's fn and lets nothing pass any more. fn must not call it. The end
// of the consumer is not waited for.
func (r *Reader) Stop() { r.deleteConsumer(r.halt()) }

// Leave is Stop for callers that read one part after the other: it waits until the consumer
// is deleted, or there would soon be a thousand.
func (r *Reader) Leave() {
	newest := r.halt()
	if !r.js.Conn().IsConnected() {
		return // it ends by itself too
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

// awaitLink waits while the link is lost: a request sent then would come too late. It
// reports whether the reading goes on.
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

// consume reads with one consumer, and returns why no more is to be expected of it.
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

// isStuck reports whether another consumer delivered nothing at the place where the one
// before it did. A defect of the link or of the consumer's node does not count.
func (r *Reader) isStuck(why error) bool {
	for _, other := range []error{
		errReconnected, ErrEnd, jetstream.ErrNoHeartbeat, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerLeadershipChanged,
		jetstream.ErrServerShutdown, nats.ErrNoResponders, nats.ErrConnectionClosed,
	} {
		if errors.Is(why, other) {
			return false
		}
	}
	at := r.order.begin("")
	if at != r.stuck.at {
		r.stuck.at, r.stuck.times = at, 0
	}
	r.stuck.times++
	return r.stuck.times > 1
}

// fetch reads the next message from the leader, by its sequence, and hands it over. When it
// cannot, the next consumer tries.
func (r *Reader) fetch(ctx context.Context, why error) {
	last := r.order.begin("")
	if last == 0 && r.config.DeliverPolicy != jetstream.DeliverByStartSequencePolicy {
		return // not every message is wanted
	}
	m, err := r.following(ctx, last+1)
	if err != nil {
		r.OnError(fmt.Errorf("read the message after %d by its sequence: %w", last, err))
		return
	}
	if m != nil {
		r.onFetched(m.Seq, why)
		_ = r.order.insert(messageOf(r.stream, m, r.config.HeadersOnly)) // an end that the caller chose
	}
}

// following is the first message from a sequence on that the reader selects; nil for none.
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

// next creates a consumer that begins after the last message that passed. again reports
// whether an error is worth another try.
func (r *Reader) next(ctx context.Context, again func(error) bool) (cons jetstream.Consumer, err error) {
	config := r.config
	if last := r.order.begin(""); last > 0 {
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
		r.deleteConsumer(config.Name) // it may have been made
	}
	return cons, err
}

// seen returns the sequence of the stream up to which the newest consumer has looked, once
// all that it found has passed. It stops where the copy that it reads from ends; so that copy
// itself reports how far it goes, whatever others have. It reports it in the heartbeats of a
// pull: the consumer's own state stays where the last message was delivered.
func (r *Reader) seen(ctx context.Context) (upTo uint64, ok bool) {
	name, passed := r.order.delivered()
	m, err := r.probe(ctx, name)
	if err != nil {
		return 0, false
	}
	if isDelivery(m) { // which the reader misses now
		retry.Wake(r.behind)
		return 0, false
	}
	return jsapi.ParseSeq(m.Header.Get(headerLastStream)), m.Header.Get(headerStatus) == statusHeartbeat && jsapi.ParseSeq(m.Header.Get(headerLastConsumer)) == passed
}

// probe requests one message from a consumer, and returns the first answer. It has an inbox of
// its own: a message that is delivered on that of all requests comes under its own subject,
// and the client would hand it to any other request under way.
func (r *Reader) probe(ctx context.Context, consumer string) (*nats.Msg, error) {
	nc := r.js.Conn()
	answers := make(chan *nats.Msg, 8) // one message at most, and heartbeats
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
	// probeHeartbeat is when a pull that only waits for a heartbeat gets one, and probeTime when
	// it is given up.
	probeHeartbeat = 10 * time.Millisecond
	probeTime      = time.Second
)

// deleteConsumer requests the deletion of a consumer and awaits no answer: the server deletes
// an idle one too.
func (r *Reader) deleteConsumer(consumer string) {
	if nc := r.js.Conn(); consumer != "" && nc.IsConnected() { // there is none while the next one is created
		_ = nc.Publish(subjectDeleteConsumer+r.stream+"."+consumer, nil)
	}
}
