package partition

import (
	"testing"
	"time"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
)

// Every worker drops the texts that it holds of an erased session, also one without files.
func TestEraseTexts(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})}
	env.serve("a", 0, "")
	other := env.set("b", "")
	stop, err := other.subscribeErasures()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	erased, kept := events.Address{Tenant: "t", Session: "s"}, events.Address{Tenant: "t", Session: "kept"}
	for i, a := range []events.Address{erased, kept} {
		other.Payloads.Put(decide.Event{Location: events.Location{Kind: events.KindTurn, Address: a}, Seq: measure.Seq(1000 + i), Data: []byte(`{"messages":[]}`)})
	}
	if _, err := erase.Request(brokertest.Within(t, time.Minute), env.JS, erased, "f"); err != nil {
		t.Fatal(err)
	}
	env.eventually("drop the texts", func() (bool, error) {
		_, err := other.Payloads.Turn(t.Context(), erased, 1000)
		return err != nil, nil // the log does not have them
	})
	if _, err := other.Payloads.Turn(t.Context(), kept, 1001); err != nil {
		t.Errorf("the text of another session is dropped: %v", err)
	}
}
