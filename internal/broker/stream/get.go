package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
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
	Trace   events.Trace // where it was read with its headers
}

// GoneError lists sequences that the log does not hold, or no longer.
type GoneError struct{ Seqs []uint64 }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%d messages are not in %s, the first at sequence %d; they exceeded its maximum age, or were purged", len(e.Seqs), topology.LogStream, e.Seqs[0])
}

// GetLog reads single events by sequence, as [Texts.Get] does, beside what others read.
func GetLog(ctx context.Context, nc *nats.Conn, seqs []uint64) ([]LogMessage, error) {
	return NewTexts(nc).Get(ctx, seqs)
}

// getter is one call that reads events. The goroutine of the call owns it, but for what is
// named below.
type getter struct {
	line  *Texts
	nc    *nats.Conn
	sub   *nats.Subscription
	msgs  chan *nats.Msg
	inbox string // with the dot; the kind of the answer and the index in seqs follow
	seqs  []uint64
	take  func(int, LogMessage) (drop []int) // see each
	gone  []uint64
	left  int    // neither answered nor dropped
	last  uint64 // of seqs

	resends  int           // since the last answer
	pause    time.Duration // before the next one
	answered time.Time     // when the last answer came

	broken chan error // gets one when nothing can be requested

	// The line's mu guards the rest.
	states    []state
	order     []int     // of seqs, as they are requested
	sweep     uint64    // the first one that it takes part in
	split     int       // in order: from here on in the next sweep
	next      int       // in order: first not yet requested
	requested int       // under way, overdue ones included
	slots     int       // of the line that it has
	sent      time.Time // when the last request was sent
}

// state is how far one event is read.
type state uint8

const (
	wanted   state = iota
	inSlot         // requested, and in a slot of the line
	overdue        // requested, and the slot given up
	finished       // answered or dropped
)

func newGetter(line *Texts, seqs []uint64, take func(int, LogMessage) []int) (*getter, error) {
	nc := line.nc
	g := &getter{
		line: line, nc: nc, seqs: seqs, take: take, inbox: nc.NewRespInbox() + ".", msgs: make(chan *nats.Msg, 4*min(len(seqs), maxInFlight)), // with room for answers that come again
		states: make([]state, len(seqs)), order: make([]int, len(seqs)), left: len(seqs), pause: line.pause, broken: make(chan error, 1),
	}
	for i := range g.order {
		g.order[i] = i
	}
	slices.SortFunc(g.order, func(a, b int) int { return cmp.Compare(seqs[a], seqs[b]) })
	g.last = seqs[g.order[len(seqs)-1]]
	var err error
	if g.sub, err = nc.ChanSubscribe(g.inbox+"*", g.msgs); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *getter) run(ctx context.Context) error {
	for g.left > 0 {
		msg, err := g.receive(ctx)
		if errors.Is(err, jsapi.ErrNoAnswer) {
			if err := g.resend(g.line.takeOverdue(g)); err != nil {
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

// resend requests again what is missed.
func (g *getter) resend(missed []int) error {
	if len(missed) == 0 {
		return nil // its turn has not come, or others get answers
	}
	api := jsapi.SubjectGet
	if g.resends%2 == 1 {
		api = subjectDirectGet
	}
	g.resends++
	g.pause = min(2*g.pause, lastResend)
	for _, i := range missed {
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
	case err := <-g.broken:
		return nil, err
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

// accept passes one answer on.
func (g *getter) accept(msg *nats.Msg) error {
	place := strings.TrimPrefix(msg.Subject, g.inbox)
	leader := strings.HasPrefix(place, fromLeader)
	i, err := strconv.Atoi(place[min(1, len(place)):])
	if err != nil || i < 0 || i >= len(g.seqs) || !g.line.awaits(g, i) {
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
		g.gone, lm = append(g.gone, g.seqs[i]), LogMessage{}
	case err != nil:
		return err
	}
	drop := g.take(i, lm)
	g.line.relieve()
	g.left -= g.line.finish(g, i, drop, max(len(lm.Data), 1))
	g.resends, g.pause = 0, g.line.pause
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
	return LogMessage{Seq: m.Seq, Subject: m.Subject, Time: m.Time, Data: m.Data, Trace: events.ReadTrace(m.Headers()[events.HeaderTrace])}
}
