package worker

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/query"
)

const (
	aliveEvery = 15 * time.Second
	// maxSignals is how many signals wait for a reader before it is cut, and resumes.
	maxSignals = 4096
	signalTime = 30 * time.Second // to write one
)

// signal is what an event of /v1/events has: what OUTCOMES got, without its payload.
type signal struct {
	Partition int    `json:"partition"`
	Tenant    string `json:"tenant,omitzero"`
	Session   string `json:"session,omitzero"`
	Time      int64  `json:"time_ms"`
	Owner     string `json:"owner,omitzero"` // of a takeover
	Epoch     uint64 `json:"epoch,omitzero"`
}

// takeover is the event of a partition with a new owner, or a new epoch of the same one.
const takeover = "takeover"

// live answers with a signal for each message that OUTCOMES gets, as server-sent events. Their ids are sequences
// there, after which a reader resumes.
func (m *Monitor) live(w http.ResponseWriter, r *http.Request) error {
	on := m.watched.Load()
	if on == nil {
		return query.ErrNotServed
	}
	after, resumes, err := agents.ResumeAt(r, on.js)
	if err != nil {
		return err
	}
	release, ok := on.worker.Limiter().TryHold(limit.Streams, limit.Account{Tenant: events.AnyTenant}, 1)
	if !ok {
		return &events.ServiceError{V: events.Version, Code: events.CodeRateLimited, Message: "too many connections receive events", Hint: "End one, and try again."}
	}
	defer release()
	if !resumes {
		state, err := topology.State(r.Context(), on.js, topology.OutcomesStream)
		if err != nil {
			return query.ErrBusy
		}
		after = state.Last
	}
	c := &signals{lines: make(chan []byte, maxSignals), epochs: map[int]uint64{}, cut: make(chan struct{}), tenant: r.URL.Query().Get("tenant"), session: r.URL.Query().Get("session")}
	reader, err := stream.OpenReader(r.Context(), on.js, topology.OutcomesStream, jetstream.ConsumerConfig{
		FilterSubjects: []string{"out.>"}, HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
	})
	if err != nil {
		return query.ErrBusy
	}
	reader.Handle(c.take)
	reader.Start()
	defer reader.Stop()
	return c.write(r.Context(), w, after)
}

// signals is one connection.
type signals struct {
	tenant, session string // "" is any
	lines           chan []byte
	epochs          map[int]uint64 // by partition, as far as they were read
	cut             chan struct{}  // closed when the reader is too slow
	slow            bool
}

// take queues the signal of a message.
func (c *signals) take(m jetstream.Msg, md *jetstream.MsgMetadata) error {
	if c.slow {
		return nil
	}
	kind, s := c.read(m)
	if kind == "" || c.tenant != "" && s.Tenant != c.tenant || c.session != "" && s.Session != c.session {
		return nil
	}
	s.Time = md.Timestamp.UnixMilli()
	data, err := events.Marshal(&s)
	if err != nil {
		return fmt.Errorf("write signal: %w", err)
	}
	select {
	case c.lines <- fmt.Appendf(nil, "event: %s\nid: %d\ndata: %s\n\n", kind, md.Sequence.Stream, data):
	default:
		c.slow = true
		close(c.cut)
	}
	return nil
}

// read is the kind of a message, "" for none that is shown. The end of a commit shows its owner.
func (c *signals) read(m jetstream.Msg) (kind string, s signal) {
	if !stream.Outcome(m.Subject(), m.Headers()) {
		return "", s
	}
	at, err := events.ParseOutcome(m.Subject())
	if err == nil {
		kind, s = string(at.Kind), signal{Partition: at.Partition, Tenant: at.Address.Tenant, Session: at.Address.Session}
	}
	var marker commit.Marker
	if events.Unmarshal([]byte(m.Headers().Get(commit.HeaderMarker)), &marker) != nil || marker.Epoch == 0 {
		return kind, s
	}
	_, rest, _ := strings.Cut(m.Subject(), ".")
	number, _, _ := strings.Cut(rest, ".")
	id, err := strconv.Atoi(number)
	if err != nil {
		return kind, s
	}
	if was, known := c.epochs[id]; known && was < marker.Epoch && kind == "" {
		kind, s = takeover, signal{Partition: id, Owner: marker.Owner, Epoch: marker.Epoch}
	}
	c.epochs[id] = max(c.epochs[id], marker.Epoch)
	return kind, s
}

// write sends what is queued until the client is gone, or is too slow.
func (c *signals) write(ctx context.Context, w http.ResponseWriter, after uint64) error {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // that of the request has come in; an end of the connection is noticed still
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	line := []byte("retry: 1000\nid: " + strconv.FormatUint(after, 10) + "\n\n")
	for {
		_ = out.SetWriteDeadline(time.Now().Add(signalTime))
		if _, err := w.Write(line); err != nil { // the client is gone
			return nil
		}
		if len(c.lines) == 0 && out.Flush() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.cut:
			return nil
		case line = <-c.lines:
		case <-alive.C:
			line = []byte(": alive\n\n")
		}
	}
}
