package compaction_test

import (
	"bytes"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// A compaction item of openai-responses is an encrypted summary, and a compaction block of
// Anthropic one that the provider reads in the place of what came before: each compaction keeps
// it, byte for byte.
func TestOpaqueSummaryStays(t *testing.T) {
	for format, opaque := range map[events.Format][]codec.Raw{
		events.Responses: {codec.Raw(`{"type":"compaction","encrypted_content":"OPAQUE"}`)},
		events.Anthropic: {
			codec.Raw(`{"role":"user","content":"Go on."}`),
			codec.Raw(`{"role":"assistant","content":[{"type":"compaction","content":"OPAQUE"},{"type":"text","text":"Done."}]}`),
		},
	} {
		block := map[events.Format]string{events.Responses: `{"type":"compaction","encrypted_content":"OPAQUE"}`, events.Anthropic: `{"type":"compaction","content":"OPAQUE"}`}[format]
		for _, summaries := range []bool{true, false} {
			keepsOpaque(t, format, opaque, block, summaries)
		}
	}
}

func keepsOpaque(t *testing.T, format events.Format, opaque []codec.Raw, block string, summaries bool) {
	a := newAgent(t, defaultConfig(t))
	text := strings.Repeat("Words of the conversation go here. ", 74)
	n, compactions := 0, 0
	publish := func(raw ...codec.Raw) {
		n++
		for _, o := range a.publish(object{
			"turn": n, "format": format, "model": object{"provider": "openai", "context_window": 20_000}, "messages": raw,
			"policy": object{"summarize": object{"enabled": summaries}}, "generation": a.ledger.Generation(),
		}) {
			if job, ok := o.Body.(*events.Job); ok {
				_, next := compaction.Decide(a.ledger, a.result(summary(job.ID, 2000)), a.config)
				next.Install(a.ledger)
			}
		}
		view := a.ledger.View()
		out, err := a.render(view)
		if err != nil {
			t.Fatal(err)
		}
		compactions = int(a.ledger.Generation())
		if n > 10 && !bytes.Contains(bytes.Join(rawBytes(out), nil), []byte(block)) {
			t.Fatalf("%s, turn %d, generation %d: the compaction item is gone", format, n, a.ledger.Generation())
		}
	}
	for i := range 60 {
		round := messages(format, msg{role: dialect.RoleUser, text: "Go on."}, msg{role: dialect.RoleAssistant, text: text})
		if i == 10 {
			round = append(round, opaque...)
		}
		publish(round...)
	}
	if compactions < 2 {
		t.Errorf("%s: %d compactions", format, compactions)
	}
}

func rawBytes(in []codec.Raw) (out [][]byte) {
	for _, r := range in {
		out = append(out, r)
	}
	return out
}
