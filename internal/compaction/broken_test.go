package compaction_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
	"compactd/internal/events/validate"
)

// B10, B11: whatever an agent's framework does to a history, what leaves is valid for the
// provider: members that no dialect has, messages that came twice, ids that are used again or that the provider does not take,
// results before their calls, twice, of no call, or missing. It holds for each generation and
// for the history as it was published, and where that is valid it keeps its bytes.
func TestBrokenHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		provider := rapid.SampledFrom([]string{"openai", "anthropic", "bedrock", "mistral", "perplexity", "ollama", "vllm", "vertex", "groq", "openrouter"}).Draw(t, "provider")
		history := g.broken()
		w := newWitness(g)
		w.broken = true
		sdk := g.odds(50, "members of an SDK")
		for _, turn := range g.turns(history) {
			if sdk {
				turn["messages"] = g.withMembers(turn["messages"].([]codec.Raw))
			}
			if model, ok := turn["model"].(object); ok {
				model["provider"] = provider
			}
			g.extend(turn["messages"].([]codec.Raw))
			w.publish(turn, func(c *events.Compacted, raw []codec.Raw) { w.emittedValid(c, raw) })
		}
		for generation := range w.ledger.Generation() + 1 {
			raw, err := w.render(w.ledger.ViewAt(generation))
			if err != nil {
				t.Fatal(err)
			}
			w.valid(raw)
		}
		w.untouched(provider)
	})
}

// withMembers gives messages what SDKs write beside the content: members that are empty, and
// seldom ones that are not, or the content in parts.
func (g *generator) withMembers(list []codec.Raw) (out []codec.Raw) {
	for _, raw := range list {
		set := map[string]string{}
		switch words := textMember(raw); {
		case g.format == events.NeuroLink && words != nil && g.odds(20, "in parts"):
			set["content"] = `[{"type":"text","text":` + string(words) + `}]`
		case g.format == events.OpenAI && bytes.Contains(raw, []byte(`"role":"assistant"`)):
			set = map[string]string{"refusal": "null", "annotations": "[]", "audio": "null", "function_call": "null"}
			if g.odds(10, "refusal") {
				set["refusal"] = `"No."`
			}
			if g.odds(10, "reasoning") {
				set["reasoning_content"] = `"I look."`
			}
		}
		for _, name := range slices.Sorted(maps.Keys(set)) {
			with, err := codec.WithMember(raw, name, codec.Raw(set[name]))
			if err != nil {
				g.Fatal(err)
			}
			raw = with
		}
		out = append(out, raw)
	}
	return out
}

// textMember is the content of a message of words, nil for another one.
func textMember(raw codec.Raw) (content codec.Raw) {
	for name, value := range codec.Members(raw) {
		if name == "role" && !slices.Contains([]string{`"user"`, `"assistant"`}, string(value)) {
			return nil
		}
		if name == "content" && value.Kind() == '"' && len(value) > 2 {
			content = value
		}
	}
	return content
}

// untouched checks that a history which is valid comes back as it was published.
func (w *witness) untouched(provider string) {
	view := w.ledger.ViewAt(0)
	var sent []codec.Raw
	systems, last := 0, dialect.Role("")
	for _, m := range w.sent() {
		if m.Role == last && last == dialect.RoleAssistant {
			return // they become one message
		}
		last = m.Role
		blank := !slices.ContainsFunc(m.Parts, func(p dialect.Part) bool { return p.Kind != dialect.PartText || !p.Blank() })
		if sent = append(sent, m.Raw); blank {
			return // it is left out
		} else if m.Role != dialect.RoleSystem {
			systems = 0
		} else if systems++; systems > 1 && view.Format == events.Anthropic {
			return // they become one message
		}
	}
	if len(validate.Check(validate.Call{Format: string(view.Format), Demands: view.Demands, Messages: sent})) > 0 {
		return
	}
	raw, err := w.render(view)
	if err != nil || !slices.EqualFunc(sent, raw, func(a, b codec.Raw) bool { return bytes.Equal(a, b) }) {
		w.t.Fatalf("%s: %v, published were\n%sand came back\n%s", provider, err, lines(sent), lines(raw))
	}
}

// extend gives messages that are not blank members beside those that compactd reads.
func (g *generator) extend(messages []codec.Raw) {
	for i, raw := range messages {
		m, err := g.format.Read(raw)
		if err != nil || !slices.ContainsFunc(m.Parts, func(p dialect.Part) bool { return p.Kind != dialect.PartText || !p.Blank() }) || !g.odds(15, "extended") {
			continue
		}
		name, value := "x_note", `{"a":[1]}`
		if g.format == events.OpenAI && bytes.Contains(raw, []byte(`"role":"assistant"`)) {
			name = rapid.SampledFrom([]string{name, "reasoning_content", "reasoning", "refusal"}).Draw(g.T, "member")
			value = `"words"`
		}
		if out, err := codec.WithMember(raw, name, codec.Raw(value)); err == nil {
			messages[i] = out
		}
	}
}

// broken is a history with the faults that frameworks make.
func (g *generator) broken() []msg {
	out := g.proper()
	if g.odds(30, "anything") {
		out = g.anything()
	}
	for range rapid.IntRange(0, 6).Draw(g.T, "faults") {
		i := rapid.IntRange(0, len(out)-1).Draw(g.T, "at")
		k := rapid.IntRange(0, len(out)-1).Draw(g.T, "to")
		switch rapid.IntRange(0, 7).Draw(g.T, "fault") {
		case 0: // a message comes twice, at once or later
			out = slices.Insert(out, i, out[i])
		case 1:
			out = append(out, out[i])
		case 2: // a call and its result are of another order
			out[i], out[k] = out[k], out[i]
		case 3: // a message is lost
			if len(out) > 1 {
				out = slices.Delete(out, i, i+1)
			}
		case 4: // results are lost, or come twice
			if n := len(out[i].results); n > 0 {
				out[i].results = out[i].results[:n-1]
			}
			if out[i].role == dialect.RoleTool && len(out[i].results) == 0 {
				out[i] = msg{role: dialect.RoleUser, text: "Go on."}
			}
		case 5:
			out[i].results = append(slices.Clone(out[i].results), out[k].results...)
			if len(out[i].calls) > 0 || out[i].role == dialect.RoleAssistant || out[i].role == dialect.RoleSystem {
				out[i].results = nil
			}
		case 6: // ids begin again with each turn
			g.renumber(out[i:], func(n int, _ string) string { return fmt.Sprintf("call%05d", n%3+1) })
		case 7: // ids of other providers
			form := rapid.SampledFrom([]string{"functions.Bash:%s", "call_%s|fc_" + strings.Repeat("x", 70), "%s_" + strings.Repeat("y", 39), "\u30c4%s", "call_%s\nfc"}).Draw(g.T, "form")
			g.renumber(out, func(_ int, id string) string { return fmt.Sprintf(form, id) })
		}
	}
	return out
}

// renumber gives calls other ids, and their results.
func (g *generator) renumber(history []msg, id func(n int, was string) string) {
	if g.noIDs {
		return
	}
	ids, n := map[string]string{}, 0
	for i := range history {
		m := &history[i]
		m.calls, m.results = slices.Clone(m.calls), slices.Clone(m.results)
		for k := range m.calls {
			c := &m.calls[k]
			ids[c.id] = id(n, c.id)
			c.id = ids[c.id]
			n++
		}
		for k := range m.results {
			if to, ok := ids[m.results[k].id]; ok {
				m.results[k].id = to
			}
		}
	}
}

// A call that came twice is dropped, one whose id another call has gets its own, and so does one
// whose id its provider does not take: calls and results go together, and two views of a session
// give the same.
func TestCallIDs(t *testing.T) {
	long := "call_" + strings.Repeat("a", 24) + "|fc_" + strings.Repeat("b", 50)
	for _, f := range []events.Format{events.OpenAI, events.Anthropic, events.Bedrock, events.Responses, events.AISDK, events.NeuroLink} {
		for _, provider := range []string{"openai", "anthropic", "bedrock", "mistral"} {
			a := newAgent(t, defaultConfig(t))
			demands := traits.DemandsOf(f, provider, "m")
			var sent []codec.Raw
			for i := range 3 {
				id := []string{long, "call_1", "call_1"}[i]
				c := call{id: id, tool: "bash", args: `{"command":"ls"}`}
				turn := messages(f, msg{role: dialect.RoleUser, text: "Go on."}, msg{role: dialect.RoleAssistant, calls: []call{c}},
					msg{role: dialect.RoleTool, results: []result{{id: id, tool: "bash", text: fmt.Sprint("files ", i)}}}, msg{role: dialect.RoleAssistant, text: "Done."})
				sent = append(sent, turn...)
				a.publish(object{"turn": i + 1, "format": f, "messages": turn, "model": object{"provider": provider, "name": "m", "context_window": 100_000, "max_output_tokens": 1000}})
			}
			view := a.ledger.View()
			raw, err := a.render(view)
			if err != nil {
				t.Fatal(err)
			}
			if v := validate.Check(validate.Call{Format: string(f), Demands: demands, Messages: raw, Sent: true, Tools: []byte(`[{}]`)}); len(v) != 0 && (len(v) > 1 || v[0].Rule != "prefill") {
				t.Errorf("%s for %s: %v\n%s", f, provider, v, lines(raw))
			}
			same := bytes.Equal(bytes.Join(bytesOf(raw), nil), bytes.Join(bytesOf(sent), nil))
			if valid := demands.IDs.Takes(traits.ClassOf(long)) && demands.IDs.Takes(traits.ClassOf("call_1")) && !demands.UniqueIDs; same != valid {
				t.Errorf("%s for %s: unchanged %t\n%s", f, provider, same, lines(raw))
			}
			_, changes, err := render.Render(view, func(s measure.Seq) ([]dialect.Message, error) { return a.texts[s], nil })
			renames := slices.DeleteFunc(changes, func(e events.Edit) bool { return e.Op != events.OpRename })
			if err != nil || len(renames)%2 != 0 || (len(renames) > 0) == same {
				t.Errorf("%s for %s: %v, %+v", f, provider, err, renames)
			}
		}
	}
}

func bytesOf(raw []codec.Raw) (out [][]byte) {
	for _, r := range raw {
		out = append(out, r)
	}
	return out
}
