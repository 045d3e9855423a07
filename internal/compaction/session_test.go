package compaction_test

import (
	"bytes"
	"slices"
	"sort"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
)

// msg is one message of a test's conversation, in no dialect: a role's
// text, an assistant's calls, or the results of calls.
type msg struct {
	role    dialect.Role // RoleTool for results
	text    string
	image   bool // of a user
	last    bool // results follow the text, as Anthropic does not want it
	calls   []call
	results []result
	served  []served // of an assistant: before its text
	cites   bool     // the text cites a result of these
	thought bool     // of an assistant that was cut off after it: in Responses alone
}

// served is a call that the provider carries out, and its result.
type served struct {
	call
	text string
	half string // "call" or "result" where the other one is not there
}

// blocks are both, or the one that is there.
func (s served) blocks(call, result object) []object {
	switch s.half {
	case "call":
		return []object{call}
	case "result":
		return []object{result}
	default:
		return []object{call, result}
	}
}

type call struct{ id, tool, args string }

type result struct {
	id, tool, text string
	failed         bool
}

type object map[string]any

// raws writes the message in a dialect.
func (s msg) raws(f events.Format) []codec.Raw {
	switch f {
	case events.Anthropic:
		return raws(s.anthropic())
	case events.OpenAI:
		return raws(s.openai()...)
	case events.Responses:
		return raws(s.responses()...)
	case events.Gemini:
		return raws(s.gemini()...)
	case events.Bedrock:
		return raws(s.bedrock()...)
	case events.AISDK:
		return raws(s.aiSDK()...)
	default:
		return raws(s.neurolink()...)
	}
}

func raws(objects ...object) []codec.Raw {
	var out []codec.Raw
	for _, o := range objects {
		raw, err := codec.Marshal(o)
		if err != nil {
			panic(err)
		}
		out = append(out, raw)
	}
	return out
}

func (s msg) anthropic() object {
	role := s.role
	if role == dialect.RoleTool {
		role = dialect.RoleUser
	}
	if !s.image && len(s.calls)+len(s.results)+len(s.served) == 0 && !s.cites {
		return object{"role": role, "content": s.text}
	}
	blocks, results := []object{}, []object{}
	for _, r := range s.results {
		results = append(results, object{"type": "tool_result", "tool_use_id": r.id, "content": r.text, "is_error": r.failed})
	}
	if !s.last {
		blocks, results = results, nil
	}
	for _, x := range s.served {
		blocks = append(blocks, x.blocks(
			object{"type": "server_tool_use", "id": x.id, "name": x.tool, "input": codec.Raw(x.args)},
			object{"type": x.tool + "_tool_result", "tool_use_id": x.id, "content": []object{{"type": x.tool + "_result", "encrypted_content": x.text}}})...)
	}
	if text := (object{"type": "text", "text": s.text}); s.text != "" {
		if s.cites {
			text["citations"] = []object{{"type": "web_search_result_location", "encrypted_index": "aW5kZXg="}}
		}
		blocks = append(blocks, text)
	}
	if s.image {
		blocks = append(blocks, object{"type": "image", "source": object{"type": "url", "url": "https://example.com/a.png"}})
	}
	for _, c := range s.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": c.id, "name": c.tool, "input": codec.Raw(c.args)})
	}
	return object{"role": role, "content": append(blocks, results...)}
}

func (s msg) openai() []object {
	var out []object
	for _, r := range s.results {
		out = append(out, object{"role": "tool", "tool_call_id": r.id, "content": r.text})
	}
	if s.role == dialect.RoleTool {
		return out
	}
	m := object{"role": s.role, "content": s.text}
	if s.image {
		m["content"] = []object{
			{"type": "text", "text": s.text},
			{"type": "image_url", "image_url": object{"url": "https://example.com/a.png"}},
		}
	}
	var calls []object
	for _, c := range s.calls {
		calls = append(calls, object{"id": c.id, "type": "function", "function": object{"name": c.tool, "arguments": c.args}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return append(out, m)
}

func (s msg) neurolink() []object {
	var out []object
	for _, r := range s.results {
		m := object{"role": "tool_result", "content": r.text, "tool": r.tool, "result": object{"success": !r.failed}}
		if r.id != "" {
			m["toolCallId"] = r.id
		}
		out = append(out, m)
	}
	if s.role != dialect.RoleTool && (s.text != "" || len(s.calls) == 0) {
		out = append(out, object{"role": s.role, "content": s.text})
	}
	for _, c := range s.calls {
		m := object{"role": "tool_call", "content": "", "tool": c.tool, "args": codec.Raw(c.args)}
		if c.id != "" {
			m["toolCallId"] = c.id
		}
		out = append(out, m)
	}
	return out
}

// half stands for half a surrogate pair, which JSON can hold and Go cannot.
const half = "HALF"

// agent publishes turns of one session and keeps what the log would keep.
type agent struct {
	t      fataler
	config *compaction.Config
	ledger *compaction.Ledger
	seq    measure.Seq
	now    int64 // of the log
	texts  map[measure.Seq][]dialect.Message
}

// fataler is a test, or one run of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newAgent(t fataler, c *compaction.Config) *agent {
	return &agent{
		t: t, config: c,
		ledger: compaction.NewLedger(events.Address{Tenant: "default", Session: "s"}),
		texts:  map[measure.Seq][]dialect.Message{},
	}
}

// read measures a payload at the next sequence.
func (a *agent) read(turn object) (*compaction.Turn, error) {
	a.seq++
	return a.readAt(turn, a.seq)
}

func (a *agent) readAt(turn object, seq measure.Seq) (*compaction.Turn, error) {
	data, err := codec.Marshal(turn)
	if err != nil {
		a.t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte(half), []byte(`\ud83d`))
	t, msgs, err := stored.ReadTurn(a.config, a.ledger, data, seq)
	a.texts[seq] = msgs
	if err == nil {
		t.Time = a.now
	}
	return t, err
}

// result reads a summary at the next sequence.
func (a *agent) result(s *events.Summary) *compaction.Result {
	a.seq++
	return a.resultAt(s, a.seq)
}

func (a *agent) resultAt(s *events.Summary, seq measure.Seq) *compaction.Result {
	data, err := codec.Marshal(s)
	if err != nil {
		a.t.Fatal(err)
	}
	r, msgs, err := stored.ReadResult(data, seq)
	if err != nil {
		a.t.Fatal(err)
	}
	a.texts[seq], r.Time = msgs, a.now
	return r
}

// summary is the answer to a job whose message has so many units, as far as that
// is enough for what stands around the text.
func summary(job string, units int64) *events.Summary {
	s := &events.Summary{Header: events.Header{V: events.Version}, Job: job, Text: "s", Record: []events.RecordLine{}}
	if n := int(units) - codec.Units(s.Message().Parts[0].Text); n > 0 {
		s.Text += strings.Repeat("s", n)
	}
	return s
}

// failure is the answer to a job that failed.
func failure(job string) *events.Summary {
	return &events.Summary{Header: events.Header{V: events.Version}, Job: job, Failure: "no_room", Record: []events.RecordLine{}}
}

// publish decides and applies a turn.
func (a *agent) publish(turn object) []compaction.Outcome {
	t, err := a.read(turn)
	if err != nil {
		return compaction.Reject(compaction.Event{Seq: a.seq, Kind: events.KindTurn, Address: a.ledger.Address}, err, a.config)
	}
	outs, next := compaction.Decide(a.ledger, t, a.config)
	next.Install(a.ledger)
	return outs
}

// render writes a view from the texts published.
func (a *agent) render(v *render.View) ([]codec.Raw, error) {
	return renderView(a.t, v, a.texts)
}

// renderView writes a view from texts. Unread texts give the same.
func renderView(t fataler, v *render.View, texts map[measure.Seq][]dialect.Message) ([]codec.Raw, error) {
	out, _, err := render.Render(v, func(s measure.Seq) ([]dialect.Message, error) { return texts[s], nil })
	if err != nil {
		return nil, err
	}
	again, _, err := render.Render(v, func(s measure.Seq) ([]dialect.Message, error) {
		list := slices.Clone(texts[s])
		for i, m := range list {
			if m.Raw != nil {
				list[i] = dialect.Message{Raw: m.Raw}
			}
		}
		return list, nil
	})
	if err != nil || !slices.EqualFunc(out, again, func(a, b codec.Raw) bool { return bytes.Equal(a, b) }) {
		t.Fatalf("of unread texts: %v\n%swant\n%s", err, lines(again), lines(out))
	}
	return out, nil
}

func messages(f events.Format, list ...msg) []codec.Raw {
	out := []codec.Raw{}
	for _, s := range list {
		out = append(out, s.raws(f)...)
	}
	return out
}

// words is a text of so many tokens: the longest, of those that have a head.
func words(r measure.Rate, tokens measure.Tokens, head string) string {
	text := func(n int) string { return head + strings.Repeat("word ", n/5+1)[:n] }
	if !r.Classes {
		text = func(n int) string { return head + strings.Repeat("x", n) }
	}
	return text(sort.Search(8*int(tokens)+8, func(n int) bool { return r.Count(text(n+1)) > tokens }))
}

// withoutSummaries is the default policy in which the last stage runs at the
// trigger, as it does where no summarizer is to be had.
func withoutSummaries() policy.Policy {
	p := policy.Default()
	p.Summarize.Enabled = false
	return p
}
