package agents_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
)

// A body that is larger than a message of the server reaches the worker that serves the
// session: by way of any worker, with the same answer, and the log has each message once.
func TestAgentsLargeBodiesInFleet(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 1 << 20}, topology.Config{Partitions: 4})
	owners := workertest.NewOwnership(t)
	first := env.Start("a", owners.Listener("a"))
	<-first.Worker.Ready()
	second := env.Start("b", owners.Listener("b"))
	<-second.Worker.Ready()
	owners.Await(map[string]int{"a": 2, "b": 2})
	edges := []*workertest.Edge{env.StartEdge(first.Worker, nil), env.StartEdge(second.Worker, nil)}
	var history []codec.Raw
	for n := range 60 {
		text := strings.Repeat(fmt.Sprintf("word %d ", n), 5000)
		history = append(history, codec.Raw(fmt.Sprintf(`{"role":"user","content":%q}`, text)), codec.Raw(fmt.Sprintf(`{"role":"assistant","content":"Step %d."}`, n)))
	}
	body, err := json.Marshal(map[string]any{"model": map[string]any{"provider": "openai", "name": "gpt-4o", "context_window": 4_000_000}, "wait_ms": 8000, "messages": history})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 2<<20 {
		t.Fatalf("%d bytes are no large body", len(body))
	}
	for i := range 6 { // sessions of both workers, by way of both
		session := fmt.Sprintf("s%d", i)
		for call, e := range edges {
			status, text := e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/"+session+"/sync", string(body))
			var out events.SyncResponse
			if err := codec.Unmarshal([]byte(text), &out); err != nil || status != 200 || out.Count != int64(len(history)) || out.Changed || out.Known != int64(call*len(history)) {
				t.Fatalf("%s by way of %d: %d %.400s", session, call, status, text)
			}
		}
		if got := env.Lineage(session); len(got) != len(history) {
			t.Errorf("%s: the log has %d messages of %d", session, len(got), len(history))
		}
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
}
