package scenarios_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A gateway that names no session gets of each conversation what fits, with the same bytes of
// its prefix until the next generation: before and after a restart, and from another worker.
// Conversations that begin alike, and those of another tenant, are apart. The original of a
// placeholder is retrieved by its hash, by its tenant alone.
func TestCompressHistories(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	type talk struct {
		workertest.SyncAgent
		e        *workertest.Edge
		token    string
		last     events.CompressResponse
		sessions map[string]bool
	}
	var all []*talk
	for _, token := range []string{workertest.DefaultToken, workertest.DefaultToken, workertest.AcmeToken} {
		a := &talk{SyncAgent: workertest.SyncAgent{T: t}, e: e, token: token, sessions: map[string]bool{}}
		a.History = append(a.History, codec.Raw(`{"role":"system","content":"Be careful."}`))
		a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
		all = append(all, a)
	}
	step := func(a *talk) {
		t.Helper()
		before := a.last
		a.last = a.e.Compress(a.token, a.History)
		if a.last.Code != "" || a.last.TokensAfter > 8192 {
			t.Fatalf("%+v", a.last)
		}
		if a.last.Generation == before.Generation && !workertest.BeginsWith(a.last.Messages, before.Messages) {
			t.Fatalf("generation %d: the prefix has other bytes:\n%s\n%s", before.Generation, before.Messages, a.last.Messages)
		}
		if a.last.Session != "" {
			a.sessions[a.last.Session] = true
		}
	}
	for n := range 24 {
		for i, a := range all {
			step(a)
			if n < 2 { // they begin alike
				a.Call(n, 60)
			} else {
				a.History = append(a.History,
					codec.Raw(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function",`+
						`"function":{"name":"read_file","arguments":"{\"path\":\"f%d.go\"}"}}]}`, n, n)),
					codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, n, strings.Repeat(fmt.Sprintf("talk %d line %d. ", i, n), 90))))
			}
		}
	}
	seen := map[string]int{}
	for i, a := range all {
		step(a)
		if len(a.sessions) != 1 && i != 1 || a.last.Generation == 0 {
			t.Errorf("talk %d: sessions %v, generation %d", i, a.sessions, a.last.Generation)
		}
		seen[a.token+a.last.Session]++
		for j := range all {
			if text := fmt.Sprintf("talk %d ", j); j != i && strings.Contains(fmt.Sprintf("%s", a.last.Messages), text) {
				t.Errorf("talk %d has text of %d", i, j)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("sessions are shared: %v", seen)
	}

	first := all[0]
	if len(first.last.Hashes) == 0 {
		t.Fatalf("no hashes:\n%s", first.last.Messages)
	}
	for _, hash := range first.last.Hashes {
		status, text := e.Do(workertest.DefaultToken, "GET", "/v1/retrieve/"+hash+"?query=line", "")
		var out events.RetrieveResponse
		if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 || out.Hash != hash {
			t.Fatalf("%d %s", status, text)
		}
		quoted, _ := json.Marshal(out.Original)
		if len(out.Original) < 64 || !strings.Contains(fmt.Sprintf("%s", first.History), string(quoted)) {
			t.Errorf("%s is none of the history's: %.80s", hash, out.Original)
		}
		if err := schematest.Validate("retrieve-response", []byte(text)); err != nil {
			t.Error(err)
		}
		if status, text := e.Do(workertest.AcmeToken, "GET", "/v1/retrieve/"+hash, ""); status != 404 || strings.Contains(text, "talk") {
			t.Errorf("another tenant: %d %s", status, text)
		}
	}

	again := func(name string) {
		t.Helper()
		for i, a := range all {
			if got := a.e.Compress(a.token, a.History).Messages; !workertest.BeginsWith(got, a.last.Messages) || len(got) != len(a.last.Messages) {
				t.Errorf("%s: talk %d gets other bytes\n%s\n%s", name, i, a.last.Messages, got)
			}
		}
	}
	again("sent again")
	e.Running.Stop()
	e.Stop()
	second := env.StartReady("b", observe.Listener{})
	e = env.StartEdge(second.Worker, nil)
	for _, a := range all {
		a.e = e
	}
	again("after a restart")
	third := env.StartReady("c", observe.Listener{})
	elsewhere := env.StartEdge(third.Worker, nil)
	for _, a := range all {
		a.e = elsewhere
	}
	again("by way of another worker")
	second.Stop()
	again("after a take-over")
	for n := 24; n < 27; n++ {
		for _, a := range all {
			a.Call(n, 60)
			step(a)
		}
	}
}
