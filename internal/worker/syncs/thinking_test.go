package syncs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// thinker is an agent whose model thinks before each call of a tool.
type thinker struct {
	*workertest.SyncAgent
	format   events.Format
	provider string
	model    string
	steps    int
}

// think is the thinking of a step, in the dialect; the blocks of a step name it.
func (a *thinker) step() {
	a.steps++
	n, result := a.steps, strings.Repeat(fmt.Sprintf("line %d of the file. ", a.steps), 100)
	switch a.format {
	case events.Bedrock:
		a.History = append(a.History,
			codec.Raw(fmt.Sprintf(`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"thought %d.","signature":"s%d"}}},`+
				`{"toolUse":{"toolUseId":"c%d","name":"read","input":{}}}]}`, n, n, n)),
			codec.Raw(fmt.Sprintf(`{"role":"user","content":[{"toolResult":{"toolUseId":"c%d","content":[{"text":%q}]}}]}`, n, result)))
	case events.AISDK:
		a.History = append(a.History,
			codec.Raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"reasoning","text":"thought %d.","providerOptions":{"anthropic":{"signature":"s%d"}}},`+
				`{"type":"tool-call","toolCallId":"c%d","toolName":"read","input":{}}]}`, n, n, n)),
			codec.Raw(fmt.Sprintf(`{"role":"tool","content":[{"type":"tool-result","toolCallId":"c%d","toolName":"read","output":{"type":"text","value":%q}}]}`, n, result)))
	case events.OpenAI:
		a.History = append(a.History,
			codec.Raw(fmt.Sprintf(`{"role":"assistant","content":null,"reasoning_details":[`+
				`{"type":"reasoning.text","text":"thought %d.","signature":"s%d"}],"tool_calls":[`+
				`{"id":"c%d","type":"function","function":{"name":"read","arguments":"{}"}}]}`, n, n, n)),
			codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, n, result)))
	default:
		a.History = append(a.History,
			codec.Raw(fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"thought %d.","signature":"s%d"},{"type":"tool_use","id":"c%d","name":"read","input":{}}]}`, n, n, n)),
			codec.Raw(fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%q}]}`, n, result)))
	}
	a.sync("")
}

// prompt ends the tool loop, and begins the next one.
func (a *thinker) prompt() {
	text := `"Go on with the next one."`
	if a.format == events.Bedrock {
		text = `[{"text":"Go on with the next one."}]`
	}
	a.History = append(a.History, codec.Raw(`{"role":"assistant","content":`+text+`}`), codec.Raw(`{"role":"user","content":`+text+`}`))
	a.sync("")
}

func (a *thinker) sync(more string) {
	a.T.Helper()
	messages, err := codec.Marshal(a.History)
	if err != nil {
		a.T.Fatal(err)
	}
	reply := a.Deliver(fmt.Appendf(nil, `{"session":%q,"format":%q,"model":{"provider":%q,"name":%q,"context_window":40000,"max_output_tokens":500},"wait_ms":8000,"messages":%s%s}`,
		a.Session, a.format, a.provider, a.model, messages, more))
	if reply.Header.Get("Nats-Service-Error-Code") != "" {
		a.T.Fatalf("%s", reply.Data)
	}
	a.Last = events.SyncResponse{}
	if err := codec.Unmarshal(reply.Data, &a.Last); err != nil {
		a.T.Fatal(err)
	}
	a.Sent = align.Apply(a.History, a.Last.Parts)
}

// compact has the history compacted between two calls.
func (a *thinker) compact() {
	a.T.Helper()
	a.Env.Publish(events.KindCompact, a.Session, fmt.Appendf(nil, `{"id":"c%d","policy":{"target":0.04,"prune":{"protect_tokens":0,"minimum_tokens":0}}}`, a.steps))
	a.Env.AwaitDecided()
}

// want compares the steps whose thinking was sent.
func (a *thinker) want(what string, steps ...int) {
	a.T.Helper()
	var got []int
	for n := 1; n <= a.steps; n++ {
		if slices.ContainsFunc(a.Sent, func(m codec.Raw) bool { return strings.Contains(string(m), fmt.Sprintf(`"thought %d."`, n)) }) {
			got = append(got, n)
		}
	}
	if !slices.Equal(got, steps) {
		a.T.Errorf("%s, %s %s/%s, generation %d: thinking of steps %v, want %v", what, a.format, a.provider, a.model, a.Last.Generation, got, steps)
	}
}

// A6: a turn keeps its thinking exactly when it was made under the history that is sent, without
// a view too, and after another worker took over. Of a model that may demand it the open tool
// loop keeps its thinking. Refused thinking is not sent again.
func TestSyncThinking(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	r := env.StartReady("a", observe.Listener{})
	n := 0
	agent := func(f events.Format, provider, model string) *thinker {
		n++
		a := &thinker{SyncAgent: &workertest.SyncAgent{T: t, Env: env, Session: fmt.Sprintf("t%d", n)}, format: f, provider: provider, model: model}
		text := `"Read them all."`
		if f == events.Bedrock {
			text = `[{"text":"Read them all."}]`
		}
		a.History = append(a.History, codec.Raw(`{"role":"user","content":`+text+`}`))
		a.sync("")
		for range 4 {
			a.step()
		}
		a.want("before", 1, 2, 3, 4)
		return a
	}
	refused := func(a *thinker) {
		before := a.Last.View
		a.sync(fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"messages.1.content.0: Invalid signature in thinking block. The block is bound to a different conversation."}`, before))
		a.want("refused")
		if a.Last.View == before {
			t.Errorf("%s %s: the view %s again", a.format, a.model, before)
		}
		a.sync("")
		a.want("refused, the same again")
		a.step()
		a.want("behind the refusal", a.steps)
	}
	bound := []struct {
		format          events.Format
		provider, model string
	}{
		{events.Anthropic, "anthropic", "claude-opus-5-5"},
		{events.Bedrock, "bedrock", "us.anthropic.claude-opus-5-5-20260922-v1:0"},
		{events.AISDK, "anthropic", "claude-opus-5-5"},
		{events.OpenAI, "openrouter", "anthropic/claude-opus-5.5"},
	}
	var all []*thinker
	for _, m := range bound {
		a := agent(m.format, m.provider, m.model)
		a.compact()
		a.step() // made under generation 0
		a.want("after a compaction between two calls")
		if a.Last.Generation == 0 {
			t.Fatalf("%s: nothing was compacted", m.format)
		}
		a.step()
		a.want("the next call", 6)
		all = append(all, a)
	}
	unknown := []struct {
		format          events.Format
		provider, model string
	}{
		{events.Anthropic, "anthropic", "fake-1"},
		{events.Anthropic, "azure", "my-claude"},
		{events.Anthropic, "litellm", "my-deployment"},
		{events.Bedrock, "bedrock", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3"},
		{events.AISDK, "litellm", "my-claude"},
		{events.OpenAI, "openrouter", "anthropic/claude-next"},
	}
	for _, m := range unknown {
		a := agent(m.format, m.provider, m.model)
		a.compact()
		a.step()
		a.want("in the open loop", 1, 2, 3, 4, 5)
		a.prompt()
		a.step()
		a.want("in the next loop", 1, 2, 3, 4, 5, 6)
		a.compact()
		a.sync("")
		a.want("after another compaction", 6)
		refused(a)
		a.prompt()
		a.want("the loop is over", a.steps)
	}
	free := agent(events.Anthropic, "anthropic", "claude-opus-4-8")
	free.compact()
	free.step()
	free.want("unbound", 1, 2, 3, 4, 5)
	refused(free)
	for _, a := range all {
		a.compact()
	}
	r.Stop()
	env.StartReady("b", observe.Listener{})
	for _, a := range all {
		a.step() // made under generation 1, but generation 2 is there now
		a.want("after another worker took over")
		a.step()
		a.want("behind that", 8)
	}
}

// A6: an agent that takes each answer in the place of its history is recognised after a compaction,
// also where the end of the answer lost its thinking, and what is made under it keeps its own.
func TestSyncThinkingAdopted(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	a := &thinker{SyncAgent: &workertest.SyncAgent{T: t, Env: env, Session: "adopted"}, format: events.Anthropic, provider: "anthropic", model: "claude-opus-5-5"}
	a.History = []codec.Raw{codec.Raw(`{"role":"user","content":"Read them all."}`)}
	a.sync("")
	step := func() {
		a.step()
		a.History = slices.Clone(a.Sent)
	}
	for range 4 {
		step()
	}
	for range 3 {
		a.compact()
		step() // made under the generation before
		a.want("behind a compaction")
		step()
		a.want("the next call", a.steps)
		step()
		a.want("the one behind that", a.steps-1, a.steps)
		if n := int64(len(a.History)) - 2; a.Last.Known < n {
			t.Errorf("generation %d: %d messages are known, want %d", a.Last.Generation, a.Last.Known, n)
		}
	}
}
