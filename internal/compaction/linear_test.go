package compaction_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/linear"
)

// conversation is a conversation of a size, of one kind of messages.
type conversation struct {
	name string
	of   func(n int) []msg
}

func callNo(id int) call {
	return call{id: fmt.Sprintf("call%06d", id), tool: "read", args: fmt.Sprintf(`{"path":"src/%d.go"}`, id)}
}

func resultNo(id int) result { return result{id: fmt.Sprintf("call%06d", id), tool: "read", text: "x"} }

func repeat(n int, of func(i int) msg) (out []msg) {
	for i := range n {
		out = append(out, of(i))
	}
	return out
}

func user(int) msg      { return msg{role: dialect.RoleUser, text: "a"} }
func assistant(int) msg { return msg{role: dialect.RoleAssistant, text: "a"} }
func calling(i int) msg {
	return msg{role: dialect.RoleAssistant, text: "t", calls: []call{callNo(i)}}
}
func answering(i int) msg { return msg{role: dialect.RoleTool, results: []result{resultNo(i)}} }

// conversations are conversations that cost the most where something is not linear.
var conversations = []conversation{
	{"users", func(n int) []msg { return repeat(n, user) }},
	{"assistants", func(n int) []msg { return append([]msg{user(0)}, repeat(n, assistant)...) }},
	{"in turns", func(n int) []msg {
		return repeat(n, func(i int) msg { return [](func(int) msg){user, assistant}[i%2](i) })
	}},
	{"system", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg { return msg{role: dialect.RoleSystem, text: "s"} })...)
	}},
	{"system between", func(n int) []msg {
		return repeat(n, func(i int) msg {
			return []msg{user(0), {role: dialect.RoleSystem, text: "s"}, assistant(0), {role: dialect.RoleSystem, text: "s"}}[i%4]
		})
	}},
	{"blank", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg {
			return msg{role: []dialect.Role{dialect.RoleUser, dialect.RoleAssistant}[i%2], text: " "}
		})...)
	}},
	{"open calls", func(n int) []msg { return append([]msg{user(0)}, repeat(n, calling)...) }},
	{"calls, then a user", func(n int) []msg { return append(append([]msg{user(0)}, repeat(n, calling)...), user(0)) }},
	{"calls, then results", func(n int) []msg {
		return append(append([]msg{user(0)}, repeat(n/2, calling)...), repeat(n/2, answering)...)
	}},
	{"calls, then results backwards", func(n int) []msg {
		return append(append([]msg{user(0)}, repeat(n/2, calling)...), repeat(n/2, func(i int) msg { return answering(n/2 - 1 - i) })...)
	}},
	{"calls, a user, then results", func(n int) []msg {
		return append(append(append([]msg{user(0)}, repeat(n/2, calling)...), user(0)), repeat(n/2, answering)...)
	}},
	{"a message of calls, then results", func(n int) []msg {
		m, r := msg{role: dialect.RoleAssistant}, msg{role: dialect.RoleTool}
		for i := range n / 2 {
			m.calls, r.results = append(m.calls, callNo(i)), append(r.results, resultNo(i))
		}
		return []msg{user(0), m, r}
	}},
	{"a message of open calls", func(n int) []msg {
		m := msg{role: dialect.RoleAssistant}
		for i := range n {
			m.calls = append(m.calls, callNo(i))
		}
		return []msg{user(0), m, user(0)}
	}},
	{"a message of calls of one id", func(n int) []msg {
		m := msg{role: dialect.RoleAssistant}
		for range n {
			m.calls = append(m.calls, callNo(0))
		}
		return []msg{user(0), m, user(0)}
	}},
	{"calls of one id, then results", func(n int) []msg {
		return append(append([]msg{user(0)}, repeat(n/2, func(int) msg { return calling(0) })...), repeat(n/2, func(int) msg { return answering(0) })...)
	}},
	{"calls of one id, a user, then results", func(n int) []msg {
		return append(append(append([]msg{user(0)}, repeat(n/2, func(int) msg { return calling(0) })...), user(0)), repeat(n/2, func(int) msg { return answering(0) })...)
	}},
	{"results, then calls of one id", func(n int) []msg {
		return append(append(append([]msg{user(0)}, repeat(n/2, func(int) msg { return answering(0) })...), repeat(n/2, func(int) msg { return calling(0) })...), user(0))
	}},
	{"results, then calls", func(n int) []msg {
		return append(append(append([]msg{user(0)}, repeat(n/2, answering)...), repeat(n/2, calling)...), user(0))
	}},
	{"results alone", func(n int) []msg { return append([]msg{user(0)}, repeat(n, answering)...) }},
	{"a message of results alone", func(n int) []msg {
		r := msg{role: dialect.RoleTool}
		for i := range n {
			r.results = append(r.results, resultNo(i))
		}
		return []msg{user(0), r, user(0)}
	}},
	{"results of one call", func(n int) []msg {
		return append([]msg{user(0), calling(0)}, repeat(n, func(int) msg { return answering(0) })...)
	}},
	{"users with results", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n/2, func(i int) msg {
			return msg{role: dialect.RoleUser, text: "b", last: true, results: []result{resultNo(i)}}
		})...)
	}},
	{"pairs", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg { return [](func(int) msg){calling, answering}[i%2](i / 2) })...)
	}},
	{"pairs of one id", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg { return [](func(int) msg){calling, answering}[i%2](0) })...)
	}},
	{"a large exchange, then pairs", func(n int) []msg {
		out := append([]msg{user(0)}, repeat(n/4, calling)...)
		out = append(out, repeat(n/4, answering)...)
		return append(out, repeat(n/2, func(i int) msg { return [](func(int) msg){calling, answering}[i%2](n + i/2) })...)
	}},
	{"images", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg { return msg{role: dialect.RoleUser, text: "a", image: true} })...)
	}},
	{"images in turns", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg {
			return []msg{{role: dialect.RoleUser, text: "a", image: true}, assistant(0)}[i%2]
		})...)
	}},
	{"images, and results without calls", func(n int) []msg {
		return append([]msg{user(0), answering(0)}, repeat(n, func(i int) msg {
			return []msg{{role: dialect.RoleUser, text: "a", image: true}, assistant(0)}[i%2]
		})...)
	}},
	{"thoughts that nothing follows", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg {
			return []msg{{role: dialect.RoleAssistant, text: "a", thought: true}, user(0)}[i%2]
		})...)
	}},
	{"thoughts that nothing follows, and results without calls", func(n int) []msg {
		return append([]msg{user(0), answering(0)}, repeat(n, func(i int) msg {
			return []msg{{role: dialect.RoleAssistant, text: "a", thought: true}, {role: dialect.RoleUser, text: "a", image: true}, assistant(0), calling(i)}[i%4]
		})...)
	}},
	{"served", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg {
			return msg{role: dialect.RoleAssistant, text: "a", served: []served{{call: call{id: fmt.Sprintf("srvtoolu_%d", i), tool: "web_search", args: `{}`}, text: "x"}}}
		})...)
	}},
	{"served calls, then results", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg {
			half := []string{"call", "result"}[i*2/n]
			return msg{role: dialect.RoleAssistant, text: "a", served: []served{{call: call{id: fmt.Sprintf("srvtoolu_%d", i%(n/2)), tool: "web_search", args: `{}`}, text: "x", half: half}}}
		})...)
	}},
	{"nested arguments", func(n int) []msg {
		c := callNo(0)
		depth := 60
		c.args = `{"path":` + strings.Repeat("[", depth) + strings.Repeat("1,", n*4) + "1" + strings.Repeat("]", depth) + "}"
		return []msg{user(0), {role: dialect.RoleAssistant, calls: []call{c}}, answering(0)}
	}},
	{"a list of files", func(n int) []msg {
		var files []string
		for i := range 4 * n {
			files = append(files, fmt.Sprintf("%q", fmt.Sprint(i)))
		}
		c := callNo(0)
		c.args = `{"files":[` + strings.Join(files, ",") + `]}`
		return []msg{user(0), {role: dialect.RoleAssistant, calls: []call{c}}, answering(0)}
	}},
	{"a long command", func(n int) []msg {
		c := callNo(0)
		c.tool, c.args = "bash", `{"command":"cd /x;`+strings.Repeat("cd a;<b;", 4*n)+`"}`
		return []msg{user(0), {role: dialect.RoleAssistant, calls: []call{c}}, answering(0)}
	}},
	{"one file", func(n int) []msg {
		return append([]msg{user(0)}, repeat(n, func(i int) msg {
			c := callNo(i / 2)
			c.args = `{"path":"a.go"}`
			return []msg{{role: dialect.RoleAssistant, calls: []call{c}}, {role: dialect.RoleTool, results: []result{{id: c.id, tool: "read", text: strings.Repeat("x", 100)}}}}[i%2]
		})...)
	}},
}

// sized are sessions of a shape, of about n entries, one in a window that it never fills and one in a small one.
func sized(t testing.TB, c *compaction.Config, f events.Format, s conversation, n, perTurn int) map[int64]*agent {
	agents := map[int64]*agent{wide: newAgent(t, c), narrow: newAgent(t, c)}
	history := messages(f, s.of(n)...)
	first := object{"messages": history[:min(len(history), perTurn)], "format": f}
	for window, a := range agents {
		first["model"] = object{"provider": "x", "name": "x", "context_window": window, "max_output_tokens": 100}
		a.publish(first)
	}
	for i := perTurn; i < len(history); i += perTurn {
		turn, err := agents[wide].read(object{"messages": history[i:min(len(history), i+perTurn)]})
		for _, a := range agents {
			if a.seq = agents[wide].seq; err == nil { // else the dialect has no such messages
				a.texts[a.seq] = agents[wide].texts[a.seq]
				a.do(turn)
			}
		}
	}
	return agents
}

func (a *agent) request(k events.Kind, body string) compaction.Input {
	a.seq++
	r, err := stored.ReadRequest(k, []byte(body), a.seq)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

func (a *agent) do(in compaction.Input) []compaction.Outcome {
	outs, next := compaction.Decide(a.ledger, in, a.config)
	next.Install(a.ledger)
	return outs
}

func (a *agent) decideOnly(in compaction.Input) func() {
	return func() { _, _ = compaction.Decide(a.ledger, in, a.config) }
}

func (a *agent) unread() map[measure.Seq][]dialect.Message {
	out := map[measure.Seq][]dialect.Message{}
	for seq, list := range a.texts {
		for _, m := range list {
			out[seq] = append(out[seq], dialect.Message{Raw: m.Raw})
		}
	}
	return out
}

func (a *agent) rendering(v *render.View) func() {
	texts := a.unread()
	return func() {
		out, _, err := render.Render(v, func(s measure.Seq) ([]dialect.Message, error) { return texts[s], nil })
		if err != nil {
			a.t.Fatal(err)
		}
		_ = out
	}
}

// operation is one of a session.
type operation struct {
	name   string
	window int64
	of     func(a *agent) func()
}

const wide, narrow = 1 << 30, 2_000

var operations = []operation{
	{"turn", wide, func(a *agent) func() {
		t, err := a.read(object{"messages": messages(a.ledger.Format(), user(0))})
		if err != nil {
			a.t.Fatal(err)
		}
		return a.decideOnly(t)
	}},
	{"replace", wide, func(a *agent) func() {
		t, err := a.read(object{"replaces_from": max(a.ledger.LastTurn(), 1), "messages": messages(a.ledger.Format(), user(0))})
		if err != nil {
			a.t.Fatal(err)
		}
		return a.decideOnly(t)
	}},
	{"compact", wide, func(a *agent) func() { return a.decideOnly(a.request(events.KindCompact, `{"v":1}`)) }},
	{"compact hard", wide, func(a *agent) func() {
		return a.decideOnly(a.request(events.KindCompact, `{"v":1,"model":{"name":"x","context_window":1500,"max_output_tokens":100},"policy":{"summarize":{"enabled":false}}}`))
	}},
	{"overflow", wide, func(a *agent) func() {
		return a.decideOnly(a.request(events.KindOverflow, `{"v":1,"error":"prompt is too long: 210000 tokens > 200000 maximum"}`))
	}},
	{"rewind", wide, func(a *agent) func() {
		a.do(a.request(events.KindCompact, `{"v":1,"model":{"name":"x","context_window":1500,"max_output_tokens":100},"policy":{"summarize":{"enabled":false}}}`))
		return a.decideOnly(a.request(events.KindRewind, `{"v":1,"generation":0}`))
	}},
	{"install rewind", wide, func(a *agent) func() {
		a.do(a.request(events.KindCompact, `{"v":1,"model":{"name":"x","context_window":1500,"max_output_tokens":100},"policy":{"summarize":{"enabled":false}}}`))
		r := a.request(events.KindRewind, `{"v":1,"generation":0}`)
		outs, _ := compaction.Decide(a.ledger, r, a.config)
		return func() { compaction.Apply(a.ledger.Fork(), r, outs, a.config) }
	}},
	{"render rewound", wide, func(a *agent) func() {
		a.do(a.request(events.KindCompact, `{"v":1,"model":{"name":"x","context_window":1500,"max_output_tokens":100},"policy":{"summarize":{"enabled":false}}}`))
		for _, o := range a.do(a.request(events.KindRewind, `{"v":1,"generation":0}`)) {
			if o.View != nil {
				return a.rendering(o.View)
			}
		}
		return func() {}
	}},
	{"compact narrow", narrow, func(a *agent) func() { return a.decideOnly(a.request(events.KindCompact, `{"v":1}`)) }},
	{"view", wide, func(a *agent) func() { return func() { v := a.ledger.View(); v.Seqs() } }},
	{"render", wide, func(a *agent) func() { v := a.ledger.View(); return a.rendering(v) }},
	{"render narrow", narrow, func(a *agent) func() { v := a.ledger.View(); return a.rendering(v) }},
	{"validate", wide, func(a *agent) func() {
		v := a.ledger.View()
		texts := a.unread()
		out, _, err := render.Render(v, func(s measure.Seq) ([]dialect.Message, error) { return texts[s], nil })
		if err != nil {
			a.t.Fatal(err)
		}
		return func() {
			validate.Check(validate.Call{Format: string(v.Format), Demands: v.Demands, Messages: out})
		}
	}},
	{"validate all demands", wide, func(a *agent) func() {
		v := a.ledger.View()
		var all []codec.Raw
		for _, s := range v.Seqs() {
			for _, m := range a.texts[s] {
				all = append(all, m.Raw)
			}
		}
		d := v.Demands
		d.Alternates, d.Bridges, d.UniqueIDs, d.Reasons = true, true, true, true
		d.IDs.Max, d.IDs.Nine = 9, true
		return func() { validate.Check(validate.Call{Format: string(v.Format), Demands: d, Messages: all}) }
	}},
	{"stats", wide, func(a *agent) func() {
		return func() { _, _ = a.ledger.Stats(a.config, events.Model{Name: "y", ContextWindow: 5000}) }
	}},
	{"files", wide, func(a *agent) func() { return func() { a.ledger.Files(a.config) } }},
	{"awaited", wide, func(a *agent) func() {
		return func() { a.ledger.AwaitedAfter(a.ledger.LastTurn()); a.ledger.Chain(); a.ledger.TurnSeqs() }
	}},
	{"rows", wide, func(a *agent) func() {
		return func() {
			rows, err := stored.Rows(a.ledger)
			if err == nil {
				_, err = stored.ReadLedger(a.ledger.Address, rows)
			}
			if err != nil {
				a.t.Fatal(err)
			}
		}
	}},
}

// grown is an operation on a session of a conversation, at two sizes.
type grown struct {
	name   string
	of     operation
	agents [2]*agent // by size
}

func (g *grown) cost(i int) linear.Cost {
	a := *g.agents[i]
	a.ledger = a.ledger.Fork()
	return linear.Of(1, g.of.of(&a))
}

// The cost of every operation is linear in the messages of its session, for conversations of any kind:
// the figures are what a session costs by one that is half as long. Every sixth conversation of each
// dialect is tried here.
func TestLinear(t *testing.T) { testLinear(t, 6) }

func testLinear(t *testing.T, every int) {
	const n, most = 500, 2.5
	c := defaultConfig(t)
	worst, cases := linear.Ratio{}, 0
	for i, f := range events.Formats() {
		for k, s := range conversations {
			if (i+k)%every != 0 {
				continue
			}
			perTurn := []int{events.MaxTurnMessages, 1}[(i+k)/every%2]
			small, large := sized(t, c, f, s, n, perTurn), sized(t, c, f, s, 4*n, perTurn)
			for _, op := range operations {
				g := grown{fmt.Sprintf("%s, %s, %d a turn: %s", f, s.name, perTurn, op.name), op, [2]*agent{small[op.window], large[op.window]}}
				if !g.agents[0].ledger.HasTurns() { // the dialect has no such messages
					continue
				}
				cases++
				r := linear.RatioOf(n, most, g.cost)
				if r.Worst() > most {
					t.Errorf("%s: %v", g.name, r)
				}
				worst = worst.Max(r)
			}
		}
	}
	perDoubling := func(quadrupled float64) string { return fmt.Sprintf("%.2f", 2*math.Sqrt(quadrupled)) }
	figures.Print(t, "P24", "cases", cases, "worst_cpu", perDoubling(worst.CPU), "worst_bytes", perDoubling(worst.Bytes))
}
