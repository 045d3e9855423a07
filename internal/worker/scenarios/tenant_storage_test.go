package scenarios_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/redecide"
)

// Compactions of a history that is too long to be rendered count for their tenant too: their edits are
// stored.
func TestLongHistoriesAreCharged(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, withoutPrune())
	env.OutcomeBytes = 64 << 10
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 44; n++ {
		env.PublishFor("t", events.KindTurn, "s", workertest.BigTurn(n, 700_000, 110_000))
	}
	for i := range 200 {
		env.PublishFor("t", events.KindRewind, "s", fmt.Appendf(nil, `{"generation":%d}`, i%2))
	}
	env.AwaitDecided()
	stop()
	if got := env.OutcomesOf("t"); got.Whole > 0 || got.Bytes < 64<<10 || got.Noted == 0 {
		t.Errorf("%+v: want outcomes without messages, and then notes of the limit", got)
	}
}

// omissions counts what a listener receives about omitted messages.
type omissions struct {
	mu     sync.Mutex // guards the fields below
	of     map[string]int
	limits map[string]int
}

func (o *omissions) listener() observe.Listener {
	return observe.Listener{
		Compacted: func(e observe.Compacted) {
			if e.Omitted != "" {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.of[e.Address.Tenant+" "+e.Omitted]++
			}
		},
		OutcomesLimited: func(e observe.OutcomesLimited) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.limits[e.Tenant]++
		},
	}
}

// Tiny events may lead to large outcomes, as hundreds of rewinds of a session with a large
// history do. Only outcomes of their own tenant lose messages: OUTCOMES grows by the hourly
// bound of the tenant, also across a restart, and compactions of another tenant are published
// whole. The stored outcomes follow from the log.
func TestAmplification(t *testing.T) {
	t.Parallel()
	const (
		perHour = 4 << 20
		rewinds = 300
		// history is what the hostile session has published, in bytes.
		history = 12 * 40_000
	)
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4})
	env.Config = workertest.NewConfig(t, withoutPrune())
	env.OutcomeBytes = perHour
	seen := omissions{of: map[string]int{}, limits: map[string]int{}}
	stop := env.Run("a", seen.listener())
	for n := 1; n <= 12; n++ {
		env.PublishFor("evil", events.KindTurn, "s", workertest.BigTurn(n, 130_000, 40_000))
	}
	env.PublishFor("evil", events.KindCompact, "s", []byte(`{"policy":{"target":0.5}}`))
	env.AwaitDecided()
	before := env.OutcomesOf("evil")
	tiny := 0
	rewind := func(n int) {
		for i := range n {
			data := fmt.Appendf(nil, `{"generation":%d}`, i%2)
			tiny += len(data)
			env.PublishFor("evil", events.KindRewind, "s", data)
		}
	}
	rewind(rewinds / 2)
	for n := 1; n <= 40; n++ {
		env.PublishFor("good", events.KindTurn, fmt.Sprintf("s%d", n%5), workertest.BigTurn((n-1)/5+1, 10_000, 12_000))
	}
	env.AwaitDecided()
	stop()
	stop = env.Run("b", seen.listener()) // a restart must not begin a new hour
	rewind(rewinds / 2)
	for n := 41; n <= 80; n++ {
		env.PublishFor("good", events.KindTurn, fmt.Sprintf("s%d", n%5), workertest.BigTurn((n-1)/5+1, 10_000, 12_000))
	}
	env.AwaitDecided()
	stop()

	evil, good := env.OutcomesOf("evil"), env.OutcomesOf("good")
	// An outcome without its messages has a few KB of figures.
	over := evil.Bytes - before.Bytes - perHour - int64(evil.Omitted)*4<<10
	figures.Print(t, "P7", "rewinds", rewinds, "bytes_sent", tiny, "outcome_bytes", evil.Bytes-before.Bytes, "per_hour", perHour,
		"over", max(over, 0), "whole", evil.Whole, "omitted", evil.Omitted, "others_whole", good.Whole, "others_omitted", good.Omitted)
	if over > 0 || evil.Omitted < rewinds/2 || evil.Whole < perHour/history/2 {
		t.Errorf("%d bytes of outcomes over the bound; %+v", over, evil)
	}
	if evil.Noted != evil.Omitted {
		t.Errorf("%d of %d outcomes without messages have a note with the reason", evil.Noted, evil.Omitted)
	}
	if good.Omitted != 0 || good.Whole == 0 {
		t.Errorf("the other tenant: %+v", good)
	}
	if n := seen.of["evil tenant_hour"]; n != evil.Omitted {
		t.Errorf("%d omissions are listed, of %d: %v", n, evil.Omitted, seen.of)
	}
	if seen.limits["evil"] == 0 || seen.limits["evil"] > 10 || seen.limits["good"] != 0 {
		t.Errorf("limits are logged %v times", seen.limits)
	}
	wantReplayed(env)
}

// withoutPrune is a policy that does not prune histories.
func withoutPrune() policy.Policy {
	p := workertest.WithoutSummaries()
	p.Prune.Enabled = false
	return p
}

// wantReplayed replays what is stored and wants no difference.
func wantReplayed(env *workertest.Env) {
	env.T.Helper()
	report := env.Replay(redecide.Span{})
	if report.Outcomes == 0 || len(report.Differences) > 0 {
		env.T.Errorf("replay: %d outcomes, %d differences: %+v", report.Outcomes, len(report.Differences), report.Differences)
	}
}

// One tenant cannot fill OUTCOMES: near the limit of the stream, compactions of the tenant that
// has stored most are published without messages. Compactions of another tenant are published
// whole, and no commit is refused.
func TestOutcomesNeverFull(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesOutcomes: 24 << 20})
	env.Config = workertest.NewConfig(t, withoutPrune())
	env.OutcomeBytes = 1 << 40
	seen := omissions{of: map[string]int{}, limits: map[string]int{}}
	l := seen.listener()
	l.Retrying = func(e observe.Retrying) { t.Errorf("%s: %v", e.Step, e.Err) }
	stop := env.Run("a", l)
	for n := 1; n <= 12; n++ {
		env.PublishFor("evil", events.KindTurn, "s", workertest.BigTurn(n, 130_000, 40_000))
	}
	env.PublishFor("evil", events.KindCompact, "s", []byte(`{"policy":{"target":0.5}}`))
	for i := range 300 {
		env.PublishFor("evil", events.KindRewind, "s", fmt.Appendf(nil, `{"generation":%d}`, i%2))
	}
	env.AwaitDecided()
	for n := 1; n <= 40; n++ {
		env.PublishFor("good", events.KindTurn, fmt.Sprintf("s%d", n%5), workertest.BigTurn((n-1)/5+1, 10_000, 12_000))
	}
	env.AwaitDecided()
	stop()
	evil, good := env.OutcomesOf("evil"), env.OutcomesOf("good")
	state, err := topology.State(t.Context(), env.JS, topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	figures.Print(t, "P7", "max_bytes", state.MaxBytes, "held", state.Bytes, "percent", state.Bytes*100/uint64(state.MaxBytes),
		"whole", evil.Whole, "omitted", evil.Omitted, "others_whole", good.Whole, "others_omitted", good.Omitted)
	if seen.of["evil tenant_share"] == 0 || evil.Whole == 0 || seen.limits["evil"] != 1 {
		t.Errorf("%+v; %v; %v", evil, seen.of, seen.limits)
	}
	if good.Omitted != 0 || good.Whole == 0 {
		t.Errorf("the other tenant: %+v", good)
	}
	wantReplayed(env)
}

// Manual compactions and rewinds in turn clear the same results again and again, and each lists
// its edits, which no outcome can omit. A session with many times more edits than messages is
// refused more of them, until its history is sent again.
func TestEditsAreBounded(t *testing.T) {
	t.Parallel()
	const results, cycles = 400, 60
	env := workertest.New(t, t.TempDir())
	stop := env.Run("a", observe.Listener{})
	for _, data := range workertest.ClearedTurns(results) {
		env.PublishFor("evil", events.KindTurn, "s", data)
	}
	for range cycles {
		env.PublishFor("evil", events.KindRewind, "s", []byte(`{"generation":0}`))
		env.PublishFor("evil", events.KindCompact, "s", []byte(`{}`))
	}
	env.AwaitDecided()
	edits, refused := 0, 0
	for p, all := range env.OutcomesBySession() {
		for _, o := range all {
			var b struct {
				Edits []events.Edit `json:"edits"`
				Code  events.Code   `json:"code"`
			}
			if err := codec.Unmarshal([]byte(o.Data), &b); err != nil {
				t.Fatal(p, err)
			}
			edits += len(b.Edits)
			if b.Code == events.CodeTooManyEdits {
				refused++
			}
		}
	}
	figures.Print(t, "P7", "cycles", cycles, "results", results, "edits", edits, "refused", refused)
	if most := 18 * 2 * results; edits > most+1000 || edits < most/4 || refused == 0 {
		t.Errorf("%d edits of %d results in %d cycles, %d requests refused", edits, results, cycles, refused)
	}
	env.PublishFor("evil", events.KindTurn, "s", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"sorry"}]}`))
	env.PublishFor("evil", events.KindCompact, "s", []byte(`{}`))
	env.AwaitDecided()
	stop()
	if all := env.Compactions("s"); all[len(all)-1].Code != events.CodeNotEnoughMessages {
		t.Errorf("a manual compaction of the history that was sent again: %+v", all[len(all)-1])
	}
	wantReplayed(env)
	env.WantRedecided()
}

// The bound is one for all workers of a fleet: a tenant has the bytes of an hour once, while
// partitions are handed over from one worker to another.
func TestRoomOfFleet(t *testing.T) {
	t.Parallel()
	const perHour, sessions = 4 << 20, 4
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.Config = workertest.NewConfig(t, withoutPrune())
	env.OutcomeBytes = perHour
	first := env.StartReady("a", owners.Listener("a"))
	owners.Await(map[string]int{"a": 4})
	for s := range sessions {
		for n := 1; n <= 12; n++ {
			env.PublishFor("evil", events.KindTurn, fmt.Sprintf("s%d", s), workertest.BigTurn(n, 34_000, 10_000))
		}
		env.PublishFor("evil", events.KindCompact, fmt.Sprintf("s%d", s), []byte(`{"policy":{"target":0.5}}`))
	}
	env.AwaitDecided()
	before := env.OutcomesOf("evil")
	rewinds := 0
	rewind := func() {
		for range 40 {
			for s := range sessions {
				env.PublishFor("evil", events.KindRewind, fmt.Sprintf("s%d", s), fmt.Appendf(nil, `{"generation":%d}`, rewinds/sessions%2))
				rewinds++
			}
		}
		env.AwaitDecided()
	}
	rewind()
	second := env.StartReady("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	rewind()
	first.Stop()
	owners.Await(map[string]int{"a": 0, "b": 4})
	rewind()
	second.Stop()
	evil := env.OutcomesOf("evil")
	if over := evil.Bytes - before.Bytes - perHour - int64(evil.Omitted)*4<<10; over > 0 || evil.Omitted < rewinds/2 || evil.Whole == 0 {
		t.Errorf("%d bytes over the bound of all workers after %d rewinds: %+v", over, rewinds, evil)
	}
	wantReplayed(env)
}

// A tenant that stores all it can leaves room for others, and ends and erases its sessions in a log
// that is full of its turns.
func TestStorageOfATenant(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesLog: 8 << 20})
	e := env.RunEdge()
	filled := func(token, tenant string) (bytes int) {
		text := strings.Repeat("x", 256<<10)
		for n := 1; ; n++ {
			body := fmt.Sprintf(`{"turn":%d,"messages":[{"role":"user","content":"%s"}]}`, n, text)
			status, answer := e.Do(token, http.MethodPost, "/v1/sessions/"+tenant+"/s1/turns?wait_ms=0", body)
			switch {
			case status == http.StatusInsufficientStorage && strings.Contains(answer, string(events.CodeStorageLimit)):
				return bytes
			case status >= http.StatusBadRequest:
				t.Fatalf("turn %d of %s: %d %s", n, tenant, status, answer)
			}
			bytes += len(body)
		}
	}
	hostile := filled(workertest.AcmeToken, "acme")
	env.AwaitDecided()
	e.Running.Stop()
	e = env.RunEdge() // it counts what is stored
	for n := 1; ; n++ {
		body := fmt.Sprintf(`{"turn":%d,"messages":[{"role":"user","content":"hi"}]}`, n)
		if status, _ := e.Do(workertest.AcmeToken, http.MethodPost, "/v1/sessions/acme/s2/turns?wait_ms=0", body); status == http.StatusInsufficientStorage {
			break
		}
		if n == 10_000 {
			t.Fatal("after a restart the tenant stores more")
		}
	}
	good := filled(workertest.DefaultToken, "default")
	if t.Logf("%d KiB of one tenant, %d of the next", hostile>>10, good>>10); hostile > 8<<20*4/5 || good < 8<<20/10 {
		t.Errorf("%d and %d bytes of 8 MiB", hostile, good)
	}
	for _, verb := range []string{"rewind", "end"} {
		if status, answer := e.Do(workertest.AcmeToken, http.MethodPost, "/v1/sessions/acme/s1/"+verb, `{"generation":0}`); status >= 500 {
			t.Errorf("%s: %d %s", verb, status, answer)
		}
	}
	if status, answer := e.Do(workertest.OperatorToken, http.MethodPost, "/v1/sessions/acme/s1/forget", "{}"); status >= 400 {
		t.Errorf("erase: %d %s", status, answer)
	}
}

// The bytes that a tenant stored in the last hour are counted from the log: a restart begins no new hour.
func TestHourOutlivesARestart(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	first := env.StartReady("a", observe.Listener{})
	for n := 1; n <= 24; n++ {
		env.PublishFor("acme", events.KindTurn, "s1", workertest.Turn(n))
	}
	env.AwaitDecided()
	stored := env.OutcomesOf("acme").Bytes
	hour := func() int64 {
		t.Helper()
		var out events.TenantsResponse
		if e := env.Request(events.SubjectTenants, `{}`, &out); e != nil || len(out.Tenants) != 1 {
			t.Fatalf("tenants: %+v %+v", e, out)
		}
		return out.Tenants[0].OutcomeBytes
	}
	before := hour()
	if before == 0 || before > stored {
		t.Errorf("%d bytes of the hour, %d are stored", before, stored)
	}
	first.Stop()
	env.Run("b", observe.Listener{})
	if after := hour(); after < before {
		t.Errorf("%d bytes of the hour before a restart, %d behind it", before, after)
	}
}
