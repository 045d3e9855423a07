package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How many reads are under way at once. It starts low and grows as the bodies
// turn out small: the server cuts a client off that has 64 MiB waiting.
const (
	maxInFlight   = 256
	firstInFlight = 8
	bytesInFlight = 24 << 20
)

// directPause is how long an answer may be missing before it is asked for again.
const directPause = time.Second

// LogMessage is one event as the log has it.
type LogMessage struct {
	Seq uint64
	// Subject tells the session. Compare it before the text goes anywhere: after a
	// power loss a log can issue a sequence twice.
	Subject string
	Time    time.Time
	Data    []byte
}

// GoneError lists sequences that the log does not hold, or no longer.
type GoneError struct{ Seqs []uint64 }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%d messages are not in %s, the first at sequence %d; they are older than its age, or were purged", len(e.Seqs), LogStream, e.Seqs[0])
}

// GetLog reads single events by sequence, many at once, and returns them in the
// order asked for. With a [*GoneError] the events that are there are returned
// beside it, and the others have an empty Subject. Lost answers are asked for
// again until ctx ends.
func GetLog(ctx context.Context, nc *nats.Conn, seqs []uint64) ([]LogMessage, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	g, err := newGetter(nc, seqs)
	if err != nil {
		return nil, fmt.Errorf("read log by sequence: %w", err)
	}
	defer g.sub.Unsubscribe()
	if err := g.run(ctx); err != nil {
		return nil, fmt.Errorf("read log by sequence: %w", err)
	}
	if len(g.gone) > 0 {
		return g.out, fmt.Errorf("read log by sequence: %w", &GoneError{g.gone})
	}
	return g.out, nil
}

// getter is one call of GetLog.
type getter struct {
	nc    *nats.Conn
	sub   *nats.Subscription
	msgs  chan *nats.Msg
	inbox string // with the dot; the index in seqs follows
	seqs  []uint64
	out   []LogMessage
	done  []bool
	gone  []uint64
	left  int // not done
	next  int // first not yet asked for
	wait  int // asked for, not done
	big   int // the largest body so far
}

func newGetter(nc *nats.Conn, seqs []uint64) (*getter, error) {
	g := &getter{
		nc: nc, seqs: seqs, inbox: nc.NewRespInbox() + ".", msgs: make(chan *nats.Msg, 2*min(len(seqs), maxInFlight)), // with room for answers that come twice
		out: make([]LogMessage, len(seqs)), done: make([]bool, len(seqs)), left: len(seqs),
	}
	var err error
	if g.sub, err = nc.ChanSubscribe(g.inbox+"*", g.msgs); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *getter) run(ctx context.Context) error {
	for g.left > 0 {
		for g.next < len(g.seqs) && g.wait < g.window() {
			if err := g.ask(g.next); err != nil {
				return err
			}
			g.next++
			g.wait++
		}
		msg, err := g.receive(ctx)
		if errors.Is(err, errNoAnswer) {
			if err := g.askAgain(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := g.take(ctx, msg); err != nil {
			return err
		}
	}
	return nil
}

func (g *getter) window() int {
	if g.big == 0 {
		return firstInFlight
	}
	return max(2, min(maxInFlight, bytesInFlight/g.big))
}

func (g *getter) ask(i int) error {
	body := strconv.AppendUint([]byte(`{"seq":`), g.seqs[i], 10)
	err := g.nc.PublishRequest(apiDirectGet+LogStream, g.inbox+strconv.Itoa(i), append(body, '}'))
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return nil // asked again when it is missed
	}
	return err
}

func (g *getter) askAgain() error {
	for i := range g.next {
		if g.done[i] {
			continue
		}
		if err := g.ask(i); err != nil {
			return err
		}
	}
	return nil
}

func (g *getter) receive(ctx context.Context) (*nats.Msg, error) {
	select {
	case msg := <-g.msgs:
		if len(msg.Data) == 0 && msg.Header.Get(headerStatus) == statusNoResponders { // no server has the stream just now
			return nil, pause(ctx, 50*time.Millisecond)
		}
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(directPause):
		return nil, errNoAnswer
	}
}

// pause waits, and then asks for another try.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return errNoAnswer
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take files one answer.
func (g *getter) take(ctx context.Context, msg *nats.Msg) error {
	i, err := strconv.Atoi(strings.TrimPrefix(msg.Subject, g.inbox))
	if err != nil || i < 0 || i >= g.next || g.done[i] {
		return nil //nolint:nilerr // the second answer to a question asked twice, or none of ours
	}
	lm, err := g.parse(ctx, i, msg)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		g.gone = append(g.gone, g.seqs[i])
	case err != nil:
		return err
	}
	g.out[i] = lm
	g.big = max(g.big, len(lm.Data), 1)
	g.done[i] = true
	g.left--
	g.wait--
	return nil
}

func (g *getter) parse(ctx context.Context, i int, msg *nats.Msg) (LogMessage, error) {
	switch status := msg.Header.Get(headerStatus); status {
	case "":
	case "404", "408": // 408 answers sequence 0
		return g.fromLeader(ctx, g.seqs[i])
	default:
		return LogMessage{}, fmt.Errorf("sequence %d: server answers %s %s", g.seqs[i], status, msg.Header.Get("Description"))
	}
	lm := LogMessage{Seq: parseSeq(msg.Header.Get(headerSequence)), Subject: msg.Header.Get(headerSubject), Data: msg.Data}
	if lm.Seq != g.seqs[i] {
		return LogMessage{}, fmt.Errorf("sequence %d: server answers with %d", g.seqs[i], lm.Seq)
	}
	var err error
	if lm.Time, err = time.Parse(time.RFC3339Nano, msg.Header.Get(headerTimestamp)); err != nil {
		return LogMessage{}, fmt.Errorf("sequence %d: %w", lm.Seq, err)
	}
	return lm, nil
}

// fromLeader asks whether a message is really gone: the replica that answered
// may not have had it yet.
func (g *getter) fromLeader(ctx context.Context, seq uint64) (lm LogMessage, err error) {
	if seq == 0 {
		return LogMessage{}, jetstream.ErrMsgNotFound
	}
	err = retry(ctx, nil, func() error {
		m, err := getFromLeader(ctx, g.nc, LogStream, getRequest{Seq: seq, NoHeader: true})
		if err != nil {
			return transient(err)
		}
		lm = LogMessage{Seq: m.Seq, Subject: m.Subject, Time: m.Time, Data: m.Data}
		return nil
	})
	return lm, err
}
