package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/worker/audit"
	"compactd/internal/worker/observe"
)

// publishOf publishes for a tenant.
func (env *testEnv) publishOf(tenant string, kind events.Kind, session string, data []byte) {
	env.t.Helper()
	subject, err := events.Input(kind, events.Address{Tenant: tenant, Session: session})
	if err != nil {
		env.t.Fatal(err)
	}
	if _, err := env.js.Publish(context.Background(), subject, data); err != nil {
		env.t.Fatal(err)
	}
}

// tenantOutcomes is what OUTCOMES holds of the compactions of a tenant.
type tenantOutcomes struct {
	whole, omitted int
	bytes          int64
	noted          int // of those omitted, those with a note that gives the reason
}

func (env *testEnv) outcomesOf(tenant string) (c tenantOutcomes) {
	env.t.Helper()
	filter := "out.*.compacted." + tenant + ".*"
	err := stream.ReadStream(env.t.Context(), env.js, topology.OutcomesStream, filter, 1, 0, func(m jetstream.Msg, _ uint64) error {
		var b events.Compacted
		if err := events.Unmarshal(m.Data(), &b); err != nil {
			return err
		}
		c.bytes += int64(len(m.Data()))
		switch {
		case b.MessagesOmitted:
			c.omitted++
			for _, n := range b.Notes {
				if n.Code == events.CodeOutcomesLimit {
					c.noted++
				}
			}
		case len(b.Messages) > 0:
			c.whole++
		}
		return nil
	})
	if err != nil {
		env.t.Fatal(err)
	}
	return c
}

// Compactions of a history that is too long to be rendered count for their tenant too: their edits are
// stored.
func TestLongHistoriesAreCharged(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutPrune())
	env.outcomeBytes = 64 << 10
	stop := env.run("a", observe.Listener{})
	for n := 1; n <= 44; n++ {
		env.publishOf("t", events.KindTurn, "s", bigTurn(n, 700_000, 110_000))
	}
	for i := range 200 {
		env.publishOf("t", events.KindRewind, "s", fmt.Appendf(nil, `{"generation":%d}`, i%2))
	}
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := env.outcomesOf("t"); got.whole > 0 || got.bytes < 64<<10 || got.noted == 0 {
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
// quota of the tenant, also across a restart, and compactions of another tenant are published
// whole. The stored outcomes follow from the log.
func TestAmplification(t *testing.T) {
	t.Parallel()
	const (
		perHour = 4 << 20
		rewinds = 300
		// history is what the hostile session has published, in bytes.
		history = 12 * 40_000
	)
	env := openEnv(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4})
	env.config = newConfig(t, withoutPrune())
	env.outcomeBytes = perHour
	seen := omissions{of: map[string]int{}, limits: map[string]int{}}
	stop := env.run("a", seen.listener())
	for n := 1; n <= 12; n++ {
		env.publishOf("evil", events.KindTurn, "s", bigTurn(n, 130_000, 40_000))
	}
	env.publishOf("evil", events.KindCompact, "s", []byte(`{"policy":{"target":0.5}}`))
	env.awaitDecided()
	before := env.outcomesOf("evil")
	tiny := 0
	rewind := func(n int) {
		for i := range n {
			data := fmt.Appendf(nil, `{"generation":%d}`, i%2)
			tiny += len(data)
			env.publishOf("evil", events.KindRewind, "s", data)
		}
	}
	rewind(rewinds / 2)
	for n := 1; n <= 40; n++ {
		env.publishOf("good", events.KindTurn, fmt.Sprintf("s%d", n%5), bigTurn((n-1)/5+1, 10_000, 12_000))
	}
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	stop = env.run("b", seen.listener()) // a restart must not begin a new hour
	rewind(rewinds / 2)
	for n := 41; n <= 80; n++ {
		env.publishOf("good", events.KindTurn, fmt.Sprintf("s%d", n%5), bigTurn((n-1)/5+1, 10_000, 12_000))
	}
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	evil, good := env.outcomesOf("evil"), env.outcomesOf("good")
	// An outcome without its messages has a few KB of figures.
	over := evil.bytes - before.bytes - perHour - int64(evil.omitted)*4<<10
	figures.Print(t, "P7", "rewinds", rewinds, "bytes_sent", tiny, "outcome_bytes", evil.bytes-before.bytes, "per_hour", perHour,
		"over", max(over, 0), "whole", evil.whole, "omitted", evil.omitted, "others_whole", good.whole, "others_omitted", good.omitted)
	if over > 0 || evil.omitted < rewinds/2 || evil.whole < perHour/history/2 {
		t.Errorf("%d bytes of outcomes over the bound; %+v", over, evil)
	}
	if evil.noted != evil.omitted {
		t.Errorf("%d of %d outcomes without messages have a note with the reason", evil.noted, evil.omitted)
	}
	if good.omitted != 0 || good.whole == 0 {
		t.Errorf("the other tenant: %+v", good)
	}
	if n := seen.of["evil tenant_hour"]; n != evil.omitted {
		t.Errorf("%d omissions are listed, of %d: %v", n, evil.omitted, seen.of)
	}
	if seen.limits["evil"] == 0 || seen.limits["evil"] > 10 || seen.limits["good"] != 0 {
		t.Errorf("limits are logged %v times", seen.limits)
	}
	env.wantReplayed()
}

// withoutPrune is a policy that does not prune histories.
func withoutPrune() compaction.Policy {
	p := withoutSummaries()
	p.Prune.Enabled = false
	return p
}

// wantReplayed replays what is stored and wants no difference.
func (env *testEnv) wantReplayed() {
	env.t.Helper()
	report, err := audit.Replay(env.t.Context(), env.conn, audit.Span{})
	if err != nil {
		env.t.Fatal(err)
	}
	if report.Outcomes == 0 || len(report.Differences) > 0 {
		env.t.Errorf("replay: %d outcomes, %d differences: %+v", report.Outcomes, len(report.Differences), report.Differences)
	}
}

// One tenant cannot fill OUTCOMES: near the limit of the stream, compactions of the tenant that
// has stored most are published without messages. Compactions of another tenant are published
// whole, and no commit is refused.
func TestOutcomesNeverFull(t *testing.T) {
	t.Parallel()
	env := openEnv(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesOutcomes: 24 << 20})
	env.config = newConfig(t, withoutPrune())
	env.outcomeBytes = 1 << 40
	seen := omissions{of: map[string]int{}, limits: map[string]int{}}
	l := seen.listener()
	l.Retrying = func(e observe.Retrying) { t.Errorf("%s: %v", e.Step, e.Err) }
	stop := env.run("a", l)
	for n := 1; n <= 12; n++ {
		env.publishOf("evil", events.KindTurn, "s", bigTurn(n, 130_000, 40_000))
	}
	env.publishOf("evil", events.KindCompact, "s", []byte(`{"policy":{"target":0.5}}`))
	for i := range 300 {
		env.publishOf("evil", events.KindRewind, "s", fmt.Appendf(nil, `{"generation":%d}`, i%2))
	}
	env.awaitDecided()
	for n := 1; n <= 40; n++ {
		env.publishOf("good", events.KindTurn, fmt.Sprintf("s%d", n%5), bigTurn((n-1)/5+1, 10_000, 12_000))
	}
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	evil, good := env.outcomesOf("evil"), env.outcomesOf("good")
	state, err := topology.State(t.Context(), env.js, topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	figures.Print(t, "P7", "max_bytes", state.MaxBytes, "held", state.Bytes, "percent", state.Bytes*100/uint64(state.MaxBytes),
		"whole", evil.whole, "omitted", evil.omitted, "others_whole", good.whole, "others_omitted", good.omitted)
	if seen.of["evil tenant_share"] == 0 || evil.whole == 0 || seen.limits["evil"] != 1 {
		t.Errorf("%+v; %v; %v", evil, seen.of, seen.limits)
	}
	if good.omitted != 0 || good.whole == 0 {
		t.Errorf("the other tenant: %+v", good)
	}
	env.wantReplayed()
}

// Manual compactions and rewinds in turn clear the same results again and again, and each lists
// its edits, which no outcome can omit. A session with many times more edits than messages is
// refused more of them, until its history is sent again.
func TestEditsAreBounded(t *testing.T) {
	t.Parallel()
	const results, cycles = 400, 60
	env := newEnv(t, t.TempDir())
	stop := env.run("a", observe.Listener{})
	for _, data := range clearedTurns(results) {
		env.publishOf("evil", events.KindTurn, "s", data)
	}
	for range cycles {
		env.publishOf("evil", events.KindRewind, "s", []byte(`{"generation":0}`))
		env.publishOf("evil", events.KindCompact, "s", []byte(`{}`))
	}
	env.awaitDecided()
	edits, refused := 0, 0
	for p, all := range env.outcomesBySession() {
		for _, o := range all {
			var b struct {
				Edits []events.Edit `json:"edits"`
				Code  events.Code   `json:"code"`
			}
			if err := events.Unmarshal([]byte(o.data), &b); err != nil {
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
	env.publishOf("evil", events.KindTurn, "s", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"sorry"}]}`))
	env.publishOf("evil", events.KindCompact, "s", []byte(`{}`))
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if all := env.compactions("s"); all[len(all)-1].Code != events.CodeNotEnoughMessages {
		t.Errorf("a manual compaction of the history that was sent again: %+v", all[len(all)-1])
	}
	env.wantReplayed()
	env.wantRedecided()
}

// The quota is one for all workers of a fleet: a tenant has the bytes of an hour once, while
// partitions are handed over from one worker to another.
func TestQuotaOfFleet(t *testing.T) {
	t.Parallel()
	const perHour, sessions = 4 << 20, 4
	env, owners := newEnv(t, t.TempDir()), newOwnership(t)
	env.config = newConfig(t, withoutPrune())
	env.outcomeBytes = perHour
	first := env.start("a", owners.listener("a"))
	<-first.worker.Ready()
	owners.await(map[string]int{"a": 4})
	for s := range sessions {
		for n := 1; n <= 12; n++ {
			env.publishOf("evil", events.KindTurn, fmt.Sprintf("s%d", s), bigTurn(n, 34_000, 10_000))
		}
		env.publishOf("evil", events.KindCompact, fmt.Sprintf("s%d", s), []byte(`{"policy":{"target":0.5}}`))
	}
	env.awaitDecided()
	before := env.outcomesOf("evil")
	rewinds := 0
	rewind := func() {
		for range 40 {
			for s := range sessions {
				env.publishOf("evil", events.KindRewind, fmt.Sprintf("s%d", s), fmt.Appendf(nil, `{"generation":%d}`, rewinds/sessions%2))
				rewinds++
			}
		}
		env.awaitDecided()
	}
	rewind()
	second := env.start("b", owners.listener("b"))
	<-second.worker.Ready()
	owners.await(map[string]int{"a": 2, "b": 2})
	rewind()
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	owners.await(map[string]int{"a": 0, "b": 4})
	rewind()
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	evil := env.outcomesOf("evil")
	if over := evil.bytes - before.bytes - perHour - int64(evil.omitted)*4<<10; over > 0 || evil.omitted < rewinds/2 || evil.whole == 0 {
		t.Errorf("%d bytes over the quota of all workers after %d rewinds: %+v", over, rewinds, evil)
	}
	env.wantReplayed()
}
