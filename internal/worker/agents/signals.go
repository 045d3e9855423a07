package agents

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
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
)

// allOutcomes matches every message of OUTCOMES, including markers.
const allOutcomes = "out.>"

// maxSignals limits the queued signals of an operator. Beyond it the operator is disconnected, and
// resumes.
const maxSignals = 4096

// signal is an event for operators: a message of OUTCOMES without its payload.
type signal struct {
	kind string

	Partition int    `json:"partition"`
	Tenant    string `json:"tenant,omitzero"`
	Session   string `json:"session,omitzero"`
	Time      int64  `json:"time_ms"`
	Owner     string `json:"owner,omitzero"` // of a takeover
	Epoch     uint64 `json:"epoch,omitzero"`
}

// takeover is the kind of the event that a worker took a partition over.
const takeover = "takeover"

// line returns the signal as a server-sent event.
func (s *signal) line(seq uint64) []byte {
	data, _ := codec.Marshal(s) // cannot fail for strings and numbers
	return fmt.Appendf(nil, "event: %s\nid: %d\ndata: %s\n\n", s.kind, seq, data)
}

// signalOf returns the signal of a message, or nil if operators do not receive it.
func signalOf(m jetstream.Msg, stored time.Time) *signal {
	s := &signal{Time: stored.UnixMilli()}
	if at, err := events.ParseOutcome(m.Subject()); err == nil {
		s.kind, s.Partition, s.Tenant, s.Session = string(at.Kind), at.Partition, at.Address.Tenant, at.Address.Session
		return s
	}
	var marker commit.Marker
	if codec.Unmarshal([]byte(m.Headers().Get(commit.HeaderMarker)), &marker) != nil || !marker.Taken {
		return nil
	}
	_, rest, _ := strings.Cut(m.Subject(), ".")
	number, _, _ := strings.Cut(rest, ".")
	var err error
	if s.Partition, err = strconv.Atoi(number); err != nil {
		return nil
	}
	s.kind, s.Owner, s.Epoch = takeover, marker.Owner, marker.Epoch
	return s
}

// wants reports whether an operator's follower receives a signal.
func (f *follower) wants(s *signal) bool {
	return (f.at.Tenant == "" || f.at.Tenant == s.Tenant) && (f.at.Session == "" || f.at.Session == s.Session)
}

// Signals answers an operator with a signal for each new message of OUTCOMES, as server-sent events. Their ids are
// sequences of OUTCOMES, after which a reader resumes.
func (h *Hub) Signals(w http.ResponseWriter, r *http.Request) error {
	after, resumes, err := ResumeAt(r, h.js)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	at := events.Address{Tenant: query.Get("tenant")}
	if name := query.Get("session"); name != "" {
		if at.Session, err = events.SessionOf(name); err != nil {
			return err
		}
	}
	f := &follower{
		hub: h, operator: true, at: at,
		part: int(parts.Add(1) % heartbeatParts), writing: true,
	}
	upTo, err := h.join(r.Context(), f, nil)
	if err != nil {
		return err
	}
	if f.after = upTo; resumes {
		f.after = after
	}
	return f.takeOver(w, upTo)
}

// catchUpSignals sends the signals of stored messages up to a sequence.
func (f *follower) catchUpSignals(upTo uint64) error {
	if f.after >= upTo {
		return nil
	}
	err := f.reading(limit.Large, func(ctx context.Context) error {
		missed := stream.Selection{Stream: topology.OutcomesStream, Filters: []string{allOutcomes}, From: f.after + 1, UpTo: upTo, HeadersOnly: true}
		return stream.Read(ctx, f.hub.js, missed, func(m jetstream.Msg, seq uint64) error {
			md, err := m.Metadata()
			if err != nil {
				return fmt.Errorf("read signal: %w", err)
			}
			f.after = seq
			if s := signalOf(m, md.Timestamp); s != nil && f.wants(s) {
				return f.write(s.line(seq))
			}
			return nil
		})
	})
	f.after = max(f.after, upTo)
	return err
}
