package agents

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// Limits on a connection that receives events.
const (
	heartbeatEvery = 24 * time.Second // between two heartbeats of an idle connection
	heartbeatParts = 24               // the followers get them in this number of groups
	writeTime      = 30 * time.Second // limit for one event: a slower reader is disconnected
	maxQueue       = 256              // queued events
	writeBuffer    = 256 << 10
)

// follower is one connection that receives the events of a session, or of an operator. While it is idle, it
// has no goroutine and no buffer.
type follower struct {
	hub   *Hub
	at    events.Address // for an operator a filter, with "" for any
	part  int            // group of its heartbeats
	after uint64         // last sequence sent; owned by the writing goroutine
	// branches: the follower also receives outcomes of branches. family caches whether a
	// session is a branch; owned by the writing goroutine.
	branches bool
	family   map[string]bool
	operator bool // it receives signals

	// Guarded by the mutex of the hub.
	release func() // releases its slot
	token   *tokens.Entry
	conn    net.Conn // nil until the connection is hijacked
	queue   []*event // to send
	due     bool     // a heartbeat is due
	writing bool     // a goroutine writes
}

// stream answers with the events of a session, as server-sent events. It hijacks the connection from
// the HTTP server, which would keep goroutines and buffers for it.
func (e *Edge) stream(w http.ResponseWriter, r *http.Request) error {
	a, err := session(r)
	if err != nil {
		return err
	}
	after, resumes, err := ResumeAt(r, e.hub.js)
	if err != nil {
		return err
	}
	if err := e.record(r, "events", a); err != nil {
		return err
	}
	f := &follower{hub: e.hub, at: a, token: service.TokenOf(r), part: int(parts.Add(1) % heartbeatParts), writing: true, branches: r.URL.Query().Get("branches") == "true"}
	upTo, err := e.hub.join(r.Context(), f, e.tokens.Load)
	if err != nil {
		return err
	}
	if f.after = upTo; resumes {
		f.after = after
	}
	return f.takeOver(w, upTo)
}

// takeOver hijacks the connection of a request, and begins to send.
func (f *follower) takeOver(w http.ResponseWriter, upTo uint64) error {
	origin := w.Header().Get("Access-Control-Allow-Origin")
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		f.hub.cut(f)
		return fmt.Errorf("take over the connection: %w", err)
	}
	if f.hub.start(f, conn) { // start fails after a revocation, and while the worker stops
		go f.begin(upTo, origin)
	}
	return nil
}

// key returns the address under which the hub keeps a follower.
func (f *follower) key() events.Address {
	if f.operator {
		return events.Address{}
	}
	return f.at
}

// tenant returns the tenant whose slots a follower takes.
func (f *follower) tenant() string {
	if f.operator {
		return events.AnyTenant
	}
	return f.at.Tenant
}

// ResumeAt returns the sequence of OUTCOMES after which a reader of events resumes.
func ResumeAt(r *http.Request, js jetstream.JetStream) (after uint64, resumes bool, err error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, false, nil
	}
	after, err = strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, false, events.NewInvalid(events.CodeOutOfRange, "Last-Event-ID", "is none that an event had")
	}
	state, err := topology.State(r.Context(), js, topology.OutcomesStream)
	if err != nil {
		return 0, false, events.Refuse(events.CodeUnavailable, "the stream of outcomes cannot be read now", "Try again in a moment.")
	}
	if after > state.Last || after+1 < state.First {
		return 0, false, events.Refuse(events.CodeGone, "events after that one are no longer stored, or it was never sent", "Request the context of the session, and the events without Last-Event-ID.")
	}
	return after, true, nil
}

// start gives a follower its connection. It returns false if the hub has dropped the follower.
func (h *Hub) start(f *follower, conn net.Conn) bool {
	_ = conn.SetDeadline(time.Time{})
	raw := conn
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		raw = over.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(writeBuffer) // the default takes some megabytes for a stuck reader
	}
	h.mu.Lock()
	_, kept := h.followers[f.key()][f]
	if kept {
		f.conn = conn
	}
	h.mu.Unlock()
	if !kept {
		_ = conn.Close() // TLS writes an alert: without the mutex
	}
	return kept
}

// begin sends the head, then the outcomes up to a sequence, then the queue.
func (f *follower) begin(upTo uint64, origin string) {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Accel-Buffering: no\r\nConnection: close\r\n"
	if origin != "" {
		head += "Access-Control-Allow-Origin: " + origin + "\r\nVary: Origin\r\n"
	}
	err := f.write([]byte(head + "\r\nretry: 1000\nid: " + strconv.FormatUint(f.after, 10) + "\n\n"))
	switch {
	case err != nil:
	case f.operator:
		err = f.catchUpSignals(upTo)
	default:
		err = f.catchUp(upTo)
	}
	if err != nil {
		f.hub.cut(f)
		return
	}
	f.drain()
}

// catchUp reads and sends the outcomes up to a sequence, one by one.
func (f *follower) catchUp(upTo uint64) error {
	if f.after >= upTo {
		return nil
	}
	all, err := f.heirs()
	if err != nil {
		return err
	}
	for {
		next, err := f.first(all)
		if err != nil {
			return err
		}
		if next == nil || next.seq > upTo {
			f.after = max(f.after, upTo)
			return nil
		}
		if err := f.paced(next); err != nil {
			return err
		}
	}
}

// first returns the next outcome of all sessions, or nil.
func (f *follower) first(all []*heir) (next *event, err error) {
	for _, x := range all {
		if err := x.find(f); err != nil {
			return nil, err
		}
		if x.next != nil && (next == nil || x.next.seq < next.seq) {
			next = x.next
		}
	}
	return next, nil
}

// paced sends an outcome when its tenant may get one more.
func (f *follower) paced(e *event) error {
	if !followed(e.at.Kind) || e.size == 0 { // overwritten by an erasure
		f.after = e.seq
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	count, err := f.hub.limiter.Pace(ctx, f.at.Tenant)
	cancel()
	if err != nil {
		return err
	}
	count(int(e.size))
	return f.step(e)
}

// heir is the session of a follower or one of its branches, with its next outcome, nil for none. That has no payload
// until it is sent: a session may have hundreds of branches.
type heir struct {
	at   events.Address
	next *event
	done bool
}

// heirs returns the sessions whose outcomes a follower receives.
func (f *follower) heirs() ([]*heir, error) {
	all := []*heir{{at: f.at}}
	if !f.branches {
		return all, nil
	}
	err := f.reading(service.TurnMemory, func(ctx context.Context) error {
		branches, err := branchesOf(ctx, f.hub.js.Conn(), f.at)
		for _, a := range branches {
			all = append(all, &heir{at: a})
		}
		return err
	})
	return all, err
}

// find finds the next outcome to send, unless it is known or there is none.
func (h *heir) find(f *follower) (err error) {
	if h.done || h.next != nil && h.next.seq > f.after {
		return nil
	}
	h.next, err = f.next(h.at, f.after+1)
	h.done = h.next == nil
	return err
}

// next finds the first outcome of a session from a sequence on, or nil.
func (f *follower) next(a events.Address, from uint64) (e *event, err error) {
	err = f.reading(outcomeMemory, func(ctx context.Context) error {
		return stream.ReadSubject(ctx, f.hub.js.Conn(), topology.OutcomesStream, "out.*.*."+a.String(), from, func(found stream.LogMessage) error {
			at, err := events.ParseOutcome(found.Subject)
			if err != nil {
				return fmt.Errorf("outcome %d: not of a session", found.Seq)
			}
			e = &event{seq: found.Seq, at: at, size: int64(len(found.Data))}
			return stream.ErrEnd
		})
	})
	return e, err
}

// outcomeMemory is the memory to read an outcome of an unknown size: as received and as decoded.
const outcomeMemory = 4 * events.MaxOutputBytes

// reading waits for memory, then for a slot to read the log, and then calls fn unless the client is gone.
func (f *follower) reading(memory int64, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	free, err := f.hub.limiter.Hold(ctx, limit.Memory, limit.Account{Tenant: f.tenant(), Part: memoryPart}, memory)
	if err != nil {
		return err
	}
	defer free()
	release, err := f.hub.limiter.Hold(ctx, limit.CatchUps, limit.Account{Tenant: f.tenant()}, 1)
	if err != nil {
		return err
	}
	defer release()
	if f.gone() {
		return errClientGone
	}
	return fn(ctx)
}

var errClientGone = errors.New("the client ended the connection")

// gone reports whether the client has ended the connection. A client sends no data on it.
func (f *follower) gone() bool {
	_ = f.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := f.conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// wake starts a goroutine to send due events, unless one runs. The caller holds the mutex of the hub.
func (f *follower) wake() {
	if !f.writing {
		f.writing = true
		go f.drain()
	}
}

// drain sends until nothing is due.
func (f *follower) drain() {
	for {
		e, at, more := f.take()
		var err error
		switch {
		case !more:
			return
		case e == nil:
			err = f.heartbeat(at)
		default:
			err = f.step(e)
		}
		if err != nil {
			f.hub.cut(f)
			return
		}
	}
}

// take returns the next event to send, or nil for a heartbeat, with the sequence up to which all outcomes were sent.
func (f *follower) take() (e *event, at uint64, more bool) {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	switch {
	case len(f.queue) > 0:
		if e, f.queue = f.queue[0], f.queue[1:]; len(f.queue) == 0 {
			f.queue = nil
		}
		return e, 0, true
	case f.due:
		f.due = false
		return nil, f.hub.at, true
	}
	f.writing = false
	return nil, 0, false
}

// heartbeat sends a heartbeat with the sequence up to which the reader has all outcomes. So the last id of a reader
// never becomes so old that OUTCOMES no longer has it.
func (f *follower) heartbeat(at uint64) error {
	f.after = max(f.after, at)
	return f.write([]byte("id: " + strconv.FormatUint(f.after, 10) + "\n\n"))
}

// step sends an event. It holds no memory while it waits for the memory of the payload.
func (f *follower) step(e *event) error {
	if e.seq <= f.after { // already sent, before the reconnect or by catchUp
		return nil
	}
	if e.line != nil {
		f.after = e.seq
		return f.write(e.line)
	}
	is, err := f.has(e.at.Address)
	if err != nil {
		return err
	}
	if !is {
		f.after = e.seq
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	payload, err := e.open(ctx, f.hub)
	if err != nil {
		return err
	}
	defer e.close()
	if f.after = e.seq; len(payload) == 0 { // erased
		return nil
	}
	return f.write(e.parts(f.at, payload)...)
}

func (f *follower) write(parts ...[]byte) error {
	if err := f.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	buffers := net.Buffers(parts)
	_, err := buffers.WriteTo(f.conn)
	return err
}
