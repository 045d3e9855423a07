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

// firstSilence is how long answers may be missing before they are asked for again, and
// lastSilence the longest time after that. Any copy answers a direct get, a node that is
// cut off too, if only nobody hears it: a third of the answers is lost then, for minutes. So every
// other time it is the leader that is asked.
const (
	firstSilence = 100 * time.Millisecond
	lastSilence  = time.Second
)

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
	inbox string // with the dot; who is asked and the index in seqs follow
	seqs  []uint64
	out   []LogMessage
	done  []bool
	gone  []uint64
	left  int // not done
	next  int // first not yet asked for
	wait  int // asked for, not done
	big   int // the largest body so far

	silences int           // since the last answer
	pause    time.Duration // how long the next one may last
}

func newGetter(nc *nats.Conn, seqs []uint64) (*getter, error) {
	g := &getter{
		nc: nc, seqs: seqs, inbox: nc.NewRespInbox() + ".", msgs: make(chan *nats.Msg, 4*min(len(seqs), maxInFlight)), // with room for answers that come again
		out: make([]LogMessage, len(seqs)), done: make([]bool, len(seqs)), left: len(seqs), pause: firstSilence,
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
			if err := g.ask(g.next, apiDirectGet); err != nil {
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
		if err := g.take(msg); err != nil {
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

// ask asks for one event, of any copy or of the leader. The answer says by its subject who
// was asked: they answer in different forms, and an event may hold what looks like the other.
func (g *getter) ask(i int, api string) error {
	body := fmt.Appendf(nil, `{"seq":%d}`, g.seqs[i])
	who := fromCopy
	if api == apiGet {
		body, who = fmt.Appendf(nil, `{"seq":%d,"no_hdr":true}`, g.seqs[i]), fromLeader
	}
	err := g.nc.PublishRequest(api+LogStream, g.inbox+who+strconv.Itoa(i), body)
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return nil // asked again when it is missed
	}
	return err
}

func (g *getter) askAgain() error {
	api := apiGet
	if g.silences%2 == 1 {
		api = apiDirectGet
	}
	g.silences++
	g.pause = min(2*g.pause, lastSilence)
	for i := range g.next {
		if g.done[i] {
			continue
		}
		if err := g.ask(i, api); err != nil {
			return err
		}
	}
	return nil
}

func (g *getter) receive(ctx context.Context) (*nats.Msg, error) {
	select {
	case msg := <-g.msgs:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(g.pause):
		return nil, errNoAnswer
	}
}

// Who answers, in the subject of an answer.
const (
	fromCopy   = "c"
	fromLeader = "l"
)

// take files one answer.
func (g *getter) take(msg *nats.Msg) error {
	place := strings.TrimPrefix(msg.Subject, g.inbox)
	leader := strings.HasPrefix(place, fromLeader)
	i, err := strconv.Atoi(place[min(1, len(place)):])
	if err != nil || i < 0 || i >= g.next || g.done[i] {
		return nil //nolint:nilerr // the second answer to a question asked twice, or none of ours
	}
	lm, known := directAnswer(msg, g.seqs[i])
	switch {
	case leader:
		lm, err = g.parseLeader(msg)
	case g.seqs[i] == 0:
		err = jetstream.ErrMsgNotFound
	case !known: // also when it says that it has none: it may not have it yet
		return g.ask(i, apiGet)
	}
	switch {
	case leaderless(err), errors.Is(err, nats.ErrNoResponders), hasCode(err, codeInsufficient):
		return nil // asked again when it is missed
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
	g.silences, g.pause = 0, firstSilence
	return nil
}

// parseLeader reads an answer of the leader.
func (g *getter) parseLeader(msg *nats.Msg) (LogMessage, error) {
	if len(msg.Data) == 0 { // no server has the stream just now
		return LogMessage{}, nats.ErrNoResponders
	}
	m, err := parseStored(msg.Data)
	if err != nil {
		return LogMessage{}, fmt.Errorf("read from leader of %s: %w", LogStream, err)
	}
	return m.logMessage(), nil
}

func (m *storedMsg) logMessage() LogMessage {
	return LogMessage{Seq: m.Seq, Subject: m.Subject, Time: m.Time, Data: m.Data}
}
