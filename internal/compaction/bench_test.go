package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// roundMessages is the number of messages of a round.
const roundMessages = 4

// round is what an agent appends between two questions: a question, a call, its
// result, and an answer.
func round(i int) []said {
	c := call{id: fmt.Sprintf("call_%d", i), tool: "read", args: fmt.Sprintf(`{"path":"src/%d.go"}`, i%50)}
	return []said{
		{role: events.RoleUser, text: strings.Repeat("why ", 20)},
		{role: events.RoleAssistant, text: "looking", calls: []call{c}},
		{role: events.RoleTool, results: []result{{id: c.id, text: strings.Repeat("line\n", 200)}}},
		{role: events.RoleAssistant, text: strings.Repeat("because ", 20)},
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
					compaction.Apply(l, turn, compaction.Decide(l, turn, a.config), a.config)
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

// All stages over a view of 10,000 messages.
func BenchmarkPlan10k(b *testing.B) {
	a, _ := longSession(b, 10_000)
	view, rate, policy := a.ledger.Visible(), a.ledger.Rate(), a.ledger.Policy()
	target := compaction.Tokens(a.ledger.Budget().EstimatedInput) / 10
	b.ReportAllocs()
	for b.Loop() {
		plan := compaction.MakePlan(slices.Clone(view), events.Anthropic, rate, &policy, 200_000, target)
		if len(plan.Used) != 3 {
			b.Fatalf("used %v", plan.Used)
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
	var calls, late said
	calls.role, late.role = events.RoleAssistant, events.RoleTool
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		calls.calls = append(calls.calls, call{id: id, tool: "t", args: "{}"})
		late.results = append(late.results, result{id: id})
	}
	slices.Reverse(late.results)
	a := newAgent(t, defaultConfig(t))
	for i, s := range []said{{role: events.RoleUser, text: "go"}, calls, {role: events.RoleUser, text: "wait"}, {role: events.RoleAssistant, text: "why"}, late} {
		turn := object{"messages": messages(events.OpenAI, s)}
		if i == 0 {
			turn["model"] = object{"provider": "openai", "context_window": 1 << 30}
		}
		a.publish(turn)
	}
	policy := a.ledger.Policy()
	return func() {
		compaction.MakePlan(a.ledger.Visible(), events.OpenAI, a.ledger.Rate(), &policy, a.ledger.Window(), 0)
	}
}

// What a hostile history makes a plan do is not the square of its length: that
// would take a minute here.
func TestHostilePlan(t *testing.T) { hostilePlan(t, 10_000)() }
