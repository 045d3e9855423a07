package compaction_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/testkit/strict"
)

// Every difference between what was published and what is returned is listed: the messages
// in view that no edit names are returned byte for byte, in their order.
func TestEveryChangeIsListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		history := g.anything()
		if g.odds(50, "proper") {
			history = g.proper()
		}
		a := newAgent(t, g.config())
		seen := named{}
		for _, turn := range g.turns(history) {
			for _, o := range a.publish(turn) {
				if c, ok := o.Body.(*events.Compacted); ok && o.View != nil {
					_, changes, err := render.Render(o.View, func(s measure.Seq) ([]dialect.Message, error) { return a.texts[s], nil })
					if err != nil {
						t.Fatal(err)
					}
					raw, err := a.render(o.View)
					if err != nil {
						t.Fatal(err)
					}
					seen.add(c.Edits)
					unlisted(t, a, o.View, seen.with(c.Edits, changes), raw)
				}
			}
		}
	})
}

// named are messages that edits name: those of all generations, since a clear is listed once.
type named map[events.Position]bool

func (n named) add(edits []events.Edit) {
	for _, e := range edits {
		if !e.Op.Repairs() {
			n[measure.MessageOf(e.Position)] = true
		}
	}
}

// with returns the messages that repairs of this generation name as well.
func (n named) with(lists ...[]events.Edit) func(measure.Entry) bool {
	repairs, unbound := named{}, []events.Edit{}
	for _, list := range lists {
		for _, e := range list {
			switch {
			case e.Op == events.OpUnbind:
				unbound = append(unbound, e)
			case e.Op.Repairs():
				repairs[measure.MessageOf(e.Position)] = true
				if e.Op == events.OpJoin && e.To != nil {
					repairs[*e.To] = true
				}
			}
		}
	}
	return func(e measure.Entry) bool {
		at := measure.MessageOf(e.Position())
		for _, u := range unbound {
			to := u.Position
			if u.To != nil {
				to = *u.To
			}
			if u.Compare(at) <= 0 && at.Compare(to) <= 0 {
				return true
			}
		}
		return n[at] || repairs[at]
	}
}

// unlisted fails if a message that no edit names is not returned as it came.
func unlisted(t *rapid.T, a *agent, v *render.View, listed func(measure.Entry) bool, raw []codec.Raw) {
	t.Helper()
	next := 0
	for i := range v.Entries {
		e := v.Entries[i]
		if e.Kind >= measure.KindTruncation || i > 0 && e.SameMessage(&v.Entries[i-1]) || listed(e) {
			continue
		}
		want := a.texts[e.Seq][e.Index].Raw
		for next < len(raw) && !bytes.Equal(raw[next], want) {
			next++
		}
		if next == len(raw) {
			t.Fatalf("%s: turn %d, message %d is not returned as it came, and no edit names it:\n%s\nhistory:\n%s", v.Format, e.Turn, e.Index, want, lines(raw))
		}
		next++
	}
}

// A call that compactd makes, for a result whose call never came, has reasoning where the provider
// demands it; elsewhere it has none. So has a call that the agent sent without, beside others of a
// model that thinks.
func TestMadeCallReasons(t *testing.T) {
	for provider, model := range map[string]string{"deepseek": "m", "moonshotai": "m", "openrouter": "moonshotai/kimi-k2-thinking", "openai": "m"} {
		a := newAgent(t, defaultConfig(t))
		a.publish(object{
			"turn": 1, "model": object{"provider": provider, "name": model},
			"messages": []object{{"role": "user", "content": "go on"}, {"role": "tool", "tool_call_id": "c1", "content": "a result"}, {"role": "assistant", "content": "done"}},
		})
		view := a.ledger.View()
		raw, err := a.render(view)
		if err != nil {
			t.Fatal(err)
		}
		if refused := strict.Refuse(strict.Call{Provider: provider, Model: model, Messages: jsonOf(raw)}); len(refused) > 0 {
			t.Errorf("%s: %v in\n%s", provider, refused, lines(raw))
		}
		if has := strings.Contains(lines(raw), "reasoning_content"); has != (provider != "openai") {
			t.Errorf("%s: reasoning %t in\n%s", provider, has, lines(raw))
		}

		sent := raws(
			object{"role": "user", "content": "again"},
			object{"role": "assistant", "content": nil, "reasoning_content": "I look.", "tool_calls": []object{{"id": "c2", "type": "function", "function": object{"name": "n", "arguments": "{}"}}}},
			object{"role": "tool", "tool_call_id": "c2", "content": "x"},
			object{"role": "assistant", "content": nil, "tool_calls": []object{{"id": "c3", "type": "function", "function": object{"name": "n", "arguments": "{}"}}}},
			object{"role": "tool", "tool_call_id": "c3", "content": "x"},
		)
		a.publish(object{"turn": 2, "messages": sent})
		view = a.ledger.View()
		if raw, err = a.render(view); err != nil || len(raw) < len(sent) {
			t.Fatalf("%s: %v, the agent's own calls came back as\n%s", provider, err, lines(raw))
		}
		tail := raw[len(raw)-len(sent):]
		if has := strings.Contains(string(tail[3]), `"reasoning_content":" "`); has != (provider != "openai") {
			t.Errorf("%s: reasoning %t in %s", provider, has, tail[3])
		}
		if refused := strict.Refuse(strict.Call{Provider: provider, Model: model, Messages: jsonOf(raw)}); len(refused) > 0 {
			t.Errorf("%s: %v in\n%s", provider, refused, lines(raw))
		}
		if tail[3] = sent[3]; lines(tail) != lines(sent) {
			t.Errorf("%s: the agent's own messages came back as\n%s", provider, lines(tail))
		}
	}
}

// B11: where roles must alternate, a history in which they do still does so when it is
// compacted, with a placeholder in front, in each dialect, and each joined message is listed.
func TestRolesAlternate(t *testing.T) {
	for _, format := range events.Formats() {
		for _, provider := range []string{"openai", "mistral", "perplexity", "vllm", "ollama"} {
			a := newAgent(t, defaultConfig(t))
			joins, generations := 0, 0
			for n := 1; n <= 40; n++ {
				turn := object{
					"turn": n, "policy": object{"summarize": object{"enabled": false}},
					"messages": messages(format, msg{role: dialect.RoleUser, text: strings.Repeat("a question of some length ", 30)}, msg{role: dialect.RoleAssistant, text: strings.Repeat("an answer ", 40)}),
				}
				if n == 1 {
					turn["format"], turn["model"] = format, object{"provider": provider, "name": "m", "context_window": 6000, "max_output_tokens": 1000}
				}
				for _, o := range a.publish(turn) {
					if o.View == nil {
						continue
					}
					raw, changes, err := render.Render(o.View, func(s measure.Seq) ([]dialect.Message, error) { return a.texts[s], nil })
					if err != nil {
						t.Fatal(err)
					}
					generations++
					for _, e := range changes {
						if e.Op == events.OpJoin {
							joins++
						}
					}
					next := messages(format, msg{role: dialect.RoleUser, text: "next"})
					if bad := strict.Refuse(strict.Call{Format: string(format), Provider: provider, Model: "m", Messages: jsonOf(append(raw, next...))}); len(bad) > 0 {
						t.Fatalf("%s, %s: %v in\n%s", format, provider, bad, lines(raw))
					}
				}
			}
			joined := format == events.Anthropic || format == events.Bedrock || provider != "openai" && format != events.Gemini
			if generations == 0 || joined != (joins > 0) {
				t.Errorf("%s, %s: %d generations, %d joins", format, provider, generations, joins)
			}
		}
	}
}

// B11: neighbours of a role become one message whatever members they have beside their content, in
// each dialect. Of both the words stay, and each member of which one of them has any.
func TestJoinedMembers(t *testing.T) {
	with := func(raw codec.Raw, members ...string) codec.Raw {
		for i := 0; i < len(members); i += 2 {
			out, err := codec.WithMember(raw, members[i], codec.Raw(members[i+1]))
			if err != nil {
				t.Fatal(err)
			}
			raw = out
		}
		return raw
	}
	one := map[string][]string{
		"none": nil, "undefined": {"x_note", `"note 1"`, "x_one", `1`}, "reasoning_content": {"reasoning_content", `"think 1"`},
		"reasoning": {"reasoning", `"think 1"`}, "refusal": {"refusal", `"never 1"`}, "reasoning_details": {"reasoning_details", `[{"text":"think 1"}]`},
	}
	two := map[string][]string{
		"none": nil, "undefined": {"x_note", `"note 2"`, "x_two", `2`}, "reasoning_content": {"reasoning_content", `"think 2"`},
		"reasoning": {"reasoning", `"think 2"`}, "refusal": {"refusal", `"never 2"`}, "reasoning_details": {"reasoning_details", `[{"text":"think 2"}]`},
		"call": {"reasoning_content", `"think 2"`},
	}
	for _, format := range events.Formats() {
		for _, provider := range []string{"mistral", "perplexity", "vllm", "ollama"} {
			for first, a := range one {
				for second, b := range two {
					if second != "call" && format != events.OpenAI && (len(a) > 0 && a[0] != "x_note" || len(b) > 0 && b[0] != "x_note") || format == events.Responses {
						continue // the items of one response are several
					}
					if second == "call" && format != events.OpenAI {
						continue
					}
					history := messages(format, msg{role: dialect.RoleUser, text: "hi"}, msg{role: dialect.RoleAssistant, text: "words 1"},
						msg{role: dialect.RoleAssistant, text: "words 2"}, msg{role: dialect.RoleUser, text: "go"})
					if second == "call" {
						history = messages(format, msg{role: dialect.RoleUser, text: "hi"}, msg{role: dialect.RoleAssistant, text: "words 1"},
							msg{role: dialect.RoleAssistant, text: "words 2", calls: []call{{id: "call00001", tool: "ls", args: "{}"}}},
							msg{role: dialect.RoleTool, results: []result{{id: "call00001", tool: "ls", text: "x"}}}, msg{role: dialect.RoleAssistant, text: "Done."}, msg{role: dialect.RoleUser, text: "go"})
					}
					history[1], history[2] = with(history[1], a...), with(history[2], b...)
					g := newAgent(t, defaultConfig(t))
					g.publish(object{"turn": 1, "format": format, "model": object{"provider": provider, "name": "m", "context_window": 6000, "max_output_tokens": 1000}, "messages": history})
					raw, changes, err := render.Render(g.ledger.ViewAt(0), func(s measure.Seq) ([]dialect.Message, error) { return g.texts[s], nil })
					if err != nil {
						t.Fatal(err)
					}
					what := fmt.Sprintf("%s, %s, %s and %s", format, provider, first, second)
					if bad := strict.Refuse(strict.Call{Format: string(format), Provider: provider, Model: "m", Messages: jsonOf(raw)}); len(bad) > 0 {
						t.Errorf("%s: %v in\n%s", what, bad, lines(raw))
					}
					if !slices.ContainsFunc(changes, func(e events.Edit) bool { return e.Op == events.OpJoin }) {
						t.Errorf("%s: no join is listed", what)
					}
					for _, want := range []string{"words 1", "words 2", "think 1", "think 2", "never 1", "never 2", `"note 1"`, "x_one", "x_two"} {
						if has, had := strings.Contains(fmt.Sprintf("%s", raw), want), strings.Contains(fmt.Sprintf("%s", history), want); has != had && (provider != "mistral" || !strings.HasPrefix(want, "think")) {
							t.Errorf("%s: %s is there %t, was %t in\n%s", what, want, has, had, lines(raw))
						}
					}
				}
			}
		}
	}
}

func jsonOf(raw []codec.Raw) (out []json.RawMessage) {
	for _, r := range raw {
		out = append(out, json.RawMessage(r))
	}
	return out
}
