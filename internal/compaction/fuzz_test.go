package compaction_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Whatever bytes come as a turn, as the first or the second of a session with a
// small window: nothing panics, and what is told can be rendered.
func FuzzReadTurn(f *testing.F) {
	for _, format := range []events.Format{events.Anthropic, events.OpenAI, events.NeuroLink} {
		for i := range 3 {
			data, err := events.Marshal(object{
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
		a := newAgent(t, defaultConfig(t))
		if events.Format(format).Known() {
			a.publish(object{
				"format": format, "messages": messages(events.Format(format), round(0)...),
				"model": object{"provider": "anthropic", "context_window": 400, "max_output_tokens": 100},
			})
		}
		for range 2 {
			a.seq++
			turn, msgs, err := compaction.ReadTurn(a.ledger, data, a.seq)
			if err != nil {
				if events.CodeOf(err) == events.CodeInternal {
					t.Fatal(err)
				}
				return
			}
			a.texts[a.seq] = msgs
			outs := compaction.Decide(a.ledger, turn, a.config)
			compaction.Apply(a.ledger, turn, outs, a.config)
			for _, o := range outs {
				if o.View == nil {
					continue
				}
				if _, err := a.render(o.View); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
