package compaction_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// generator draws conversations.
type generator struct {
	*rapid.T
	model  string
	format events.Format
	noIDs  bool // of neurolink
	calls  int
	open   []call // of the last exchange
	past   []call // all there were

	served int      // calls that the provider carried out
	paused []served // have none so far
}

func newGenerator(t *rapid.T) *generator {
	g := &generator{T: t, format: rapid.SampledFrom(events.Formats()).Draw(t, "format")}
	g.noIDs = (g.format == events.NeuroLink || g.format == events.Gemini) && rapid.Bool().Draw(t, "no ids")
	return g
}

// hasSystem reports whether messages of the dialect may be the system's.
func (g *generator) hasSystem() bool {
	return g.format != events.Gemini && g.format != events.Bedrock
}

func (g *generator) odds(percent int, label string) bool {
	return rapid.IntRange(1, 100).Draw(g.T, label) <= percent
}

// text is seldom empty, and never where the dialect refuses that.
func (g *generator) text() string {
	piece := rapid.SampledFrom([]string{"a", "word ", "日本語", "👍", "é\n", `"\<&`, half, "\x00 ", "line\r\n"}).Draw(g.T, "piece")
	n := rapid.IntRange(1, 120).Draw(g.T, "pieces")
	if g.odds(3, "huge") {
		n *= 40
	}
	return "." + strings.Repeat(piece, n)
}

func (g *generator) blank() string {
	return rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(g.T, "blank")
}

func (g *generator) call() call {
	g.calls++
	tool := rapid.SampledFrom([]string{"read", "Read_File", "bash", "skill", "write", "ツール", strings.Repeat("tool", 30)}).Draw(g.T, "tool")
	in := object{"path": rapid.SampledFrom([]string{"a.go", "b.go", "/x/" + strings.Repeat("déep/", 40) + "c.go"}).Draw(g.T, "path")}
	if g.odds(20, "range") {
		in["offset"], in["limit"] = rapid.IntRange(1, 2).Draw(g.T, "offset"), 100
	}
	c := call{tool: tool, args: string(raws(in)[0])}
	if !g.noIDs {
		c.id = fmt.Sprintf("call%05d", g.calls) // which every provider takes
	}
	return c
}

// serve gives a message of the assistant calls that the provider carries out. Where it calls
// tools as well, their results may be in the next one.
func (g *generator) serve(m msg) msg {
	for _, x := range g.paused {
		x.half = "result"
		m.served = append(m.served, x)
	}
	g.paused = nil
	for g.odds(15, "served") && g.format != events.OpenAI && g.format != events.Responses && g.format != events.NeuroLink {
		g.served++
		x := served{call: call{fmt.Sprintf("srvtoolu_%d", g.served), "web_search", `{"query":"q"}`}, text: g.text()}
		if g.format == events.Anthropic && len(m.calls) > 0 && g.odds(30, "paused") {
			x.half = "call"
			g.paused = append(g.paused, x)
		}
		m.served = append(m.served, x)
	}
	found := slices.ContainsFunc(m.served, func(x served) bool { return x.half != "call" })
	m.cites = g.format == events.Anthropic && found && m.text != "" && g.odds(40, "cites")
	return m
}

func (g *generator) result(c call) result {
	return result{id: c.id, tool: c.tool, text: g.text(), failed: g.odds(10, "failed")}
}

// proper is a history that its provider takes, calls open at its end included.
func (g *generator) proper() []msg {
	var out []msg
	g.model = "claude-opus-5-5" // which takes the system's messages within a conversation
	if g.format != events.Anthropic && g.hasSystem() && g.odds(50, "system") {
		out = append(out, msg{role: dialect.RoleSystem, text: g.text()})
	}
	rounds := rapid.IntRange(1, 8).Draw(g.T, "rounds")
	for i := range rounds {
		out = append(out, msg{role: dialect.RoleUser, text: g.text(), image: g.format != events.NeuroLink && g.odds(10, "image")})
		for range rapid.IntRange(0, 3).Draw(g.T, "exchanges") {
			out = append(out, g.exchange()...)
		}
		if g.hasSystem() && g.odds(25, "instruction") && len(g.paused) == 0 && (g.format != events.Anthropic || out[len(out)-1].role != dialect.RoleAssistant) {
			out = append(out, msg{role: dialect.RoleSystem, text: g.text()})
		}
		if i < rounds-1 || g.odds(50, "answered") {
			out = append(out, g.serve(msg{role: dialect.RoleAssistant, text: g.text()}))
		}
	}
	if g.odds(40, "open") {
		if out[len(out)-1].role == dialect.RoleAssistant {
			out = append(out, msg{role: dialect.RoleUser, text: g.text()})
		}
		open := g.exchange()
		if g.noIDs || g.odds(50, "none came") {
			open = open[:1]
		} else {
			for i := 1; i < len(open); i++ {
				open[i].results = open[i].results[:len(open[i].results)/2]
			}
			open = slices.DeleteFunc(open, func(s msg) bool { return s.role == dialect.RoleTool && len(s.results) == 0 })
		}
		out = append(out, open...)
	}
	return out
}

// exchange is an assistant's calls and their results, which may come in another
// order where ids decide whose they are.
func (g *generator) exchange() []msg {
	a := msg{role: dialect.RoleAssistant}
	if g.odds(50, "words") {
		a.text = g.text()
	}
	for range rapid.IntRange(1, 3).Draw(g.T, "calls") {
		a.calls = append(a.calls, g.call())
	}
	a = g.serve(a)
	answered := slices.Clone(a.calls)
	if !g.noIDs && g.odds(30, "shuffle") {
		answered = rapid.Permutation(answered).Draw(g.T, "order")
	}
	results := msg{role: dialect.RoleTool}
	for _, c := range answered {
		results.results = append(results.results, g.result(c))
	}
	return []msg{a, results}
}

// anything is a history that no provider need take: roles in any order, results
// missing, late, twice or of no call, and empty texts.
func (g *generator) anything() []msg {
	var out []msg
	g.model = rapid.SampledFrom([]string{"", "claude-opus-4-8", "claude-sonnet-5"}).Draw(g.T, "model")
	for range rapid.IntRange(1, 40).Draw(g.T, "things") {
		out = append(out, g.thing())
	}
	return out
}

func (g *generator) thing() msg {
	text := g.text()
	if g.odds(15, "nothing") {
		text = g.blank()
	}
	switch rapid.IntRange(0, 9).Draw(g.T, "thing") {
	case 0:
		if g.hasSystem() {
			return msg{role: dialect.RoleSystem, text: text}
		}
		fallthrough
	case 1, 2:
		return msg{role: dialect.RoleUser, text: text}
	case 3, 4:
		return g.split(msg{role: dialect.RoleAssistant, text: text})
	case 5, 6:
		a := msg{role: dialect.RoleAssistant, text: text}
		for range rapid.IntRange(1, 3).Draw(g.T, "calls") {
			a.calls = append(a.calls, g.call())
		}
		g.open = slices.Clone(a.calls)
		g.past = append(g.past, a.calls...)
		return g.split(a)
	}
	s := msg{role: dialect.RoleTool}
	if g.odds(20, "with words") {
		s.role, s.text, s.last = dialect.RoleUser, text, g.odds(50, "last")
	}
	for range rapid.IntRange(1, 3).Draw(g.T, "results") {
		c := g.call() // of no call
		switch {
		case len(g.open) > 0 && g.odds(70, "now"):
			c, g.open = g.open[0], g.open[1:]
		case len(g.past) > 0 && g.odds(80, "late"):
			c = rapid.SampledFrom(g.past).Draw(g.T, "of")
		}
		if !slices.ContainsFunc(s.results, func(r result) bool { return r.id == c.id && c.id != "" }) {
			s.results = append(s.results, g.result(c))
		}
	}
	return s
}

// split is a message some of whose calls that the provider carries out, or their results, are
// missing, or come again.
func (g *generator) split(m msg) msg {
	m = g.serve(m)
	for i := range m.served {
		if g.odds(20, "split") {
			m.served[i].half = rapid.SampledFrom([]string{"", "call", "result"}).Draw(g.T, "half")
		}
	}
	m.cites = m.cites || g.format == events.Anthropic && m.text != "" && g.odds(5, "cites nothing")
	return m
}

// turns spreads a history over turns of a session with a small window.
func (g *generator) turns(history []msg) []object {
	var out []object
	for len(history) > 0 {
		n := rapid.IntRange(1, min(6, len(history))).Draw(g.T, "in turn")
		out = append(out, object{"turn": len(out) + 1, "messages": messages(g.format, history[:n]...)})
		history = history[n:]
	}
	window := rapid.SampledFrom([]int{300, 1000, 4000, 16000}).Draw(g.T, "window")
	for _, turn := range out {
		if g.odds(20, "usage") {
			turn["usage"] = object{"input_tokens": rapid.SampledFrom([]int{1, window / 2, window * 9 / 10, 1 << 40}).Draw(g.T, "input")}
			turn["generation"] = rapid.IntRange(0, 3).Draw(g.T, "generation")
		}
	}
	out[0]["format"] = g.format
	out[0]["model"] = object{"provider": g.provider(), "name": g.model, "context_window": window, "max_output_tokens": window / 5}
	return out
}

func (g *generator) provider() string {
	return rapid.SampledFrom([]string{"openai", "anthropic", "mistral", "vertex"}).Draw(g.T, "provider")
}

// config draws a policy, so that stages run alone and together.
func (g *generator) config() *compaction.Config {
	p := withoutSummaries()
	p.Profile = rapid.SampledFrom([]string{"default", "default", "seed", "current", "blocks"}).Draw(g.T, "profile")
	p.Prune.Enabled = g.odds(70, "prune")
	p.Deduplicate.Enabled = g.odds(70, "deduplicate")
	p.Truncate.Enabled = g.odds(80, "truncate")
	p.Summarize.Enabled = g.odds(60, "summaries")
	p.Summarize.CeilingShare = measure.PPM(rapid.SampledFrom([]int{100_000, 400_000}).Draw(g.T, "ceiling"))
	p.Summarize.Prepare = measure.PPM(rapid.SampledFrom([]int{600_001, 700_000, 800_000}).Draw(g.T, "prepare"))
	p.Deduplicate.Minimum = measure.PPM(rapid.SampledFrom([]int{1, 300_000}).Draw(g.T, "share"))
	p.TriggerMode = rapid.SampledFrom([]string{"ratio", "ratio", "tokens", "buffer"}).Draw(g.T, "trigger")
	p.ThresholdTokens = measure.Tokens(rapid.SampledFrom([]int{100, 1000}).Draw(g.T, "threshold"))
	p.ThresholdCap = measure.PPM(rapid.SampledFrom([]int{300_000, 1_000_000}).Draw(g.T, "cap"))
	m := &p.Prune.Micro
	m.Enabled, m.EveryTurn = g.odds(40, "micro"), g.odds(30, "every turn")
	m.FromMessages, m.KeepMessages = rapid.Int64Range(0, 10).Draw(g.T, "from"), rapid.Int64Range(1, 8).Draw(g.T, "keep")
	m.Tools = []string{"read", "bash"}
	p.ToolOutput.MaxBytes = int64(rapid.SampledFrom([]int{0, 300, 51_200}).Draw(g.T, "output bytes"))
	p.ToolOutput.MaxLines = int64(rapid.SampledFrom([]int{0, 1, 2_000}).Draw(g.T, "output lines"))
	p.ToolOutput.When = rapid.SampledFrom([]string{"compaction", "arrival"}).Draw(g.T, "output when")
	p.Cache.History = rapid.SampledFrom([]measure.Tokens{0, 200, 2000}).Draw(g.T, "history")
	p.ToolOutput.Direction = rapid.SampledFrom([]measure.Direction{measure.KeepTail, measure.KeepHead, measure.KeepBoth, measure.KeepLines}).Draw(g.T, "direction")
	p.Restore.Enabled = g.odds(80, "restore")
	p.Restore.FileTokens = measure.Tokens(rapid.SampledFrom([]int{200, 5_000}).Draw(g.T, "restored"))
	c, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		g.Fatal(err)
	}
	return c
}
