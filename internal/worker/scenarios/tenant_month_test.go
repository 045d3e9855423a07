package scenarios_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/redecide"
)

// Two workers share the budget of a tenant for the month, and a third one adds up the same from the log
// alone. Beyond it no model is called: the jobs fail with their code, which never opens the breaker, and sessions are
// compacted by the other stages. A tenant without a budget goes on. The list of tenants has both figures.
func TestMonthOfTenant(t *testing.T) {
	t.Parallel()
	const writer = "anthropic/claude-haiku-4-5"
	var calls [2]atomic.Int64 // of default and other
	env := workertest.Summarizing(t, workertest.SummarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		calls[map[string]int{"default": 0, "other": 1}[in.Tenant]].Add(1)
		s, err := extract.New().Summarize(ctx, in)
		if err == nil {
			s.Model, s.Usage = writer, events.SummaryUsage{Input: 2_000, Output: 200}
		}
		return s, err
	}))
	env.Writers = func(*events.Job) []string { return []string{writer} }
	p := policy.Default()
	p.Limits.MonthCents = 1
	var err error
	if env.Config, err = env.Config.WithTenants(map[string]policy.Policy{"default": p}); err != nil {
		t.Fatal(err)
	}
	money, unpriced := env.Config.Prices.Summary(&events.Summary{Model: writer, Usage: events.SummaryUsage{Input: 2_000, Output: 200}})
	if money == 0 || unpriced != 0 || money >= 10_000_000 {
		t.Fatalf("a summary costs %d", money)
	}
	workers := []*workertest.Running{env.StartReady("a", observe.Listener{}), env.StartReady("b", observe.Listener{})}
	for s, before := 0, ""; before != events.FailureBudget; s++ {
		if s == 20 {
			t.Fatal("20 sessions have spent no cent")
		}
		session := fmt.Sprint("s", s)
		env.Fill(session, events.LaneBackground)
		before = result(env, session)
	}
	spent := int64(money) * calls[0].Load()
	if spent < 10_000_000 || spent > 10_000_000+int64(money) {
		t.Errorf("%d calls cost %d, want a cent and one call at most", calls[0].Load(), spent)
	}
	check := func() {
		t.Helper()
		var out events.TenantsResponse
		if e := env.Request(events.SubjectTenants, `{"text":"default"}`, &out); e != nil || len(out.Tenants) != 1 || out.Tenants[0].Month != spent || out.Tenants[0].MonthCents != 1 {
			t.Errorf("%v, %+v, want %d of 1 cent", e, out.Tenants, spent)
		}
	}
	check()
	for _, w := range workers {
		w.Stop()
	}
	env.Run("c", observe.Listener{})
	n := calls[0].Load()
	env.Fill("after", events.LaneBackground)
	if got := result(env, "after"); got != events.FailureBudget || calls[0].Load() != n {
		t.Errorf("the next worker's job ends with %q, after %d calls, not %d", got, calls[0].Load(), n)
	}
	check()
	for n := 1; n <= 40 && calls[1].Load() == 0; n++ {
		env.PublishFor("other", events.KindTurn, "s", workertest.BigTurn(n, 8_000, 1_200))
		env.AwaitDecided()
	}
	for n := 1; n <= 60; n++ { // far beyond the trigger: the stages without a model hold it; the first were sent
		env.Publish(events.KindTurn, "after", workertest.BigTurn(n, 8_000, 1_200))
	}
	env.AwaitDecided()
	compacted := 0
	err = stream.ReadStream(t.Context(), env.JS, topology.OutcomesStream, "out.*.compacted.default.after", 1, 0, func(m jetstream.Msg, _ uint64) error {
		if strings.Contains(string(m.Data()), `"compacted":true`) {
			compacted++
		}
		return nil
	})
	if err != nil || compacted == 0 {
		t.Errorf("%v, %d compactions", err, compacted)
	}
	var out events.TenantsResponse
	if e := env.Request(events.SubjectTenants, `{"text":"other"}`, &out); e != nil || len(out.Tenants) != 1 || out.Tenants[0].MonthCents != 0 {
		t.Errorf("%v, %+v", e, out.Tenants)
	}
	if replayed := env.Replay(redecide.Span{}); !replayed.Equal() {
		t.Errorf("%+v", replayed)
	}
	t.Logf("%d calls of %d nano dollars, %d compactions without a model", calls[0].Load(), money, compacted)
}

// Each answer counts at the price of the model that gave it, over HTTP: one in bad form, and one without text, after
// which the embedded summarizer writes. The budget ends the calls.
func TestMonthOfAnswersWithoutUse(t *testing.T) {
	t.Parallel()
	server := summarizetest.Start(t, func(summarizetest.Prompt) string { return "no summary" })
	server.Script(summarizetest.Good, summarizetest.Empty)
	var chain []model.Model
	var names []string
	for _, d := range []summarizetest.Dialect{summarizetest.OpenAI, summarizetest.Anthropic} {
		config := server.Config(d)
		config.Attempts = 1
		m, err := provider.New(config)
		if err != nil {
			t.Fatal(err)
		}
		chain, names = append(chain, m), append(names, m.Name())
	}
	env := workertest.Summarizing(t, llm.New(chain...))
	env.Writers = func(*events.Job) []string { return names }
	p := policy.Default()
	p.Limits.MonthCents = 1
	var err error
	if env.Config, err = env.Config.WithTenants(map[string]policy.Policy{"default": p}); err != nil {
		t.Fatal(err)
	}
	prices := measure.PriceTable{}
	for i, name := range names {
		_, name, _ = strings.Cut(name, "/")
		prices[name] = &measure.Prices{Input: measure.Money(1_000 * (i + 1)), Output: 1_000}
	}
	if env.Config, err = env.Config.WithPrices(prices); err != nil {
		t.Fatal(err)
	}
	const each = 3*1_000*summarizetest.InputTokens + 2*1_000*summarizetest.OutputTokens // both models
	stop := env.Run("a", observe.Listener{})
	for s, before := 0, ""; before != events.FailureBudget; s++ {
		if s == 10 {
			t.Fatal("10 sessions have spent no cent")
		}
		session := fmt.Sprint("s", s)
		env.Fill(session, events.LaneBackground)
		before = result(env, session)
	}
	var out events.TenantsResponse
	spent := int64(server.Calls()) / 2 * each
	e := env.Request(events.SubjectTenants, `{"text":"default"}`, &out)
	if e != nil || len(out.Tenants) != 1 || out.Tenants[0].Month != spent || spent < 10_000_000 || spent > 10_000_000+each {
		t.Errorf("%v, %+v, want %d after %d calls", e, out.Tenants, spent, server.Calls())
	}
	stop()
	env.WantRedecided()
}

// result waits for the summary of a session's first job, and returns its failure.
func result(env *workertest.Env, session string) string {
	env.T.Helper()
	r, err := stream.OpenReader(env.T.Context(), env.JS, topology.LogStream, jetstream.ConsumerConfig{
		FilterSubjects: []string{"log.*.summary.default." + session}, DeliverPolicy: jetstream.DeliverAllPolicy,
	})
	if err != nil {
		env.T.Fatal(err)
	}
	got := make(chan string, 64)
	r.Handle(func(m jetstream.Msg, _ *jetstream.MsgMetadata) error {
		s, err := events.DecodeSummary(m.Data())
		if err != nil {
			return err
		}
		got <- s.Failure
		return nil
	})
	r.Start()
	defer r.Stop()
	return workertest.Next(env.T, got, "summary")
}
