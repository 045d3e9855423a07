package audit

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
)

// Span is a part of what was decided.
type Span struct {
	Tenant  string // "" for all
	Session string // of Tenant; "" for all
	// From and To are the first and the last event; the zero Place is no bound.
	From, To Place
	// Most bounds the bytes of the events of a session, for [Recordings]; 0 is no bound.
	Most int
}

// Place is an event of the log, by its sequence or by its time.
type Place struct {
	Seq  compaction.Seq
	Time int64 // of the log, in Unix milliseconds
}

// after reports whether the place comes after an event.
func (p Place) after(e *decide.Event) bool {
	return p.Seq > 0 && e.Seq < p.Seq || p.Time > 0 && e.Time < p.Time
}

// before reports whether the place comes before an event.
func (p Place) before(e *decide.Event) bool {
	return p.Seq > 0 && e.Seq > p.Seq || p.Time > 0 && e.Time > p.Time
}

// partitions lists those that the span touches.
func (s *Span) partitions(t partitions.Table) []int {
	if s.Session != "" {
		return t.Path(events.Address{Tenant: s.Tenant, Session: s.Session})
	}
	out := make([]int, t.Count())
	for p := range out {
		out[p] = p
	}
	return out
}

// read passes on the events of a partition up to a sequence, or to the end of the span if that
// comes first: then it has ended.
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

// logFilters and outcomeFilters select the span's sessions in a partition.
func (s *Span) logFilters(partition int) []string {
	if s.Tenant == "" {
		return []string{events.LogFilter(partition)}
	}
	return []string{fmt.Sprintf("log.%d.*.%s.%s", partition, s.Tenant, s.session())}
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
