package redecide

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
)

// Span selects sessions and a range of decided events.
type Span struct {
	Tenant  string // "" for all
	Session string // of Tenant; "" for all
	// From and To are the first and the last event; the zero Place means no limit.
	From, To Place
	// Most limits the bytes of the events of a session, for [Recordings]; 0 means no limit.
	Most int
}

// Place is an event of the log, by its sequence or by its time.
type Place struct {
	Seq  measure.Seq
	Time int64 // of storage in the log, in Unix milliseconds
}

// after reports whether the place comes after an event.
func (p Place) after(e *decide.Event) bool {
	return p.Seq > 0 && e.Seq < p.Seq || p.Time > 0 && e.Time < p.Time
}

// before reports whether the place comes before an event.
func (p Place) before(e *decide.Event) bool {
	return p.Seq > 0 && e.Seq > p.Seq || p.Time > 0 && e.Time > p.Time
}

// families returns the partitions of the span, in groups that may have shared a session.
func (s *Span) families(t partitions.Table) [][]int {
	if s.Session != "" {
		return [][]int{t.Path(events.Address{Tenant: s.Tenant, Session: s.Session})}
	}
	return t.Families()
}

// read calls fn with the events of a selection of the log. ended reports that it reached the end of the
// span before the end of the selection.
func (s *Span) read(ctx context.Context, js jetstream.JetStream, log stream.Selection, fn func(decide.Event) error) (ended bool, err error) {
	log.Stream = topology.LogStream
	err = stream.Read(ctx, js, log, func(m jetstream.Msg, _ uint64) error {
		e, _, err := decide.ReadEvent(m)
		if err != nil {
			return err
		}
		if s.To.before(&e) {
			ended = true
			return stream.ErrEnd
		}
		return fn(e)
	})
	return ended, err
}

// logFilters and outcomeFilters select the span's sessions in partitions.
func (s *Span) logFilters(ids []int) []string {
	if s.Tenant == "" {
		return events.LogFilters(ids)
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = fmt.Sprintf("log.%d.*.%s.%s", id, s.Tenant, s.session())
	}
	return out
}

func (s *Span) outcomeFilters(partition int) []string {
	if s.Tenant == "" {
		return []string{events.OutcomeFilter(partition)}
	}
	at := events.Address{Tenant: s.Tenant, Session: s.session()}
	return []string{events.Outcome(partition, "*", at), events.JobSubject(partition, "*", at)}
}

func (s *Span) session() string {
	if s.Session == "" {
		return "*"
	}
	return s.Session
}
