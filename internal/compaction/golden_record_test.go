package compaction_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// recorder makes a golden log: it publishes what agents, summarizers and workers
// would, and writes down what is emitted.
type recorder struct {
	*player
	g     *golden
	now   int64
	at    *session
	jobs  map[events.Address][]*events.Job // without a result so far
	calls int
}

// session is one agent of the log.
type session struct {
	events.Address
	format events.Format
	turn   int // its last
}

// newGolden records the golden log of the current rules.
func newGolden(t *testing.T) *golden {
	t.Helper()
	g := &golden{rules: compaction.RulesVersion}
	c := goldenPolicies(t)
	g.config = c.Text()
	r := &recorder{player: newPlayer(t, c), g: g, now: 1_750_000_000_000, jobs: map[events.Address][]*events.Job{}}
	coder := &session{Address: events.Address{Tenant: "default", Session: "coder"}, format: events.Anthropic}
	helper := &session{Address: events.Address{Tenant: "default", Session: "helper"}, format: events.OpenAI}
	loop := &session{Address: events.Address{Tenant: "reference", Session: "loop"}, format: events.NeuroLink}
	shell := &session{Address: events.Address{Tenant: "claude", Session: "shell"}, format: events.Anthropic}
	reader := &session{Address: events.Address{Tenant: "default", Session: "reader"}, format: events.OpenAI}
	saver := &session{Address: events.Address{Tenant: "saver", Session: "saver"}, format: events.Anthropic}
	r.begin(coder, "anthropic", 4000)
	r.begin(helper, "openai", 4000)
	r.begin(loop, "google-ai", 4000)
	r.begin(shell, "anthropic", 6000)
	r.begin(reader, "mistral", 8000)
	r.begin(saver, "anthropic", 40_000)
	for i := range 15 { // all of them at once
		for _, s := range []*session{coder, helper, loop, shell, reader, saver} {
			r.at = s
			r.round(i)
			if i%3 == 2 {
				r.answer(false)
			}
		}
	}
	r.requested(coder)
	r.changed(helper)
	r.broken(loop)
	r.cleared(shell)
	r.large(reader)
	r.erased()
	r.refused()
	r.restored()
	return g
}

// goldenPolicies has a tenant for every preset, and one whose calls soon cost too much.
func goldenPolicies(t *testing.T) *compaction.Config {
	t.Helper()
	tenants := map[string]policy.Policy{}
	for name, preset := range map[string]string{"reference": "neurolink", "claude": "claude"} {
		p, ok := policy.Preset(preset)
		if !ok {
			t.Fatalf("no preset %s", preset)
		}
		p.Prune.MinimumTokens, p.Prune.ProtectTokens = 200, 1000
		p.Prune.Micro.Tools = []string{"read", "bash"}
		p.Cache.Seconds = 0
		tenants[name] = p
	}
	saver := policy.Default()
	saver.Cache.History, saver.Prune.ProtectTokens = 400, 100
	tenants["saver"] = saver
	c, err := defaultConfig(t).WithTenants(tenants)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publish puts an event of the session at hand into the log.
func (r *recorder) publish(kind events.Kind, payload string) {
	r.now += 20_000
	e := logged{
		Seq: measure.Seq(len(r.g.log) + 1), Time: r.now, Kind: kind,
		Tenant: r.at.Tenant, Session: r.at.Session, Payload: payload,
	}
	outs, lines := r.decide(e)
	r.g.log, r.g.emitted = append(r.g.log, e), append(r.g.emitted, lines...)
	for _, o := range outs {
		if job, ok := o.Body.(*events.Job); ok {
			r.jobs[r.at.Address] = append(r.jobs[r.at.Address], job)
		}
	}
}

func (r *recorder) send(kind events.Kind, body object) {
	r.publish(kind, strings.ReplaceAll(string(raws(body)[0]), half, `\ud83d`))
}

// turn publishes the next turn.
func (r *recorder) turn(fields object, list ...msg) {
	r.at.turn++
	body := object{"turn": r.at.turn, "messages": messages(r.at.format, list...)}
	maps.Copy(body, fields)
	r.send(events.KindTurn, body)
}

func (r *recorder) begin(s *session, provider string, window int) {
	r.at = s
	r.turn(object{
		"format": s.format, "system": "You are brief.", "tools": []object{{"name": "read"}, {"name": "bash"}},
		"model": object{"provider": provider, "name": "m-1", "context_window": window, "max_output_tokens": window / 5},
	}, msg{role: dialect.RoleUser, text: "Make the parser of policies strict, and keep the tests green. " + half},
		msg{role: dialect.RoleAssistant, text: "I read it first."})
}

// prose is a text of n sentences.
func prose(i, n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, "Line %d.%d says that the %s key is read once, 各キーは一度だけ.\n", i, k, []string{"first", "second", "last"}[(i+k)%3])
	}
	return b.String()
}

// call names one of few files, so that files are read again.
func (r *recorder) call(tool string, i int) call {
	r.calls++
	return call{id: fmt.Sprintf("call_%d", r.calls), tool: tool, args: fmt.Sprintf(`{"path":"src/%d.go"}`, i%4)}
}

// round is a question, parallel calls that are open at the end of their turn,
// their results and an answer.
func (r *recorder) round(i int) {
	read, run := r.call([]string{"read", "read", "write"}[i%3], i), r.call("bash", i+1)
	r.turn(object{}, msg{role: dialect.RoleUser, text: prose(i, 1), image: i == 5 && r.at.format != events.NeuroLink},
		msg{role: dialect.RoleAssistant, text: "Both.", calls: []call{read, run}})
	fields := object{}
	if l := r.ledger(r.at.Address); i%4 == 1 { // what a provider would count, at times for the view before
		input, old := l.Budget().EstimatedInput*int64(92+i)/100, l.Generation() > 0 && i%8 == 5
		fields["usage"], fields["generation"] = object{"input_tokens": input, "output_tokens": 60}, l.Generation()
		if old {
			fields["usage"], fields["generation"] = object{"input_tokens": input + 1500, "output_tokens": 60}, l.Generation()-1
		}
	}
	r.turn(fields, msg{role: dialect.RoleTool, results: []result{
		{id: run.id, tool: run.tool, text: prose(i, 2), failed: i%5 == 4},
		{id: read.id, tool: read.tool, text: prose(i%4, 4)},
	}}, msg{role: dialect.RoleAssistant, text: prose(i, 1)})
}

// answer publishes a result of every open job of the session.
func (r *recorder) answer(fails bool) {
	open := r.jobs[r.at.Address]
	r.jobs[r.at.Address] = nil
	for _, job := range open {
		r.result(job, fails)
	}
}

func (r *recorder) result(job *events.Job, fails bool) {
	s := summary(job.ID, job.MaxUnits*2/3)
	s.Text = "The parser became strict. " + s.Text[:min(len(s.Text), 300)]
	s.Record = []events.RecordLine{{Kind: events.RecordPathRead, Text: "src/1.go", Turns: [2]int64{1, 4}}}
	s.Spare = []events.SpareLine{{Position: job.From, Text: "src/2.go has the keys"}, {Position: job.From, Text: "src/3.go has none"}}
	if fails {
		s = failure(job.ID)
	}
	data, err := codec.Marshal(s)
	if err != nil {
		r.t.Fatal(err)
	}
	r.publish(events.KindSummary, string(data))
}

// requested has a session compacted, rewound and refused by its provider: B13, B21, D4.
func (r *recorder) requested(s *session) {
	r.at = s
	r.answer(false)
	r.send(events.KindCompact, object{"id": "ask-1", "focus": "the parser"})
	r.answer(false)
	r.send(events.KindCompact, object{"id": "ask-2"})
	r.send(events.KindRewind, object{"steps": 1})
	r.send(events.KindRewind, object{"generation": 0})
	r.send(events.KindRewind, object{"generation": 0})
	r.send(events.KindRewind, object{"generation": 99})
	r.send(events.KindCompact, object{"id": "ask-3", "policy": object{"summarize": object{"enabled": false}}})
	for i := range 6 {
		r.round(20 + i)
	}
	r.send(events.KindCompact, object{"id": "ask-4"})
	r.send(events.KindCompact, object{"id": "ask-5", "model": object{"provider": "openai", "context_window": 3000, "max_output_tokens": 600}})
	r.answer(true)
	r.send(events.KindCompact, object{"id": "ask-6"})
	r.answer(true)
	for i := range 4 {
		r.round(30 + i)
	}
	for _, text := range []string{"prompt is too long: 5201 tokens > 4000 maximum", "prompt is too long", "invalid x-api-key"} {
		r.send(events.KindOverflow, object{"error": text, "status": 400})
	}
	r.answer(false)
	r.think()
}

// think is a turn whose model reasoned before it called.
func (r *recorder) think() {
	if r.at.format != events.Anthropic {
		r.t.Fatal("only Anthropic thinks in blocks")
	}
	for i := range 5 {
		c := r.call("read", i)
		r.at.turn++
		r.publish(events.KindTurn, fmt.Sprintf(`{"turn":%d,"messages":[{"role":"user","content":%q},`+
			`{"role":"assistant","content":[{"type":"thinking","thinking":%q,"signature":"c2lnbmVk"},{"type":"tool_use","id":%q,"name":"read","input":%s}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]},{"role":"assistant","content":"Done."}]}`,
			r.at.turn, "Go on.", prose(i, 2), c.id, c.args, c.id, prose(i, 3)))
	}
}

// changed retracts turns, loses some, and changes model and policy: E8.
func (r *recorder) changed(s *session) {
	r.at = s
	answer := msg{role: dialect.RoleAssistant, text: "Yes."}
	r.turn(object{"turn": s.turn}, answer)                                                    // a conflict
	r.turn(object{"turn": s.turn + 1}, msg{role: dialect.RoleUser, text: "Behind a gap."})    // parked
	r.turn(object{"turn": s.turn - 1}, msg{role: dialect.RoleUser, text: "The missing one."}) // releases it
	s.turn--
	r.turn(object{"turn": s.turn - 3, "replaces_from": s.turn - 3, "id": "regenerate"}, msg{role: dialect.RoleUser, text: prose(1, 1)}, answer)
	s.turn -= 4
	r.turn(object{"format": events.Anthropic}, answer)
	s.turn--
	r.turn(object{"usage": object{"tokens": 12}}, msg{role: dialect.RoleUser, text: "Usage of no known shape."}, answer)
	r.turn(object{"policy": object{"threshold": 0.9}}, msg{role: dialect.RoleUser, text: "Later."}, answer)
	r.turn(object{"policy": object{"threshold": 7}}, answer)
	s.turn--
	r.turn(object{"model": object{"provider": "openai", "name": "m-2", "context_window": 2200, "max_output_tokens": 400}},
		msg{role: dialect.RoleUser, text: "A smaller model."}, answer)
	for i := range 4 {
		r.round(40 + i)
		r.answer(i%2 == 0)
	}
	r.turn(object{"turn": 1, "replaces_from": 1, "id": "adopt"}, msg{role: dialect.RoleUser, text: prose(2, 3)}, msg{role: dialect.RoleAssistant, text: prose(3, 2)})
	s.turn = 1
	for i := range 5 {
		r.round(50 + i)
	}
	r.send(events.KindEnd, object{})
	r.send(events.KindCompact, object{})
	s.turn = 0
	r.begin(s, "openai", 1200)
}

// broken has calls without results, results late, twice, and of no call: B10.
func (r *recorder) broken(s *session) {
	r.at = s
	for i := range 5 {
		a, b, c := r.call("read", i), r.call("bash", i), r.call("read", i+1)
		r.turn(object{}, msg{role: dialect.RoleUser, text: prose(i, 1)}, msg{role: dialect.RoleAssistant, text: "All.", calls: []call{a, b, c}},
			msg{role: dialect.RoleTool, results: []result{{id: a.id, tool: a.tool, text: prose(i, 3)}}})
		r.turn(object{}, msg{role: dialect.RoleUser, text: "Hurry."}, msg{role: dialect.RoleAssistant, text: "Yes."},
			msg{role: dialect.RoleTool, results: []result{{id: b.id, tool: b.tool, text: prose(i, 3)}}},
			msg{role: dialect.RoleTool, results: []result{{id: a.id, tool: a.tool, text: prose(i, 3)}}},
			msg{role: dialect.RoleTool, results: []result{{id: a.id, tool: a.tool, text: "again"}}},
			msg{role: dialect.RoleTool, results: []result{{id: "nobody", tool: "read", text: prose(i, 1)}}})
		r.answer(true)
	}
	r.turn(object{}, msg{role: dialect.RoleAssistant, text: "Enough."})
}

// cleared clears old results at every turn, and after an idle period: B4.
func (r *recorder) cleared(s *session) {
	r.at = s
	r.turn(object{"policy": object{"prune": object{"to_target": false, "protect_tokens": 40000, "micro": object{"every_turn": true}}}}, msg{role: dialect.RoleUser, text: "Clear."})
	for i := range 3 {
		r.round(60 + i)
	}
	r.turn(object{"policy": object{"prune": object{"to_target": false, "protect_tokens": 40000, "micro": object{"every_turn": false, "idle_keep": 1}}}}, msg{role: dialect.RoleUser, text: "Rest."})
	r.round(63)
	r.round(64)
	r.now += 2 * 60 * 60 * 1000
	since := object{"since": r.ledger(r.at.Address).LastSeq()}
	r.send(events.KindIdle, since)
	r.send(events.KindIdle, since)
	r.send(events.KindEnd, object{})
}

// large fills the window at once: B8, B9, B14, B16.
func (r *recorder) large(s *session) {
	r.at = s
	r.answer(false)
	r.turn(object{"policy": object{"tool_output": object{"max_bytes": 900}}}, msg{role: dialect.RoleUser, text: "Long outputs come."})
	for i := range 3 {
		c := r.call("read", i)
		r.turn(object{}, msg{role: dialect.RoleUser, text: prose(i, 1)}, msg{role: dialect.RoleAssistant, text: "Look.", calls: []call{c}},
			msg{role: dialect.RoleTool, results: []result{{id: c.id, tool: c.tool, text: prose(i, 50)}}})
		r.turn(object{}, msg{role: dialect.RoleAssistant, text: "Seen."})
	}
	last := r.call("read", 3)
	r.turn(object{"policy": object{"tool_output": object{"when": "arrival", "max_bytes": 300}}}, msg{role: dialect.RoleUser, text: "Only the end."},
		msg{role: dialect.RoleAssistant, text: "Look.", calls: []call{last}},
		msg{role: dialect.RoleTool, results: []result{{id: last.id, tool: last.tool, text: prose(3, 9)}}})
	r.turn(object{"policy": object{"tool_output": object{"max_bytes": 900}}}, msg{role: dialect.RoleAssistant, text: "Seen."})
	job := r.jobs[s.Address]
	r.answer(false)
	r.round(70)
	if len(job) > 0 {
		r.result(job[0], false) // its second result
	}
	s.turn = 0
	r.at = &session{Address: events.Address{Tenant: "default", Session: "short"}, format: events.OpenAI}
	r.begin(r.at, "openai", 1500)
	r.turn(object{}, msg{role: dialect.RoleUser, text: prose(1, 70)})
	r.send(events.KindCompact, object{})
}

// restored hides all that a summary covers, so that there is room for files: B17.
func (r *recorder) restored() {
	r.at = &session{Address: events.Address{Tenant: "default", Session: "restored"}, format: events.OpenAI}
	r.begin(r.at, "openai", 16000)
	r.turn(object{"policy": object{"prune": object{"enabled": false}, "deduplicate": object{"enabled": false}}}, msg{role: dialect.RoleUser, text: "Go on."})
	for i := range 8 {
		r.round(i)
	}
	r.send(events.KindCompact, object{"id": "ask-7"}) // which leaves less than the target has room for
	r.answer(false)
}

// erased publishes a session.forget while a job is open, later turns as if nothing had
// happened, and a first turn again.
func (r *recorder) erased() {
	s := &session{Address: events.Address{Tenant: "default", Session: "forgotten"}, format: events.OpenAI}
	r.at = s
	r.begin(s, "openai", 1500)
	for i := range 6 {
		r.round(80 + i)
	}
	r.send(events.KindCompact, object{})
	r.send(events.KindForget, object{})
	r.round(90)
	r.answer(false)
	r.turn(object{"turn": 1, "replaces_from": 1, "id": "again"}, msg{role: dialect.RoleUser, text: prose(2, 3)}, msg{role: dialect.RoleAssistant, text: prose(3, 2)})
	s.turn = 1
	r.round(91)
}

// refused are events that are no use.
func (r *recorder) refused() {
	r.at = &session{Address: events.Address{Tenant: "default", Session: "stranger"}, format: events.OpenAI}
	for _, payload := range []string{``, `{`, `{"messages":[]} {}`, `{"messages":{}}`, `{"v":9,"messages":[]}`, `{"messages":[],"messages":[]}`, `{"messages":[{"role":"user","content":{}}]}`} {
		r.publish(events.KindTurn, payload)
	}
	r.publish(events.KindSummary, `{"job":""}`)
	r.publish(events.KindSummary, `{"job":"nobody's","text":"late"}`)
	r.publish(events.KindRewind, `{"steps":1,"generation":1}`)
	r.publish(events.KindOverflow, `{}`)
	r.publish(events.KindForget, `{"through":7}`)
	r.publish(events.KindForget, `{}`)
	r.publish(events.KindIdle, `{}`)
	r.publish(events.KindBranch, `{"branch":""}`)
	r.publish(events.KindBranch, `{"branch":"another"}`)
}
