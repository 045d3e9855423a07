package compaction_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// roundMessages is the number of messages of a round.
const roundMessages = 4

// round is what an agent appends between two questions: a question, a call, its
// result, and an answer.
func round(i int) []msg {
	c := call{id: fmt.Sprintf("call_%d", i), tool: "read", args: fmt.Sprintf(`{"path":"src/%d.go"}`, i%50)}
	return []msg{
		{role: dialect.RoleUser, text: strings.Repeat("why ", 20)},
		{role: dialect.RoleAssistant, text: "looking", calls: []call{c}},
		{role: dialect.RoleTool, results: []result{{id: c.id, text: strings.Repeat("line\n", 200)}}},
		{role: dialect.RoleAssistant, text: strings.Repeat("because ", 20)},
	}
}

// longSession is a session of n messages and more, far from its window's end.
func longSession(b *testing.B, n int) (*agent, *compaction.Turn) {
	a := newAgent(b, defaultConfig(b))
	model := object{"provider": "anthropic", "context_window": 1 << 38}
	for i := range n / roundMessages {
		turn := object{"messages": messages(events.Anthropic, round(i)...)}
		if i == 0 {
			turn["model"] = model
		}
		a.publish(turn)
	}
	turn, err := a.read(object{"messages": messages(events.Anthropic, round(n)...), "model": model})
	if err != nil {
		b.Fatal(err)
	}
	return a, turn
}

// A turn costs the same in a session of 10 messages and in one of 10,000: the
// last figure is the ratio. Sessions grow by half while they are measured, so
// that the growth of slices is in it.
func BenchmarkTurn(b *testing.B) {
	var short float64
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			a, turn := longSession(b, n)
			turns := max(n/roundMessages/2, 32)
			b.ReportAllocs()
			for b.Loop() {
				l := a.ledger.Fork()
				for range turns {
					_, next := compaction.Decide(l, turn, a.config)
					next.Install(l)
				}
			}
			one := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(turns)
			b.ReportMetric(one, "ns/turn")
			if n == 10 {
				short = one
			}
			if short > 0 {
				b.ReportMetric(one/short, "x10")
			}
		})
	}
}

// A turn above the trigger costs about what any other does while a summary is
// awaited: the last figure is the ratio to one below it.
func BenchmarkTurnWaiting(b *testing.B) {
	var quiet float64
	for _, waits := range []bool{false, true} {
		b.Run(fmt.Sprintf("waits=%t", waits), func(b *testing.B) {
			a, turn := waitingSession(b, waits)
			b.ReportAllocs()
			for b.Loop() {
				l := a.ledger.Fork()
				for range waitingTurns {
					outs, next := compaction.Decide(l, turn, a.config)
					if len(outs) > 0 {
						b.Fatalf("emitted %T", outs[0].Body)
					}
					next.Install(l)
				}
			}
			one := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / waitingTurns
			b.ReportMetric(one, "ns/turn")
			if !waits {
				quiet = one
			} else if quiet > 0 {
				b.ReportMetric(one/quiet, "xquiet")
			}
		})
	}
}

// waitingTurns is how many turns of waitingSession have no outcome.
const waitingTurns = 10

// waitingSession is one of 4,000 messages, above its trigger with a job under way
// since it was 6 % smaller, or far below it, and its next turn.
func waitingSession(t testing.TB, waits bool) (*agent, *compaction.Turn) {
	const rounds = 1_000
	p := policy.Default()
	p.Prune.Enabled, p.Deduplicate.Enabled = false, false
	a := newAgent(t, configOf(t, p))
	for i := range rounds {
		turn := object{"messages": messages(events.Anthropic, round(i)...)}
		if i == 0 {
			turn["model"] = object{"provider": "anthropic", "context_window": 1 << 30, "max_output_tokens": 1000}
		}
		a.publish(turn)
	}
	next := object{"messages": messages(events.Anthropic, round(rounds)...)}
	last, window := maps.Clone(next), a.ledger.Budget().EstimatedInput*5/4-2_000 // the trigger is 0.8 of it
	if waits {
		last["model"] = object{"provider": "anthropic", "context_window": window, "max_output_tokens": 1000}
	}
	a.publish(last)
	large := words(a.ledger.Rate(), measure.Tokens(window*6/100), "")
	a.publish(object{"messages": messages(events.Anthropic, msg{role: dialect.RoleUser, text: large})})
	st, err := a.ledger.Stats(a.config, events.Model{})
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Waiting; got != waits {
		t.Fatalf("waiting: %t", got)
	}
	turn, err := a.read(next)
	if err != nil {
		t.Fatal(err)
	}
	return a, turn
}

// While a summary is awaited a turn is planned only when the history has changed
// by a step: a plan of a session this long takes a thousand allocations.
func TestTurnWaiting(t *testing.T) {
	allocs := func(waits bool) float64 {
		a, turn := waitingSession(t, waits)
		return testing.AllocsPerRun(20, func() { compaction.Decide(a.ledger, turn, a.config) })
	}
	if quiet, waiting := allocs(false), allocs(true); waiting > quiet {
		t.Errorf("%.0f allocations while waiting, %.0f else", waiting, quiet)
	}
}

// A turn that states its model costs the same whether a table has the model or not: to look through
// the tables takes hundreds of allocations.
func TestTurnOfUnknownModel(t *testing.T) {
	allocs := func(name string) float64 {
		a := newAgent(t, defaultConfig(t))
		turn := func(i int) object {
			return object{
				"messages": messages(events.Anthropic, round(i)...), "usage": object{"input_tokens": 1_000 * (i + 1), "output_tokens": 10},
				"model": object{"provider": "anthropic", "name": name, "max_output_tokens": 1_000},
			}
		}
		a.publish(turn(0))
		next, err := a.read(turn(1))
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(20, func() { compaction.Decide(a.ledger, next, a.config) })
	}
	if known, unknown := allocs("claude-sonnet-4-20250514"), allocs("house-model-7"); unknown > known+10 {
		t.Errorf("%.0f allocations for a model that no table has, %.0f for another", unknown, known)
	}
}

// All stages over a view of 10,000 messages.
func BenchmarkPlan10k(b *testing.B) {
	a, _ := longSession(b, 10_000)
	view, rate, policy := a.ledger.Visible(), a.ledger.Rate(), a.ledger.Policy()
	policy.Prune.ProtectTokens = 40_000 // reads are left for deduplicate
	target := measure.Tokens(a.ledger.Budget().EstimatedInput) / 10
	b.ReportAllocs()
	for b.Loop() {
		plan := makePlan(slices.Clone(view), events.Anthropic, rate, &policy, 200_000, target)
		if len(plan.Used) != 3 {
			b.Fatalf("used %v", plan.Used)
		}
	}
}

// The choice of what a summary keeps, of 10,000 messages.
func BenchmarkChoose10k(b *testing.B) {
	a, _ := longSession(b, 10_000)
	view, rate, policy := a.ledger.Visible(), a.ledger.Rate(), a.ledger.Policy()
	target := measure.Tokens(a.ledger.Budget().EstimatedInput) / 10
	summary := &stage.Summary{Seq: 1 << 40, To: view[len(view)*9/10].End(), Units: 1_000}
	b.ReportAllocs()
	for b.Loop() {
		plan := stage.MakePlan(historyOf(view, events.Anthropic, rate), &policy, 0, stage.Means{Target: target, Whole: target, Summary: summary, Truncate: true})
		if !plan.Uses(events.StageSummarize) {
			b.Fatalf("used %v", plan.Used)
		}
	}
}

// Plan and Render of 1,000 messages of 800 characters, 30 % of them results of
// tools: the full pass of an agent that reads files and talks about them.
func BenchmarkPlanRender1k(b *testing.B) {
	a := newAgent(b, defaultConfig(b))
	text := strings.Repeat("some text ", 80)
	for i := range 100 {
		var talk []msg
		for k := range 3 {
			c := call{id: fmt.Sprintf("call_%d_%d", i, k), tool: "read", args: fmt.Sprintf(`{"path":"src/%d.go"}`, (3*i+k)%90)}
			talk = append(talk, msg{role: dialect.RoleAssistant, text: text, calls: []call{c}}, msg{role: dialect.RoleTool, results: []result{{id: c.id, text: text}}})
		}
		talk = append(talk, msg{role: dialect.RoleAssistant, text: text}, msg{role: dialect.RoleUser, text: text},
			msg{role: dialect.RoleAssistant, text: text}, msg{role: dialect.RoleUser, text: text})
		a.publish(object{"messages": messages(events.Anthropic, talk...), "model": object{"provider": "anthropic", "context_window": 1 << 38}})
	}
	view, rate, policy := a.ledger.Visible(), a.ledger.Rate(), a.ledger.Policy()
	policy.Prune.ProtectTokens, policy.Prune.MinimumTokens = 10_000, 0
	target := measure.Tokens(a.ledger.Budget().EstimatedInput) * 6 / 10
	b.ReportAllocs()
	for b.Loop() {
		plan := makePlan(slices.Clone(view), events.Anthropic, rate, &policy, 200_000, target)
		if len(plan.Stages) != 3 {
			b.Fatalf("stages %+v", plan.Stages)
		}
		if _, _, err := render.Render(planView(plan, events.Anthropic), func(s measure.Seq) ([]dialect.Message, error) { return a.texts[s], nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// A history made to be slow: as many parallel calls as a turn can hold, their
// results late and in reverse.
func BenchmarkHostilePlan(b *testing.B) {
	plan := hostilePlan(b, 20_000)
	for b.Loop() {
		plan()
	}
}

func hostilePlan(t testing.TB, n int) func() {
	var calls, late msg
	calls.role, late.role = dialect.RoleAssistant, dialect.RoleTool
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		calls.calls = append(calls.calls, call{id: id, tool: "t", args: "{}"})
		late.results = append(late.results, result{id: id})
	}
	slices.Reverse(late.results)
	a := newAgent(t, defaultConfig(t))
	for i, s := range []msg{{role: dialect.RoleUser, text: "go"}, calls, {role: dialect.RoleUser, text: "wait"}, {role: dialect.RoleAssistant, text: "why"}, late} {
		turn := object{"messages": messages(events.OpenAI, s)}
		if i == 0 {
			turn["model"] = object{"provider": "openai", "context_window": 1 << 30}
		}
		a.publish(turn)
	}
	policy := a.ledger.Policy()
	return func() {
		makePlan(a.ledger.Visible(), events.OpenAI, a.ledger.Rate(), &policy, a.ledger.Window(), 0)
	}
}

// A plan of a hostile history does not cost the square of its length: that
// would take a minute here.
func TestHostilePlan(t *testing.T) { hostilePlan(t, 10_000)() }
