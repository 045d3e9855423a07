package syncs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/strict"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// B10, B11: a session goes on whatever its framework does to calls: a sync and the context give
// a history that the provider takes, of messages that came twice, ids that are used again, or
// that the provider does not take since the session changed it, and results that came late.
func TestSyncIsValidForItsProvider(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	long := "call_" + strings.Repeat("a", 24) + "|fc_" + strings.Repeat("b", 50)
	for _, c := range []struct{ format, provider, model string }{
		{"anthropic", "anthropic", "claude-opus-5"},
		{"bedrock", "bedrock", "anthropic.claude-opus-5-v1:0"},
		{"openai", "mistral", "devstral-2"},
		{"openai", "openai", "gpt-4o"},
		{"openai", "groq", "llama-4"},
	} {
		t.Run(c.format+" "+c.provider, func(t *testing.T) {
			a := &workertest.SyncAgent{T: t, Env: env, Session: "valid-" + c.format + "-" + c.provider}
			var history []string
			sync := func(provider, model string, add ...string) {
				t.Helper()
				history = append(history, add...)
				in := fmt.Sprintf(`{"session":%q,"format":%q,"form":"messages","wait_ms":8000,`+
					`"model":{"provider":%q,"name":%q,"context_window":4000,"max_output_tokens":500},"tools":[{"name":"n"}],"messages":[%s]}`,
					a.Session, c.format, provider, model, strings.Join(history, ","))
				reply := a.Deliver([]byte(in))
				var out events.SyncResponse
				if err := codec.Unmarshal(reply.Data, &out); err != nil || reply.Header.Get("Nats-Service-Error-Code") != "" {
					t.Fatalf("%v %s", err, reply.Data)
				}
				for name, messages := range map[string][]codec.Raw{"sync": out.Messages, "context": env.ContextMessages(a.Session)} {
					call := strict.Call{Provider: provider, Model: model, Format: c.format, Tools: json.RawMessage(`[{"name":"n"}]`)}
					for _, m := range messages {
						call.Messages = append(call.Messages, json.RawMessage(m))
					}
					if bad := strict.Refuse(call); len(bad) > 0 || len(messages) == 0 {
						t.Fatalf("%s: %v in\n%s", name, bad, messages)
					}
				}
			}
			user := func(text string) string { return turnOf(c.format, "user", text, "") }
			call := func(id string) string { return turnOf(c.format, "call", "", id) }
			result := func(id, text string) string { return turnOf(c.format, "result", text, id) }
			sync("openai", "gpt-6", user("Go on."))
			sync("openai", "gpt-6", call("call_1"), result("call_1", strings.Repeat("line ", 300)))
			sync("openai", "gpt-6", call("call_1"), call("call_1"), result("call_1", strings.Repeat("line ", 300)))
			sync("openai", "gpt-6", call(long), result(long, "x"))
			sync(c.provider, c.model, call("call_1"), result("call_1", strings.Repeat("line ", 900)))
			sync(c.provider, c.model, call("call00002"), user("Never mind."), user("Go on."))
			sync(c.provider, c.model, call("call00003"), result("call00003", strings.Repeat("line ", 900)), result("call00003", "again"))
			sync(c.provider, c.model, call("call00004"), result("call00004", strings.Repeat("line ", 900)), result("call00009", "of none"))
		})
	}
}

// turnOf is a message of a dialect: of a user, a call or its result.
func turnOf(format, kind, text, id string) string {
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	switch format + " " + kind {
	case "anthropic call":
		return `{"role":"assistant","content":[{"type":"tool_use","id":` + q(id) + `,"name":"n","input":{}}]}`
	case "anthropic result":
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":` + q(id) + `,"content":` + q(text) + `}]}`
	case "bedrock user":
		return `{"role":"user","content":[{"text":` + q(text) + `}]}`
	case "bedrock call":
		return `{"role":"assistant","content":[{"toolUse":{"toolUseId":` + q(id) + `,"name":"n","input":{}}}]}`
	case "bedrock result":
		return `{"role":"user","content":[{"toolResult":{"toolUseId":` + q(id) + `,"content":[{"text":` + q(text) + `}]}}]}`
	case "openai call":
		return `{"role":"assistant","content":null,"tool_calls":[{"id":` + q(id) + `,"type":"function","function":{"name":"n","arguments":"{}"}}]}`
	case "openai result":
		return `{"role":"tool","tool_call_id":` + q(id) + `,"content":` + q(text) + `}`
	default:
		return `{"role":"user","content":` + q(text) + `}`
	}
}
