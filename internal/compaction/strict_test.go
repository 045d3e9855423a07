package compaction_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/transcript"
	"compactd/internal/stored"
	"compactd/internal/testkit/strict"
)

// B11, F4: a strict provider refuses nothing that an agent sends which keeps to the rule of
// docs/format/wire.md: it applies outcomes at once, late or never, its history comes from
// a worker again, its session is compacted and rewound, system prompt, tools and model change,
// and the model thinks.
func TestStrictProvider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		g.format = rapid.SampledFrom([]events.Format{events.Anthropic, events.OpenAI, events.Bedrock}).Draw(t, "dialect")
		g.noIDs = false
		window := rapid.SampledFrom([]int{1000, 4000, 16000}).Draw(t, "window")
		c := newCaller(t, g.format, g.config(), window, g.odds)
		var script []msg
		for range 3 {
			script = append(script, g.closed()...)
		}
		for _, m := range script {
			for _, raw := range messages(g.format, m) {
				c.next(m.role == dialect.RoleAssistant, bytes.ReplaceAll(raw, []byte(half), []byte(`\ufffd`)))
			}
		}
	})
}

// The same with the messages of real agents, at a small window.
func TestStrictProviderOfRealSessions(t *testing.T) { strictProvider(t, 8_000) }

func strictProvider(t *testing.T, windows ...int) {
	var sessions, calls, generations, refused int
	for _, s := range thinkingSessions(t) {
		if s.Format == events.NeuroLink {
			continue
		}
		sessions++
		for _, window := range windows {
			c := newCaller(t, s.Format, defaultConfig(t), window, oddsOf(s, window))
			for _, turn := range s.Turns {
				for _, raw := range turn.Messages {
					var m struct{ Role string }
					if err := json.Unmarshal(raw, &m); err != nil {
						t.Fatal(err)
					}
					if s.Format == events.Anthropic {
						raw = c.answered(completed(t, raw))
					}
					c.next(m.Role == "assistant", raw)
				}
			}
			calls, generations, refused = calls+c.calls, generations+int(c.ledger.Generation()), refused+c.refused
		}
	}
	t.Logf("reliability B11 test=TestStrictProviderOfRealSessions sessions=%d calls=%d generations=%d refused=%d", sessions, calls, generations, refused)
	if generations < sessions {
		t.Errorf("%d compactions of %d sessions", generations, sessions)
	}
}

// oddsOf draws from the name of a session, in place of rapid.
func oddsOf(s transcript.Session, window int) func(int, string) bool {
	n := 0
	return func(percent int, label string) bool {
		n++
		h := fnv.New32a()
		fmt.Fprintf(h, "%s %d %s %d", s.Name, window, label, n)
		return int(h.Sum32()%100) < percent
	}
}

// caller is an agent that calls a strict provider.
type caller struct {
	*agent
	format events.Format
	window int
	odds   func(percent int, label string) bool

	provider, model string
	system, tools   string

	pending []codec.Raw // since the last answer
	base    []codec.Raw // the history of the last outcome it applied
	from    int64       // turns that base contains
	gen     int64       // of base
	bound   bool        // its model's thinking is
	since   int64       // turns up to this one lost their thinking with a new prompt
	turns   []calledTurn
	inbox   []outcome
	notify  map[string]any // settings of the next turn

	open           []string // calls without a result
	calls, refused int
}

type calledTurn struct {
	messages   []codec.Raw
	generation int64
}

func newCaller(t fataler, f events.Format, c *compaction.Config, window int, odds func(int, string) bool) *caller {
	a := &caller{agent: newAgent(t, c), format: f, window: window, odds: odds, system: "You help.", tools: `[{"name":"t0"}]`, provider: string(f)}
	if f == events.OpenAI {
		switch {
		case odds(30, "openrouter"):
			a.provider = "openrouter"
		case odds(20, "deepseek"):
			a.provider = "deepseek"
		}
	}
	a.configure()
	return a
}

// configure draws the model; what changes goes with the next turn.
func (a *caller) configure() {
	bound := a.bound
	a.model = "gpt-6"
	if a.provider == "deepseek" {
		a.model = "deepseek-v4-pro"
	}
	if a.thinks() {
		a.model = "claude-opus-5"
		if a.odds(80, "bound") {
			a.model = "claude-opus-5-5"
		}
	}
	if a.bound = a.model == "claude-opus-5-5"; a.bound && !bound {
		a.since = int64(len(a.turns))
	}
	a.notify = object{
		"format": a.format, "system": a.system, "tools": codec.Raw(a.tools),
		"model": object{"provider": a.provider, "name": a.model, "context_window": a.window, "max_output_tokens": a.window / 5},
	}
}

// next takes the next message of a conversation. For that of an assistant the provider is
// called with all before it.
func (a *caller) next(answer bool, raw codec.Raw) {
	if !answer {
		a.pending = append(a.pending, raw)
		return
	}
	call := strict.Call{Provider: a.provider, Model: a.model, System: json.RawMessage(fmt.Sprintf("%q", a.system)), Tools: json.RawMessage(a.tools)}
	for _, m := range slices.Concat(a.history(), a.pending) {
		call.Messages = append(call.Messages, json.RawMessage(m))
	}
	a.calls++
	if refusals := strict.Refuse(call); len(refusals) > 0 {
		a.refused++
		a.t.Fatalf("generation %d, %v in\n%s", a.gen, refusals, lines(slices.Concat(a.history(), a.pending)))
	}
	switch {
	case a.thinks():
		raw = a.thought(call, raw)
	case a.provider == "deepseek":
		raw = withMember(a.t, raw, "reasoning_content", `"I think."`)
	}
	a.turns = append(a.turns, calledTurn{append(slices.Clone(a.pending), raw), a.gen})
	a.pending = nil
	turn := object{"turn": len(a.turns), "generation": a.gen, "messages": a.turns[len(a.turns)-1].messages}
	maps.Copy(turn, a.notify)
	a.notify = nil
	a.take(a.publish(turn))
	a.between()
}

// answered is a message with results for the calls before it that were interrupted, as an agent
// adds them before its provider refuses them.
func (a *caller) answered(raw codec.Raw) codec.Raw {
	var m struct {
		Role    string
		Content []struct {
			Type, ID  string
			ToolUseID string `json:"tool_use_id"`
		}
	}
	var in struct{ Content []codec.Raw }
	if json.Unmarshal(raw, &m) != nil || json.Unmarshal(raw, &in) != nil {
		a.t.Fatal("a message is not as it was recorded")
	}
	for _, b := range m.Content {
		switch b.Type {
		case "tool_use":
			a.open = append(a.open, b.ID)
		case "tool_result":
			a.open = slices.DeleteFunc(a.open, func(id string) bool { return id == b.ToolUseID })
		}
	}
	if m.Role == "assistant" || len(a.open) == 0 {
		return raw
	}
	var results []codec.Raw
	for _, id := range a.open {
		results = append(results, raws(object{"type": "tool_result", "tool_use_id": id, "content": "Interrupted."})...)
	}
	a.open = nil
	return raws(object{"role": "user", "content": append(results, in.Content...)})[0]
}

// thinks reports whether the provider serves a model that thinks.
func (a *caller) thinks() bool { return a.provider != "openai" && a.provider != "deepseek" }

// thought makes the thinking of a recorded answer that of the call, and adds some to an answer
// without any.
func (a *caller) thought(c strict.Call, raw codec.Raw) codec.Raw {
	think := func() json.RawMessage {
		if a.odds(20, "redacted") {
			return strict.Redacted(c)
		}
		return strict.Think(c, fmt.Sprintf("I think of call %d.", a.calls))
	}
	if a.provider == "openrouter" {
		return withMember(a.t, raw, "reasoning_details", "["+string(think())+"]")
	}
	var m struct {
		Content codec.Raw `json:"content"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		a.t.Fatal(err)
	}
	var blocks []json.RawMessage
	if m.Content.Kind() == '"' {
		blocks = []json.RawMessage{json.RawMessage(raws(object{"type": "text", "text": m.Content})[0])}
	} else if err := json.Unmarshal(m.Content, &blocks); err != nil {
		a.t.Fatal(err)
	}
	rest := slices.DeleteFunc(blocks, isThinking)
	switch {
	case len(rest) == 0:
		rest = []json.RawMessage{json.RawMessage(`{"type":"text","text":"Done."}`)}
		if a.format == events.Bedrock {
			rest = []json.RawMessage{json.RawMessage(`{"text":"Done."}`)}
		}
		fallthrough
	case len(rest) < len(blocks) || a.odds(50, "thinks"):
		rest = slices.Insert(rest, 0, think())
	}
	return raws(object{"role": "assistant", "content": rest})[0]
}

func isThinking(raw json.RawMessage) bool {
	var b struct {
		Type     string
		Converse json.RawMessage `json:"reasoningContent"`
	}
	return json.Unmarshal(raw, &b) == nil && (b.Type == "thinking" || b.Type == "redacted_thinking" || b.Converse != nil)
}

// withMember adds a member to a message, "" takes it away.
func withMember(t fataler, raw codec.Raw, name, value string) codec.Raw {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	if delete(m, name); value != "" {
		m[name] = json.RawMessage(value)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// history is what the agent holds, by the rule of docs/format/wire.md: turns that were made
// under an older generation, or before the prompt changed, lose their thinking.
func (a *caller) history() []codec.Raw {
	strip := func(in []codec.Raw, yes bool) []codec.Raw {
		if !yes {
			return in
		}
		out := make([]codec.Raw, 0, len(in))
		for _, raw := range in {
			if m := a.withoutThinking(raw); m != nil {
				out = append(out, m)
			}
		}
		return out
	}
	out := slices.Clone(strip(a.base, a.bound && a.since >= a.from && a.since > 0))
	for i, turn := range a.turns[a.from:] {
		n := a.from + int64(i) + 1
		out = append(out, strip(turn.messages, a.bound && (turn.generation != a.gen || n <= a.since))...)
	}
	return out
}

func (a *caller) withoutThinking(raw codec.Raw) codec.Raw {
	if bytes.Contains(raw, []byte("reasoning_details")) {
		return withMember(a.t, raw, "reasoning_details", "")
	}
	var m struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &m) != nil || !slices.ContainsFunc(m.Content, isThinking) {
		return raw
	}
	return raws(object{"role": m.Role, "content": slices.DeleteFunc(m.Content, isThinking)})[0]
}

// between is what happens between two calls.
func (a *caller) between() {
	switch {
	case a.odds(8, "compact"):
		a.request(events.KindCompact, object{})
	case a.odds(3, "rewind"):
		a.request(events.KindRewind, object{"steps": 1})
	case a.odds(3, "system"):
		a.system += " More."
		a.since = int64(len(a.turns))
		a.configure()
	case a.odds(3, "model"):
		a.configure()
	case a.odds(3, "tools"):
		a.tools = fmt.Sprintf(`[{"name":"t%d"}]`, a.calls)
		a.since = int64(len(a.turns))
		a.configure()
	}
	switch n := len(a.inbox); {
	case n > 0 && a.odds(40, "apply"):
		o := a.inbox[n-1]
		a.inbox = nil
		if o.Generation > a.gen {
			a.base, a.from, a.gen = o.messages, o.Through.Turn, o.Generation
		}
	case a.odds(5, "resume"): // from what a worker has
		view := a.ledger.View()
		raw, err := a.render(view)
		if err != nil {
			a.t.Fatal(err)
		}
		a.base, a.from, a.gen, a.inbox = raw, int64(len(a.turns)), a.ledger.Generation(), nil
	}
}

func (a *caller) request(k events.Kind, body object) {
	a.seq++
	r, err := stored.ReadRequest(k, raws(body)[0], a.seq)
	if err != nil {
		a.t.Fatal(err)
	}
	outs, next := compaction.Decide(a.ledger, r, a.config)
	next.Install(a.ledger)
	a.take(outs)
}

// take keeps compactions for later; the summarizer answers most of the time.
func (a *caller) take(outs []compaction.Outcome) {
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Compacted:
			if b.Compacted {
				raw, err := a.render(o.View)
				if err != nil {
					a.t.Fatal(err)
				}
				a.inbox = append(a.inbox, outcome{messages: raw, Compacted: b})
			}
		case *events.Job:
			if a.odds(70, "summary") {
				outs, next := compaction.Decide(a.ledger, a.result(summary(b.ID, b.MaxUnits/2)), a.config)
				next.Install(a.ledger)
				a.take(outs)
			}
		}
	}
}
