package scenarios_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A history of more than 1 MiB is published without its messages, and the session continues.
// A smaller one is published whole, however large the texts are that it has placeholders of.
func TestMessagesOmitted(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 44; n++ {
		env.Publish(events.KindTurn, "large", workertest.BigTurn(n, 700_000, 110_000))
		env.Publish(events.KindTurn, "small", workertest.BigTurn(n, 10_000, 4_700))
		env.Publish(events.KindTurn, "cleared", fmt.Appendf(nil, `{"v":1,"turn":%d,"model":{"context_window":100000},"messages":[{"role":"user","content":"go on"},`+
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c%[1]d","content":%[2]q}]}`,
			n, strings.Repeat("result ", 12_000)))
	}
	env.AwaitDecided()
	stop()
	wantOmitted(env, "large", true)
	wantOmitted(env, "small", false)
	wantOmitted(env, "cleared", false)
	env.WantRedecided()
}

// A history that is larger than the server accepts is published without its messages too. Its
// edits count in its size.
func TestMaxPayload(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 256 << 10}, topology.Config{Partitions: 4})
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 16; n++ {
		env.Publish(events.KindTurn, "large", workertest.BigTurn(n, 200_000, 100_000))
		env.Publish(events.KindTurn, "small", workertest.BigTurn(n, 10_000, 6_000))
	}
	for n := 850; n <= 1350; n += 50 { // from 225 KiB to 335 KiB, a sixth of it edits
		for _, data := range workertest.ClearedTurns(n) {
			env.Publish(events.KindTurn, fmt.Sprintf("cleared%d", n), data)
		}
	}
	env.AwaitDecided()
	stop()
	wantOmitted(env, "large", true)
	wantOmitted(env, "small", false)
	whole := 0
	for n := 850; n <= 1350; n += 50 {
		all := env.Compactions(fmt.Sprintf("cleared%d", n))
		if len(all) != 1 || len(all[0].Edits) != n {
			t.Errorf("%d results: %d compactions", n, len(all))
			continue
		}
		if !all[0].MessagesOmitted {
			whole++
		}
	}
	if whole == 0 || whole == 11 {
		t.Errorf("%d of 11 histories around the limit were published whole: the limit was not reached", whole)
	}
	env.WantRedecided()
}

func wantOmitted(env *workertest.Env, session string, omitted bool) {
	env.T.Helper()
	all := env.Compactions(session)
	if len(all) < 2 {
		env.T.Errorf("%s: %d compactions, want more", session, len(all))
	}
	for _, c := range all {
		if c.MessagesOmitted != omitted || (len(c.Messages) == 0) != omitted {
			env.T.Errorf("%s: generation %d has %d messages, omitted %v; want omitted %v", session, c.Generation, len(c.Messages), c.MessagesOmitted, omitted)
		}
	}
}

// unwieldy is how many turns it takes until their edits need more bytes than the server of the test
// accepts. No compaction and no fold comes before.
const (
	unwieldy       = 8
	collecting     = `{"enabled":false,"max_entries":50000}`
	clearsUnwieldy = `{"max_entries":50000,"prune":{"protect_tokens":0,"minimum_tokens":0},"truncate":{"enabled":false}}`
)

// unwieldyTurn is a turn with thousands of messages, each of which needs an edit when the
// session is compacted.
func unwieldyTurn(n int, policy string) []byte {
	orphans := strings.Repeat(`{"role":"tool","tool_call_id":"a","content":"x"},`, 4_000)
	clearable := `{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"b","content":"` + strings.Repeat("result ", 100) + `"},`
	return fmt.Appendf(nil, `{"turn":%d,"policy":%s,"model":{"context_window":100000},"messages":[%s%s{"role":"assistant","content":"done"}]}`, n, policy, clearable, orphans)
}

// A compaction whose edits alone exceed what the server accepts resets its own session and
// stops no other. Without that bound the worker would end, at every start again.
func TestTooManyEdits(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 1 << 20}, topology.Config{Partitions: 1})
	r := env.Start("a", observe.Listener{})
	for n := 1; n < unwieldy; n++ {
		env.Publish(events.KindTurn, "hostile", unwieldyTurn(n, collecting))
	}
	env.Publish(events.KindTurn, "good", workertest.BigTurn(1, 10_000, 12_000))
	env.Publish(events.KindTurn, "hostile", unwieldyTurn(unwieldy, clearsUnwieldy))
	env.Publish(events.KindTurn, "good", workertest.BigTurn(2, 10_000, 12_000))
	env.Publish(events.KindTurn, "hostile", fmt.Appendf(nil, `{"turn":%d,"messages":[]}`, unwieldy+1))
	env.Publish(events.KindTurn, "hostile", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"sorry"}]}`))
	for n := 3; n <= 8; n++ {
		env.Publish(events.KindTurn, "good", workertest.BigTurn(n, 10_000, 12_000))
	}
	decided := make(chan error, 1)
	go func() { decided <- env.UntilDecided(t.Context()) }()
	select {
	case err := <-r.Done:
		t.Fatalf("the worker ended: %v", err)
	case err := <-decided:
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Stop()
	wantOmitted(env, "good", false)
	var rejections []string
	for _, o := range env.OutcomesBySession()[workertest.Place{Partition: 0, Address: events.Address{Tenant: events.DefaultTenant, Session: "hostile"}}] {
		var body events.Rejected
		if err := codec.Unmarshal([]byte(o.Data), &body); err != nil {
			t.Fatal(err)
		}
		if body.Code == "" {
			continue // a change of level
		}
		rejections = append(rejections, fmt.Sprintf("%s %d", body.Code, body.Expected))
	}
	if want := []string{"session_reset 0", "turn_gap 1"}; !slices.Equal(rejections, want) {
		t.Errorf("rejections of the hostile session are %q, not %q", rejections, want)
	}
	env.WantRedecided()
}

// A body that is larger than a message of the server reaches the worker that serves the
// session: by way of any worker, with the same answer, and the log has each message once.
func TestAgentsLargeBodiesInFleet(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 1 << 20}, topology.Config{Partitions: 4})
	owners := workertest.NewOwnership(t)
	first := env.StartReady("a", owners.Listener("a"))
	second := env.StartReady("b", owners.Listener("b"))
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
}
