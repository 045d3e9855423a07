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
	"compactd/internal/worker"
	"compactd/internal/worker/audit"
)

// publishOf publishes for a tenant.
func (w *world) publishOf(tenant string, kind events.Kind, session string, data []byte) {
	w.t.Helper()
	subject, err := events.Input(kind, events.Address{Tenant: tenant, Session: session})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.js.Publish(context.Background(), subject, data); err != nil {
		w.t.Fatal(err)
	}
}

// tenantOutcomes is what OUTCOMES holds of the compactions of a tenant.
type tenantOutcomes struct {
	whole, omitted int
	bytes          int64
	noted          int // of those omitted, those with a note that says why
}

func (w *world) copiedOf(tenant string) (c tenantOutcomes) {
	w.t.Helper()
	filter := "out.*.compacted." + tenant + ".*"
	err := stream.ReadStream(w.t.Context(), w.js, topology.OutcomesStream, filter, 1, 0, func(m jetstream.Msg, _ uint64) error {
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
		w.t.Fatal(err)
	}
	return c
}

// omissions counts what a listener is told of messages that are left out.
type omissions struct {
	mu     sync.Mutex // guards the fields below
	of     map[string]int
	limits map[string]int
}

func (o *omissions) listener() worker.Listener {
	return worker.Listener{
		Compacted: func(e worker.Compacted) {
			if e.Omitted != "" {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.of[e.Address.Tenant+" "+e.Omitted]++
			}
		},
		OutcomesLimited: func(e worker.OutcomesLimited) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.limits[e.Tenant]++
		},
	}
}

// Tiny events that lead to large outcomes, hundreds of rewinds of a session with a
// large history, cost their own tenant its messages and nobody else anything: OUTCOMES
// grows by what the tenant may have in an hour, also across a restart, and the
// compactions of another tenant come whole. What is stored is what the log says.
func TestAmplification(t *testing.T) {
	t.Parallel()
	const (
		perHour = 4 << 20
		rewinds = 300
		// history is what the hostile session has published, in bytes.
		history = 12 * 40_000
	)
	w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4})
	w.config = newConfig(t, withoutPrune())
	w.outcomeBytes = perHour
	seen := omissions{of: map[string]int{}, limits: map[string]int{}}
	stop := w.run("a", seen.listener())
	for n := 1; n <= 12; n++ {
		w.publishOf("evil", events.KindTurn, "s", bigTurn(n, 130_000, 40_000))
	}
	w.publishOf("evil", events.KindCompact, "s", []byte(`{"policy":{"target":0.5}}`))
	w.settle()
	before := w.copiedOf("evil")
	tiny := 0
	rewind := func(n int) {
		for i := range n {
			data := fmt.Appendf(nil, `{"generation":%d}`, i%2)
			tiny += len(data)
			w.publishOf("evil", events.KindRewind, "s", data)
		}
	}
	rewind(rewinds / 2)
	for n := 1; n <= 40; n++ {
		w.publishOf("good", events.KindTurn, fmt.Sprintf("s%d", n%5), bigTurn((n-1)/5+1, 10_000, 12_000))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	stop = w.run("b", seen.listener()) // it must not begin a new hour
	rewind(rewinds / 2)
	for n := 41; n <= 80; n++ {
		w.publishOf("good", events.KindTurn, fmt.Sprintf("s%d", n%5), bigTurn((n-1)/5+1, 10_000, 12_000))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	evil, good := w.copiedOf("evil"), w.copiedOf("good")
	// An outcome without its messages has a few KB of figures.
	over := evil.bytes - before.bytes - perHour - int64(evil.omitted)*4<<10
	figures.Print(t, "P7", "rewinds", rewinds, "bytes_sent", tiny, "outcome_bytes", evil.bytes-before.bytes, "per_hour", perHour,
		"over", max(over, 0), "whole", evil.whole, "omitted", evil.omitted, "others_whole", good.whole, "others_omitted", good.omitted)
	if over > 0 || evil.omitted < rewinds/2 || evil.whole < perHour/history/2 {
		t.Errorf("%d bytes of outcomes over the bound; %+v", over, evil)
	}
	if evil.noted != evil.omitted {
		t.Errorf("%d of %d outcomes without messages say why", evil.noted, evil.omitted)
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
	w.wantReplayed()
}

// withoutPrune is a policy that leaves histories as large as they come.
func withoutPrune() compaction.Policy {
	p := withoutSummaries()
	p.Prune.Enabled = false
	return p
}

// wantReplayed replays what is stored and wants no difference.
func (w *world) wantReplayed() {
	w.t.Helper()
	report, err := audit.Replay(w.t.Context(), w.conn, audit.Span{})
	if err != nil {
		w.t.Fatal(err)
	}
	if report.Outcomes == 0 || len(report.Differences) > 0 {
		w.t.Errorf("replay: %d outcomes, %d differences: %+v", report.Outcomes, len(report.Differences), report.Differences)
	}
}

// One tenant cannot fill OUTCOMES: near its bound the compactions of the tenant that
// holds most go out without messages, while those of another come whole and every
// commit finds room.
func TestOutcomesNeverFull(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesOutcomes: 24 << 20})
	w.config = newConfig(t, withoutPrune())
	w.outcomeBytes = 1 << 40
	seen := omissions{of: map[string]int{}, limits: map[string]int{}}
	l := seen.listener()
	l.Retrying = func(e worker.Retrying) { t.Errorf("%s: %v", e.Step, e.Err) }
	stop := w.run("a", l)
	for n := 1; n <= 12; n++ {
		w.publishOf("evil", events.KindTurn, "s", bigTurn(n, 130_000, 40_000))
	}
	w.publishOf("evil", events.KindCompact, "s", []byte(`{"policy":{"target":0.5}}`))
	for i := range 300 {
		w.publishOf("evil", events.KindRewind, "s", fmt.Appendf(nil, `{"generation":%d}`, i%2))
	}
	w.settle()
	for n := 1; n <= 40; n++ {
		w.publishOf("good", events.KindTurn, fmt.Sprintf("s%d", n%5), bigTurn((n-1)/5+1, 10_000, 12_000))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	evil, good := w.copiedOf("evil"), w.copiedOf("good")
	state, err := topology.State(t.Context(), w.js, topology.OutcomesStream)
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
	w.wantReplayed()
}

// Compactions by hand and rewinds in turns clear the same results over and over, and
// each lists its edits, which no outcome can leave out. A session that has many times
// more of them than messages is refused more, until its history is sent again.
func TestEditsAreBounded(t *testing.T) {
	t.Parallel()
	const results, cycles = 400, 60
	w := newWorld(t, t.TempDir())
	stop := w.run("a", worker.Listener{})
	for _, data := range clearedTurns(results) {
		w.publishOf("evil", events.KindTurn, "s", data)
	}
	for range cycles {
		w.publishOf("evil", events.KindRewind, "s", []byte(`{"generation":0}`))
		w.publishOf("evil", events.KindCompact, "s", []byte(`{}`))
	}
	w.settle()
	edits, refused := 0, 0
	for p, all := range w.toldBySession() {
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
	w.publishOf("evil", events.KindTurn, "s", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"sorry"}]}`))
	w.publishOf("evil", events.KindCompact, "s", []byte(`{}`))
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if all := w.compactions("s"); all[len(all)-1].Code != events.CodeNotEnoughMessages {
		t.Errorf("the history that was sent again is not compacted by hand: %+v", all[len(all)-1])
	}
	w.wantReplayed()
	w.wantAsLogSays()
}

// The bound is one for all workers of a fleet: while partitions are handed over from one
// to another, a tenant has the bytes of an hour once.
func TestQuotaOfFleet(t *testing.T) {
	t.Parallel()
	const perHour, sessions = 4 << 20, 4
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	w.config = newConfig(t, withoutPrune())
	w.outcomeBytes = perHour
	first := w.start("a", r.listener("a"))
	<-first.worker.Ready()
	r.await(map[string]int{"a": 4})
	for s := range sessions {
		for n := 1; n <= 12; n++ {
			w.publishOf("evil", events.KindTurn, fmt.Sprintf("s%d", s), bigTurn(n, 34_000, 10_000))
		}
		w.publishOf("evil", events.KindCompact, fmt.Sprintf("s%d", s), []byte(`{"policy":{"target":0.5}}`))
	}
	w.settle()
	before := w.copiedOf("evil")
	rewinds := 0
	rewind := func() {
		for range 40 {
			for s := range sessions {
				w.publishOf("evil", events.KindRewind, fmt.Sprintf("s%d", s), fmt.Appendf(nil, `{"generation":%d}`, rewinds/sessions%2))
				rewinds++
			}
		}
		w.settle()
	}
	rewind()
	second := w.start("b", r.listener("b"))
	<-second.worker.Ready()
	r.await(map[string]int{"a": 2, "b": 2})
	rewind()
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	r.await(map[string]int{"a": 0, "b": 4})
	rewind()
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	evil := w.copiedOf("evil")
	if over := evil.bytes - before.bytes - perHour - int64(evil.omitted)*4<<10; over > 0 || evil.omitted < rewinds/2 || evil.whole == 0 {
		t.Errorf("%d bytes over the bound of all workers after %d rewinds: %+v", over, rewinds, evil)
	}
	w.wantReplayed()
}
