package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/memory"
)

// How many reads are in flight at once. The number starts low and grows while the payloads
// are small: the server disconnects a client that has 64 MiB pending.
const (
	maxInFlight   = 32
	firstInFlight = 8
	leastInFlight = 2
	bytesInFlight = 24 << 20
)

// firstResend is how long answers may be missing before they are requested again, and
// lastResend the longest time after that. Any copy answers a direct get. So does a node that
// is cut off, and its answers get lost: a third of all, for minutes. So every other request
// goes to the leader.
const (
	firstResend = 100 * time.Millisecond
	lastResend  = time.Second
)

// LogMessage is one event as the log has it.
type LogMessage struct {
	Seq uint64
	// Subject names the session. Compare it before the text is used: after a power loss a
	// log can issue a sequence twice.
	Subject string
	Time    time.Time
	Data    []byte
}

// GoneError lists sequences that the log does not hold, or no longer.
type GoneError struct{ Seqs []uint64 }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%d messages are not in %s, the first at sequence %d; they exceeded its maximum age, or were purged", len(e.Seqs), topology.LogStream, e.Seqs[0])
}

// GetLog reads single events by sequence, many at once, and returns them in the
// order of seqs. With a [*GoneError] the events that the log holds are returned too,
// and the others have an empty Subject. Lost answers are requested again until ctx ends.
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
	inbox string // with the dot; the kind of the answer and the index in seqs follow
	seqs  []uint64
	out   []LogMessage
	done  []bool
	gone  []uint64
	left  int // not done
	next  int // first not yet requested
	wait  int // requested, not done
	big   int // the largest payload so far

	resends int           // since the last answer
	pause   time.Duration // before the next one
}

func newGetter(nc *nats.Conn, seqs []uint64) (*getter, error) {
	g := &getter{
		nc: nc, seqs: seqs, inbox: nc.NewRespInbox() + ".", msgs: make(chan *nats.Msg, 4*min(len(seqs), maxInFlight)), // with room for answers that come again
		out: make([]LogMessage, len(seqs)), done: make([]bool, len(seqs)), left: len(seqs), pause: firstResend,
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
			if err := g.send(g.next, subjectDirectGet); err != nil {
				return err
			}
			g.next++
			g.wait++
		}
		msg, err := g.receive(ctx)
		if errors.Is(err, jsapi.ErrNoAnswer) {
			if err := g.resend(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := g.accept(msg); err != nil {
			return err
		}
	}
	return nil
}

func (g *getter) window() int {
	switch {
	case memory.Relieve(): // an embedded server reads up to 8 MiB around each event
		return leastInFlight
	case g.big == 0:
		return firstInFlight
	}
	return max(leastInFlight, min(maxInFlight, bytesInFlight/g.big))
}

// send requests one event, from any copy or from the leader. The subject of the answer names
// which: the two answer in different forms, and an event may contain what looks like the other.
func (g *getter) send(i int, api string) error {
	body := fmt.Appendf(nil, `{"seq":%d}`, g.seqs[i])
	kind := fromCopy
	if api == jsapi.SubjectGet {
		body, kind = fmt.Appendf(nil, `{"seq":%d,"no_hdr":true}`, g.seqs[i]), fromLeader
	}
	err := g.nc.PublishRequest(api+topology.LogStream, g.inbox+kind+strconv.Itoa(i), body)
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return nil // requested again when it is missed
	}
	return err
}

func (g *getter) resend() error {
	api := jsapi.SubjectGet
	if g.resends%2 == 1 {
		api = subjectDirectGet
	}
	g.resends++
	g.pause = min(2*g.pause, lastResend)
	for i := range g.next {
		if g.done[i] {
			continue
		}
		if err := g.send(i, api); err != nil {
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
		return nil, jsapi.ErrNoAnswer
	}
}

// The kind of an answer, in its subject.
const (
	fromCopy   = "c"
	fromLeader = "l"
)

// accept stores one answer.
func (g *getter) accept(msg *nats.Msg) error {
	place := strings.TrimPrefix(msg.Subject, g.inbox)
	leader := strings.HasPrefix(place, fromLeader)
	i, err := strconv.Atoi(place[min(1, len(place)):])
	if err != nil || i < 0 || i >= g.next || g.done[i] {
		return nil //nolint:nilerr // the second answer to a request sent twice, or none of ours
	}
	lm, ok := directAnswer(msg, g.seqs[i])
	switch {
	case leader:
		lm, err = g.parseLeader(msg)
	case g.seqs[i] == 0:
		err = jetstream.ErrMsgNotFound
	case !ok: // also when the copy reports that it has none: it may not have it yet
		return g.send(i, jsapi.SubjectGet)
	}
	switch {
	case jsapi.Leaderless(err), errors.Is(err, nats.ErrNoResponders), jsapi.HasCode(err, jsapi.CodeInsufficient):
		return nil // requested again when it is missed
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
	g.resends, g.pause = 0, firstResend
	return nil
}

// parseLeader reads an answer of the leader.
func (g *getter) parseLeader(msg *nats.Msg) (LogMessage, error) {
	if len(msg.Data) == 0 { // no server has the stream just now
		return LogMessage{}, nats.ErrNoResponders
	}
	m, err := jsapi.ParseStored(msg.Data)
	if err != nil {
		return LogMessage{}, fmt.Errorf("read from leader of %s: %w", topology.LogStream, err)
	}
	return logMessage(m), nil
}

func logMessage(m *jsapi.StoredMsg) LogMessage {
	return LogMessage{Seq: m.Seq, Subject: m.Subject, Time: m.Time, Data: m.Data}
}
