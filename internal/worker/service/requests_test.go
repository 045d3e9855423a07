package service_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/service"
)

// wantContext compares a session's context with the agent's rule: the messages
// of its last compaction, and the turns after it as they were sent.
func wantContext(env *workertest.Env, session string, turns [][]byte) events.ContextResponse {
	env.T.Helper()
	all := env.Compactions(session)
	if len(all) == 0 {
		env.T.Fatal("no compaction: the test shows nothing")
	}
	last := all[len(all)-1]
	want := last.Messages
	for _, data := range turns[last.Through.Turn:] {
		turn, err := events.DecodeTurn(data)
		if err != nil {
			env.T.Fatal(err)
		}
		want = append(want, turn.Messages...)
	}
	got := env.Context(session, 1)
	if diff := cmp.Diff(want, got.Messages, cmp.Transformer("string", func(r codec.Raw) string { return string(r) })); diff != "" {
		env.T.Errorf("messages of %s (-rule +context):\n%s", session, diff)
	}
	if !got.Known || got.V != events.Version || got.Generation != last.Generation || got.Through.Turn != int64(len(turns)) || got.Format != last.Format {
		env.T.Errorf("%s: got known %v, generation %d, through %+v, %s", session, got.Known, got.Generation, got.Through, got.Format)
	}
	if v := validate.Messages(got.Format, got.Messages); len(v) > 0 {
		env.T.Errorf("%s: %v", session, v)
	}
	return got
}

// The context is the history of an agent that follows the rule, with system prompt and tools. It
// is the same after a restart.
func TestContext(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	stop := env.Run("a", observe.Listener{})
	const system, tools = `"be\u0020brief"`, `[{"name":"f","n":1.0}]`
	turns := [][]byte{[]byte(strings.Replace(string(workertest.Turn(1)), `"messages"`, `"system":`+system+`,"messages"`, 1))}
	for n := 2; n <= 22; n++ {
		turns = append(turns, workertest.Turn(n))
	}
	turns[2] = []byte(strings.Replace(string(turns[2]), `"messages"`, `"tools":`+tools+`,"messages"`, 1))
	for _, data := range turns {
		env.Publish(events.KindTurn, "s1", data)
	}
	env.Publish(events.KindTurn, "s2", workertest.Turn(1))
	env.AwaitDecided()
	before := wantContext(env, "s1", turns)
	if string(before.System) != system || string(before.Tools) != tools || before.Page != 1 || before.Pages != 1 {
		t.Errorf("system %s, tools %s, page %d of %d", before.System, before.Tools, before.Page, before.Pages)
	}
	if small := env.Context("s2", 1); len(small.Messages) != 2 || small.Generation != 0 || small.System != nil || small.Tools != nil {
		t.Errorf("the other session is %+v", small)
	}
	stop()
	if _, err := env.Conn.Request(events.SubjectContext, []byte(`{"session":"s1"}`), time.Second); err == nil {
		t.Error("a request is answered without a worker")
	}
	env.Run("b", observe.Listener{})
	if diff := cmp.Diff(before, wantContext(env, "s1", turns)); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
}

// A history larger than an answer is returned in pages, which together are the whole history.
// No page is empty, and one beyond the last is refused.
func TestContextPages(t *testing.T) {
	t.Parallel()
	const maxPayload = 256 << 10
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: maxPayload}, topology.Config{Partitions: 2})
	env.Run("a", observe.Listener{})
	large := fmt.Sprintf(`"system":%q,"tools":[%q],"messages"`, strings.Repeat("s", 100_000), strings.Repeat("t", 50_000))
	first := strings.Replace(string(workertest.BigTurn(1, 3_400_000, 60_000)), `"messages"`, large, 1)
	turns := [][]byte{[]byte(first)}
	for n := 2; n <= 12; n++ {
		turns = append(turns, workertest.BigTurn(n, 3_400_000, 60_000))
	}
	var want []codec.Raw
	for _, data := range turns {
		env.Publish(events.KindTurn, "s", data)
		turn, err := events.DecodeTurn(data)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, turn.Messages...)
	}
	env.AwaitDecided()
	var got []codec.Raw
	system, tools, pages := 0, 0, env.Context("s", 1).Pages
	for page := 1; page <= int(pages); page++ {
		m, err := env.Conn.Request(events.SubjectContext, fmt.Appendf(nil, `{"session":"s","page":%d}`, page), workertest.WaitLimit)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Data) > maxPayload-64<<10 {
			t.Errorf("page %d has %d bytes", page, len(m.Data))
		}
		c := env.Context("s", page)
		if c.Pages != pages || c.Page != int64(page) || c.Through.Turn != 12 {
			t.Errorf("page %d: %d of %d, through %+v", page, c.Page, c.Pages, c.Through)
		}
		if c.System == nil && c.Tools == nil && len(c.Messages) == 0 {
			t.Errorf("page %d is empty", page)
		}
		got = append(got, c.Messages...)
		system, tools = system+len(c.System), tools+len(c.Tools)
	}
	if pages < 4 || system != 100_002 || tools != 50_004 {
		t.Errorf("%d pages, system of %d bytes, tools of %d", pages, system, tools)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages together: %s", diff)
	}
	e := env.Request(events.SubjectContext, fmt.Sprintf(`{"session":"s","page":%d}`, pages+1), nil)
	if e == nil || e.Code != events.CodeOutOfRange {
		t.Errorf("the page after the last is %+v", e)
	}
}

// A request about an unknown session is answered. One that cannot be read is refused with a code
// of the contract.
func TestRequests(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	for _, in := range []string{`{"session":"unknown"}`, `{"v":1,"tenant":"default","session":"unknown","page":7,"later":true}`} {
		var c events.ContextResponse
		if e := env.Request(events.SubjectContext, in, &c); e != nil || c.Known || len(c.Messages) != 0 || c.V != events.Version {
			t.Errorf("context %s: %+v, %+v", in, c, e)
		}
		var s events.StatsResponse
		if e := env.Request(events.SubjectStats, in, &s); e != nil {
			t.Errorf("stats %s: %+v", in, e)
		}
		if diff := cmp.Diff(events.StatsResponse{V: events.Version}, s); diff != "" {
			t.Errorf("stats %s: %s", in, diff)
		}
	}
	for in, want := range map[string]events.Code{
		``:                                      events.CodeBadJSON,
		`[]`:                                    events.CodeBadJSON,
		`{"session":"s"`:                        events.CodeBadJSON,
		`{"session":"s"}{}`:                     events.CodeTrailingData,
		`{"session":"s","session":"s"}`:         events.CodeDuplicateKey,
		`{}`:                                    events.CodeMissingField,
		`{"session":null}`:                      events.CodeMissingField,
		`{"session":7}`:                         events.CodeBadType,
		`{"session":""}`:                        events.CodeBadID,
		`{"session":"a.b"}`:                     events.CodeBadID,
		`{"session":"s","tenant":"*"}`:          events.CodeBadID,
		`{"session":"s","tenant":""}`:           events.CodeBadID,
		`{"v":2,"session":"s"}`:                 events.CodeBadVersion,
		`"` + strings.Repeat("x", 70_000) + `"`: events.CodeTooLarge,
	} {
		for _, subject := range []string{events.SubjectCheck, events.SubjectContext, events.SubjectStats} {
			if subject == events.SubjectCheck && want == events.CodeTooLarge {
				continue // a check may be as large as a turn
			}
			if e := env.Request(subject, in, nil); e == nil || e.Code != want || e.Hint == "" {
				t.Errorf("%s %.40s: got %+v, want %s", subject, in, e, want)
			}
		}
	}
	for in, want := range map[string]events.Code{
		`{"session":"s","page":0}`:   events.CodeOutOfRange,
		`{"session":"s","page":-1}`:  events.CodeOutOfRange,
		`{"session":"s","page":"1"}`: events.CodeBadType,
	} {
		if e := env.Request(events.SubjectContext, in, nil); e == nil || e.Code != want {
			t.Errorf("context %s: got %+v, want %s", in, e, want)
		}
	}
	for in, want := range map[string]events.Code{
		`{"session":"s","provider":7}`:               events.CodeBadType,
		`{"session":"s","model":["gpt-4"]}`:          events.CodeBadType,
		`{"session":"s","max_output_tokens":0}`:      events.CodeOutOfRange,
		`{"session":"s","max_output_tokens":"many"}`: events.CodeBadType,
	} {
		if e := env.Request(events.SubjectStats, in, nil); e == nil || e.Code != want {
			t.Errorf("stats %s: got %+v, want %s", in, e, want)
		}
	}
}

// Stats are those of the last outcome, with the number of parked turns.
func TestStats(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	for n := 1; n <= 20; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	env.Publish(events.KindTurn, "s1", workertest.Turn(22))
	parked := env.Publish(events.KindTurn, "gap", workertest.Turn(5))
	env.AwaitDecided()
	all := env.Compactions("s1")
	if len(all) == 0 {
		t.Fatal("no compaction: the test shows nothing")
	}
	var s events.StatsResponse
	if e := env.Request(events.SubjectStats, `{"session":"s1"}`, &s); e != nil {
		t.Fatal(e)
	}
	history := env.Context("s1", 1)
	want := events.StatsResponse{
		V: events.Version, Known: true, Turns: 20, Messages: int64(len(history.Messages)), Generation: all[len(all)-1].Generation,
		Through: history.Through, Parked: 1, Cost: events.Cost{Input: max(s.Cost.Input, 1)},
	}
	for _, c := range all {
		want.Cost.Lost += c.Cache.Lost
		want.Cost.Saved += c.Cache.Saved
	}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreFields(events.StatsResponse{}, "Budget")); diff != "" {
		t.Error(diff)
	}
	if b := s.Budget; b.ContextWindow != 16000 || b.EstimatedInput < 1000 || b.Generation != s.Generation || b.Level == "" || s.NeedsCompaction != b.ShouldCompact {
		t.Errorf("budget is %+v, needs compaction %v", b, s.NeedsCompaction)
	}
	var other events.StatsResponse // A14: with another model
	if e := env.Request(events.SubjectStats, `{"session":"s1","provider":"openai","model":"gpt-4"}`, &other); e != nil ||
		other.Budget.ContextWindow != 8192 || !other.NeedsCompaction || other.Messages != s.Messages {
		t.Errorf("with gpt-4: %+v, %+v", other, e)
	}
	if e := env.Request(events.SubjectStats, `{"session":"s1","provider":"openai","model":"gpt-4","max_output_tokens":8192}`, nil); e == nil || e.Code != events.CodeOutOfRange {
		t.Errorf("with an answer as large as the window: %+v", e)
	}
	var gap events.StatsResponse
	if e := env.Request(events.SubjectStats, `{"session":"gap"}`, &gap); e != nil || !gap.Known || gap.Turns != 0 || gap.Parked != 1 {
		t.Errorf("with a turn parked at %d: %+v, %+v", parked, gap, e)
	}
	if c := env.Context("gap", 1); !c.Known || len(c.Messages) != 0 || c.Pages != 1 {
		t.Errorf("with a turn parked: %+v", c)
	}
}

// A client without knowledge of compactd finds the endpoints, and the health of
// the worker.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	var info micro.Info
	if e := env.Request("$SRV.INFO."+events.ServiceName, "", &info); e != nil {
		t.Fatal(e)
	}
	found := map[string]string{}
	for _, e := range info.Endpoints {
		found[e.Name] = e.Subject
		for _, key := range []string{"request", "response", "error"} {
			for id := range strings.FieldsSeq(e.Metadata[key]) {
				name, ours := strings.CutPrefix(id, "urn:compactd:v1:")
				if data, err := schema.Payload(name); !ours || err != nil || !strings.Contains(string(data), `"$id": "`+id+`"`) {
					t.Errorf("%s: %s is %s: %v", e.Name, key, id, err)
				}
			}
		}
		if e.Metadata["response"] == "" || !strings.Contains(e.Metadata["http"], " /v1/") {
			t.Errorf("%s: %v", e.Name, e.Metadata)
		}
	}
	check(env, "s1", "")
	var counted struct {
		Endpoints []struct {
			Name     string `json:"name"`
			Requests int    `json:"num_requests"`
		} `json:"endpoints"`
	}
	workertest.Until(t, "check has one request, and others none", func() bool { // one counts once its answer is sent
		if e := env.Request("$SRV.STATS."+events.ServiceName, "", &counted); e != nil {
			t.Fatal(e)
		}
		for _, e := range counted.Endpoints {
			if (e.Name == "check") != (e.Requests == 1) {
				return false
			}
		}
		return true
	})
	want := map[string]string{"health": "compactd.health", "fleet": "compactd.fleet", "tenants": "compactd.tenants", "policies": "compactd.policies", "policy": "compactd.policy"}
	for _, verb := range []string{"attach", "check", "context", "files", "history", "outcome", "recall", "sessions", "stats", "sync"} {
		want[verb], want[verb+"-of-tenant"] = "compactd."+verb, "compactd."+verb+".*"
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	var h events.HealthResponse
	if e := env.Request(events.SubjectHealth, "", &h); e != nil {
		t.Fatal(e)
	}
	healthy := events.HealthResponse{
		V: events.Version, Status: events.HealthOK, Partitions: 4, Served: 4, Version: "dev", Owner: "a", Config: env.Config.Hash(),
	}
	if diff := cmp.Diff(healthy, h); diff != "" {
		t.Error(diff)
	}
}

// A sync of this process is refused for the same reasons as its payload.
func TestSyncOfProcessIsChecked(t *testing.T) {
	t.Parallel()
	in := &events.SyncRequest{About: events.Address{Tenant: "default", Session: "s"}.About(), Frozen: -1}
	if _, err := relay(workertest.New(t, t.TempDir())).Sync(t.Context(), in); err == nil || service.Refusal(err).Code != events.CodeOutOfRange {
		t.Errorf("%v, want %s", err, events.CodeOutOfRange)
	}
}
