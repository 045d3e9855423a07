package compaction_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
)

// Whatever bytes come as a turn, as the first or the second of a session with a
// small window: nothing panics, what is emitted can be rendered, it costs no more than
// was planned, and it is valid for its provider if what was published is.
func FuzzReadTurn(f *testing.F) {
	for _, format := range events.Formats() {
		for i := range 3 {
			data, err := codec.Marshal(object{
				"turn": i, "format": format, "messages": messages(format, round(i)...), "system": "be brief", "tools": []object{},
				"model": object{"provider": "openai", "context_window": 500, "max_output_tokens": 100},
			})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(format), data)
			f.Add(string(format), []byte(strings.ReplaceAll(string(data), `"turn":2`, `"replaces_from":1`)))
			f.Add(string(format), []byte(strings.ReplaceAll(string(data), "call_1", "")))
			f.Add(string(format), []byte(strings.ReplaceAll(string(data), "because", `\ud83d\u0000`)))
		}
	}
	f.Add("", []byte(`{"messages":[],"policy":{"threshold":0.9,"profile":"blocks"},"usage":{"x":1}}`))
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		w := &witness{agent: newAgent(t, configOf(t, withoutSummaries()))}
		a := w.agent
		if events.Format(format).Known() {
			a.publish(object{
				"format": format, "messages": messages(events.Format(format), round(0)...),
				"model": object{"provider": "anthropic", "context_window": 400, "max_output_tokens": 100},
			})
		}
		for range 2 {
			a.seq++
			sameMeasured(t, a.config, a.ledger, data, a.seq)
			turn, msgs, err := stored.ReadTurn(new(compaction.Config), a.ledger, data, a.seq)
			if err != nil {
				if events.CodeOf(err) == events.CodeInternal {
					t.Fatal(err)
				}
				return
			}
			a.texts[a.seq] = msgs
			outs, next := compaction.Decide(a.ledger, turn, a.config)
			next.Install(a.ledger)
			for _, o := range outs {
				if o.View == nil {
					continue
				}
				raw, err := a.render(o.View)
				if err != nil {
					t.Fatal(err)
				}
				w.tokens(o.Body.(*events.Compacted), raw)
				if proper(a) {
					w.valid(raw)
				}
			}
		}
	})
}

// proper reports whether its provider takes the session as it was published.
func proper(a *agent) bool {
	var history []codec.Raw
	for _, m := range (&witness{agent: a}).sent() {
		history = append(history, m.Raw)
	}
	return len(validate.Messages(a.ledger.Format(), history)) == 0
}

// A3, A4, A6: whatever a message holds, its parts are measured once each, nothing
// counts below zero, and no usage brings the estimate under a token for 8 bytes.
func FuzzMeasure(f *testing.F) {
	for _, format := range events.Formats() {
		for _, raw := range messages(format, round(1)...) {
			f.Add(string(format), []byte(raw), int64(1))
		}
	}
	f.Add("anthropic", []byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"image"},{"type":"tool_use","input":[1e9]}]}`), int64(0))
	f.Add("openai", []byte(`{"role":"user","content":"日本語 \ud83d 0123456789abcdef 👍"}`), int64(1<<40))
	f.Fuzz(func(t *testing.T, format string, data []byte, input int64) {
		m, err := events.Format(format).Read(data)
		if err != nil || !utf8.Valid(data) { // no event passes broken UTF-8 on
			return
		}
		parts := 0
		for i, e := range measure.Measure(m, measure.Entry{}) {
			if first := e.Flags&measure.FlagFirst != 0; first != (i == 0) || int(e.Part) != parts || e.Text+e.JSON > e.Bytes {
				t.Fatalf("entry %d: %+v", i, e)
			}
			parts += int(e.Parts)
			for _, profile := range measure.Profiles {
				for _, provider := range []string{"anthropic", "mistral", ""} {
					if r := measure.NewRate(profile, provider); r.Body(&e) < 0 || r.Entry(&e) < r.Body(&e) {
						t.Fatalf("%s: %d tokens, %d with framing", provider, r.Body(&e), r.Entry(&e))
					}
				}
			}
		}
		if parts != len(m.Parts) {
			t.Fatalf("%d of %d parts", parts, len(m.Parts))
		}
		atFloor(t, events.Format(format), data, input)
	})
}

// atFloor publishes a message with a usage of so many tokens, and without.
func atFloor(t *testing.T, f events.Format, message codec.Raw, input int64) {
	estimate := func(usage string) (int64, *compaction.Ledger) {
		a := newAgent(t, configOf(t, withoutSummaries()))
		data := fmt.Appendf(nil, `{"format":%q,"messages":[%s,%s],"model":{"provider":"openai","context_window":1099511627776}%s}`,
			f, message, messages(f, msg{role: dialect.RoleAssistant, text: "ok"})[0], usage)
		turn, _, err := stored.ReadTurn(new(compaction.Config), a.ledger, data, 1)
		if err != nil {
			return 0, nil // its event is not well-formed as a whole
		}
		compaction.Apply(a.ledger, turn, nil, a.config)
		return a.ledger.Budget().EstimatedInput, a.ledger
	}
	own, l := estimate("")
	if l == nil {
		return
	}
	var bytes int64
	for _, e := range l.Visible() {
		bytes += int64(e.Bytes)
	}
	if got, _ := estimate(fmt.Sprintf(`,"usage":{"input_tokens":%d}`, input)); got < min(own, bytes/8) {
		t.Fatalf("%d tokens for %d bytes, without a usage %d", got, bytes, own)
	}
}
