package commit

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// env is a server with the streams, and what the tests of this package do with it.
type env struct{ *brokertest.Env }

func newEnv(t *testing.T) *env { return &env{brokertest.New(t)} }

func openEnv(t *testing.T, dir string, c topology.Config) *env {
	return &env{brokertest.Open(t, dir, c)}
}

// takeOver owns partition 1 on a connection of its own.
func (w *env) takeOver(owner string) *Committer {
	w.T.Helper()
	return w.takeOverOn(w.Connect(connect.Options{}), owner)
}

func (w *env) takeOverOn(nc *nats.Conn, owner string) *Committer {
	w.T.Helper()
	c, _, err := TakeOver(w.T.Context(), nc, Claim{Partition: 1, Owner: owner, Config: "cfg", ReplyTimeout: 150 * time.Millisecond})
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

func (w *env) marker(partition int) Stored {
	w.T.Helper()
	s, err := LastMarker(w.T.Context(), w.NC, partition)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

// stored lists "subject data" of what a filter selects of OUTCOMES.
func (w *env) stored(filter string) (out []string) {
	w.T.Helper()
	err := stream.ReadStream(w.T.Context(), w.JS, topology.OutcomesStream, filter, 0, 0, func(m jetstream.Msg, _ uint64) error {
		out = append(out, m.Subject()+" "+string(m.Data()))
		return nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return out
}

// budgets makes n outcomes of session s in partition 1.
func budgets(n int, text string) []Message {
	out := make([]Message, n)
	for i := range out {
		out[i] = Message{
			Subject: events.Outcome(1, events.KindBudget, events.Address{Tenant: "t", Session: fmt.Sprintf("s%d", i)}),
			Data:    []byte(text),
		}
	}
	return out
}
