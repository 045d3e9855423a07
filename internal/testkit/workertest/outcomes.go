package workertest

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Outcome is one outcome, as it is stored or as it was decided again.
type Outcome struct{ Subject, ID, Data string }

// IsJob reports whether an outcome is a job, which agents do not receive.
func (o Outcome) IsJob() bool {
	_, _, err := events.ParseJob(o.Subject)
	return err == nil
}

// NewOutcome reads the id of an outcome.
func NewOutcome(subject string, data []byte) Outcome {
	var h events.Header
	if err := codec.Unmarshal(data, &h); err != nil {
		h.ID = "unreadable: " + err.Error()
	}
	return Outcome{Subject: subject, ID: h.ID, Data: string(data)}
}

// Place is a session in a partition, within which outcomes have an order. An event without a
// valid address is rejected in the partition of its subject.
type Place struct {
	Partition int
	Address   events.Address
}

func (p Place) String() string { return fmt.Sprintf("%d.%s", p.Partition, p.Address) }

// placeOf returns the place of an outcome or a job, and false for any other subject.
func placeOf(subject string) (Place, bool) {
	at, err := events.ParseOutcome(subject)
	return Place{Partition: at.Partition, Address: at.Address}, err == nil && (at.Kind == events.KindJob || slices.Contains(events.OutcomeKinds, at.Kind))
}

// BySession groups outcomes as OutcomesBySession does.
func BySession(all []Outcome) map[Place][]Outcome {
	out := map[Place][]Outcome{}
	for _, o := range all {
		if p, ok := placeOf(o.Subject); ok {
			out[p] = append(out[p], o)
		}
	}
	return out
}

// OutcomesBySession reads the stored outcomes, in the order of their commits.
func (env *Env) OutcomesBySession() map[Place][]Outcome {
	env.T.Helper()
	out := map[Place][]Outcome{}
	err := stream.ReadStream(env.T.Context(), env.JS, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
		if p, ok := placeOf(m.Subject()); ok {
			out[p] = append(out[p], NewOutcome(m.Subject(), m.Data()))
		}
		return nil
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return out
}

// Stored reads all outcomes by subject.
func (env *Env) Stored() map[string][]string { return bySubject(env.OutcomesBySession()) }

func bySubject(sessions map[Place][]Outcome) map[string][]string {
	out := map[string][]string{}
	for _, all := range sessions {
		for _, o := range all {
			out[o.Subject] = append(out[o.Subject], o.Data)
		}
	}
	return out
}

// Compactions reads the session.compacted of one session.
func (env *Env) Compactions(session string) []events.Compacted {
	env.T.Helper()
	var out []events.Compacted
	for p, all := range env.OutcomesBySession() {
		for _, o := range all {
			at, err := events.ParseOutcome(o.Subject)
			if err != nil {
				env.T.Fatal(err)
			}
			if p.Address.Session != session || at.Kind != events.KindCompacted {
				continue
			}
			var c events.Compacted
			if err := codec.Unmarshal([]byte(o.Data), &c); err != nil {
				env.T.Fatal(err)
			}
			out = append(out, c)
		}
	}
	return out
}

// TenantOutcomes is what OUTCOMES holds of the compactions of a tenant.
type TenantOutcomes struct {
	Whole, Omitted int
	Bytes          int64
	Noted          int // of those omitted, those with a note that gives the reason
}

// OutcomesOf counts the compactions of a tenant.
func (env *Env) OutcomesOf(tenant string) (c TenantOutcomes) {
	env.T.Helper()
	filter := "out.*.compacted." + tenant + ".*"
	err := stream.ReadStream(env.T.Context(), env.JS, topology.OutcomesStream, filter, 1, 0, func(m jetstream.Msg, _ uint64) error {
		var b events.Compacted
		if err := codec.Unmarshal(m.Data(), &b); err != nil {
			return err
		}
		c.Bytes += int64(len(m.Data()))
		switch {
		case b.MessagesOmitted:
			c.Omitted++
			for _, n := range b.Notes {
				if n.Code == events.CodeOutcomesLimit {
					c.Noted++
				}
			}
		case len(b.Messages) > 0:
			c.Whole++
		}
		return nil
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return c
}
