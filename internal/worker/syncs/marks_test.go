package syncs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// marked is a message with a mark of what to cache, as agents of a dialect put it there.
func marked(f events.Format, raw codec.Raw) codec.Raw {
	s := string(raw)
	switch f {
	case events.Bedrock:
		s = strings.TrimSuffix(s, "]}") + `,{"cachePoint":{"type":"default"}}]}`
	case events.AISDK:
		s = strings.TrimSuffix(s, "}") + `,"providerOptions":{"anthropic":{"cacheControl":{"type":"ephemeral"}}}}`
	default:
		s = strings.TrimSuffix(s, "}]}") + `,"cache_control":{"type":"ephemeral"}}]}`
	}
	return codec.Raw(s)
}

// A7: a mark of a cache that moves with each call changes nothing: no turn is replaced, the
// messages that were sent stay byte for byte but for the marks, and the system prompt is sent once.
func TestSyncWithMarks(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	for i, f := range []events.Format{events.Anthropic, events.Bedrock, events.AISDK} {
		a := &thinker{SyncAgent: &workertest.SyncAgent{T: t, Env: env, Session: fmt.Sprintf("m%d", i)}, format: f, provider: "anthropic", model: "claude-opus-4-8"}
		text := `[{"type":"text","text":"Read them all."}]`
		if f == events.Bedrock {
			text = `[{"text":"Read them all."}]`
		}
		plain := []codec.Raw{codec.Raw(`{"role":"user","content":` + text + `}`)}
		for step := range 12 {
			a.History = slices.Clone(plain)
			a.step()
			plain = slices.Clone(a.History)
			for from := range a.History {
				if last := len(a.History) - 1; from == last || from == last-2 {
					a.History[from] = marked(f, a.History[from])
				}
			}
			var system string
			if f == events.Anthropic {
				system = `,"system":[{"type":"text","text":"Be careful."}]`
				if step%2 == 1 {
					system = `,"system":[{"type":"text","text":"Be careful.","cache_control":{"type":"ephemeral"}}]`
				}
			}
			a.sync(system + `,"policy":{"info":0.02,"threshold":0.05,"target":0.03,"prune":{"protect_tokens":200,"minimum_tokens":0}}`)
			if len(a.Last.Warnings) > 0 {
				t.Fatalf("%s: %+v", f, a.Last.Warnings)
			}
		}
		if a.Last.Generation == 0 {
			t.Errorf("%s: nothing was compacted: %+v", f, a.Last.Budget)
		}
		systems := 0
		for _, raw := range env.Logged(a.Session, events.KindTurn) {
			if strings.Contains(string(raw), "replaces_from") {
				t.Errorf("%s: a turn was replaced: %.200s", f, raw)
			}
			if strings.Contains(string(raw), `"system":`) {
				systems++
			}
		}
		if systems > 1 {
			t.Errorf("%s: the system prompt was published %d times", f, systems)
		}
	}
}
