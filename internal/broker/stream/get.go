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

// firstResend is the wait for an answer before the first repetition of a request, lastResend the
// longest wait before a later one. Any copy answers a direct get, also one on a node that is cut
// off: then a third of all answers is lost, for minutes. So every other repetition goes to the leader.
const (
	firstResend = 100 * time.Millisecond
	lastResend  = time.Second
)

// LogMessage is one event of the log.
type LogMessage struct {
	Seq uint64
	// Subject names the session. Compare it before you use the text: after a power loss a log
	// can assign a sequence twice.
	Subject string
	Time    time.Time
	Data    []byte
	Trace   events.Trace // set if the message was read with its headers
}

// GoneError lists sequences that the log does not hold.
type GoneError struct{ Seqs []uint64 }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%d messages are not in %s, the first at sequence %d; they exceeded its maximum age, or were purged", len(e.Seqs), topology.LogStream, e.Seqs[0])
}

// GetLog reads single events by sequence, as [Texts.Get] does, without joining other callers.
func GetLog(ctx context.Context, nc *nats.Conn, seqs []uint64) ([]LogMessage, error) {
	return NewTexts(nc).Get(ctx, seqs)
}

// getter is one call that reads events. The goroutine of the call owns it, except the fields that the
// line's mu guards.
type getter struct {
	line  *Texts
	nc    *nats.Conn
	sub   *nats.Subscription
	msgs  chan *nats.Msg
	inbox string // with the dot; the kind of the answer and the index in seqs follow
	seqs  []uint64
	take  func(int, LogMessage) (drop []int) // see each
	gone  []uint64
	left  int    // number of events neither answered nor dropped
	last  uint64 // of seqs

	resends  int           // since the last answer
	pause    time.Duration // before the next resend
	answered time.Time     // time of the last answer

	broken chan error // receives an error of a request

	// The line's mu guards the rest.
	states    []state
	order     []int     // indices into seqs, in the order of requests
	sweep     uint64    // its first sweep
	split     int       // index in order: from here on in the next sweep
	next      int       // index in order: first not yet requested
	requested int       // requests under way, including overdue ones
	slots     int       // slots of the line that it holds
	sent      time.Time // time of the last request
}

// state is the progress of reading one event.
type state uint8

const (
	wanted   state = iota
	inSlot         // requested, holds a slot of the line
	overdue        // requested, its slot was released
	finished       // answered or dropped
)

func newGetter(line *Texts, seqs []uint64, take func(int, LogMessage) []int) (*getter, error) {
	nc := line.nc
	g := &getter{
		line: line, nc: nc, seqs: seqs, take: take, inbox: nc.NewRespInbox() + ".", msgs: make(chan *nats.Msg, 4*min(len(seqs), maxInFlight)), // space for repeated answers
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

// send requests one event, from any copy or from the leader. The subject of the answer names the
// source: the two answer in different forms, and the text of an event may look like the other form.
func (g *getter) send(i int, api string) error {
	body := fmt.Appendf(nil, `{"seq":%d}`, g.seqs[i])
	kind := fromCopy
	if api == jsapi.SubjectGet {
		body, kind = fmt.Appendf(nil, `{"seq":%d,"no_hdr":true}`, g.seqs[i]), fromLeader
	}
	err := g.nc.PublishRequest(api+topology.LogStream, g.inbox+kind+strconv.Itoa(i), body)
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return nil // resend requests it again
	}
	return err
}

// resend requests the missed events again.
func (g *getter) resend(missed []int) error {
	if len(missed) == 0 {
		return nil // nothing is overdue
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

// Kinds of answers, as their subjects name them.
const (
	fromCopy   = "c"
	fromLeader = "l"
)

// accept handles one answer.
func (g *getter) accept(msg *nats.Msg) error {
	place := strings.TrimPrefix(msg.Subject, g.inbox)
	leader := strings.HasPrefix(place, fromLeader)
	i, err := strconv.Atoi(place[min(1, len(place)):])
	if err != nil || i < 0 || i >= len(g.seqs) || !g.line.awaits(g, i) {
		return nil //nolint:nilerr // a second answer to a repeated request, or a foreign message
	}
	lm, ok := directAnswer(msg, g.seqs[i])
	switch {
	case leader:
		lm, err = g.parseLeader(msg)
	case g.seqs[i] == 0:
		err = jetstream.ErrMsgNotFound
	case !ok: // a copy that reports no message may be behind
		return g.send(i, jsapi.SubjectGet)
	}
	switch {
	case jsapi.Leaderless(err), errors.Is(err, nats.ErrNoResponders), jsapi.HasCode(err, jsapi.CodeInsufficient):
		return nil // resend requests it again
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

func (g *getter) parseLeader(msg *nats.Msg) (LogMessage, error) {
	if len(msg.Data) == 0 { // currently no server has the stream
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
