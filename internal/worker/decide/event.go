package decide

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Event is one message of the log.
type Event struct {
	events.Location
	Seq measure.Seq
	// Pending is the number of later events of the partition when the event was delivered.
	Pending uint64
	ID      string // Nats-Msg-Id, or ""
	Trace   events.Trace
	Time    int64 // of storage in the log, in Unix milliseconds
	Data    []byte
}

// ReadEvent reads an event from a message, without decoding its payload.
func ReadEvent(m jetstream.Msg) (Event, time.Time, error) {
	md, err := m.Metadata()
	if err != nil {
		return Event{}, time.Time{}, fmt.Errorf("read event: %w", err)
	}
	at, err := events.ParseLog(m.Subject())
	if err != nil {
		return Event{}, time.Time{}, fmt.Errorf("read event: %w", err)
	}
	e := Event{
		Location: at, Seq: measure.Seq(md.Sequence.Stream), Pending: md.NumPending,
		Trace: events.ReadTrace(m.Headers()[events.HeaderTrace]), Time: md.Timestamp.UnixMilli(), Data: m.Data(),
	}
	if id := m.Headers().Get(nats.MsgIdHdr); events.ValidEventID(id) {
		e.ID = id
	}
	return e, md.Timestamp, nil
}

// OutcomeAddress returns the address for outcomes of the event: _._ if its ids are invalid.
func (e *Event) OutcomeAddress() events.Address {
	if e.Address.Validate() != nil {
		return events.Address{Tenant: events.Unknown, Session: events.Unknown}
	}
	return e.Address
}

// SubjectOf returns the subject of an outcome or a job in OUTCOMES.
func SubjectOf(partition int, a events.Address, o compaction.Outcome) string {
	if job, ok := o.Body.(*events.Job); ok {
		return events.JobSubject(partition, job.Lane, a)
	}
	return events.Outcome(partition, o.Kind, a)
}
