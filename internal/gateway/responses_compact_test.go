package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"compactd/client"
	"compactd/examples/agenttest"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/gateway"
)

// echo is a provider that answers with what it received.
func echo(t *testing.T) string {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Upstream", r.URL.Path)
		_, _ = w.Write(body)
	}))
	t.Cleanup(provider.Close)
	return provider.URL
}

// item is a message of Responses.
func item(role, text string) json.RawMessage {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return json.RawMessage(fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, kind, text))
}

// items is a history of an agent on Responses.
func items(answers int) []json.RawMessage {
	out := []json.RawMessage{item("user", "Find out why the tests fail.")}
	for i := range answers {
		id := fmt.Sprintf("call_%d", i)
		out = append(out,
			json.RawMessage(fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"gAAA"}`, i)),
			json.RawMessage(fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"shell","arguments":"{}"}`, id)),
			json.RawMessage(fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, id, strings.Repeat("There is more to say about it. ", 40))))
	}
	return append(out, item("assistant", "I have looked at them."), item("user", "And then?"))
}

// An agent's own compaction is answered with what compactd makes of its history, and the agent goes on with it.
func TestOwnCompaction(t *testing.T) {
	at := newGateway(t, echo(t), gateway.Config{Worker: agenttest.HTTP(t), Model: client.Model{ContextWindow: 8 * window}})
	agent := &chat{t: t, at: at, header: map[string]string{"Session_id": "1"}}
	history := items(20)
	var out struct {
		ID, Object string
		Output     []json.RawMessage
		Usage      map[string]any
	}
	header := agent.post("/v1/responses/compact", map[string]any{"model": "gpt-5", "instructions": "You are an agent.", "input": history}, &out)
	if header.Get("X-Upstream") != "" || header.Get("X-Compactd-Generation") != "1" || out.Object != "response.compaction" || !strings.HasPrefix(out.ID, "resp_") || out.Usage == nil {
		t.Fatalf("%+v, %v", out, header)
	}
	raws := make([]codec.Raw, len(out.Output))
	for i, m := range out.Output {
		raws[i] = codec.Raw(m)
	}
	if bad := validate.Messages(events.Responses, raws); len(bad) > 0 || len(out.Output)*2 > len(history) {
		t.Errorf("%d items of %d: %v", len(out.Output), len(history), bad)
	}
	var sent struct{ Input []json.RawMessage }
	next := slices.Concat(out.Output, []json.RawMessage{item("assistant", "I go on."), item("user", "And now?")})
	header = agent.post("/v1/responses", map[string]any{"model": "gpt-5", "input": next}, &sent)
	if header.Get("X-Compactd-Generation") != "1" || header.Get("X-Compactd-Changed") != "false" || len(sent.Input) != len(next) {
		t.Errorf("%d items of %d, %v", len(sent.Input), len(next), header)
	}
}

// A compaction that the upstream alone can do passes as it came.
func TestOwnCompactionPasses(t *testing.T) {
	worker, upstream := agenttest.HTTP(t), echo(t)
	config := gateway.Config{Worker: worker, Model: client.Model{ContextWindow: 8 * window}}
	audit := config
	audit.Audit = true
	plain, measured, without := newGateway(t, upstream, config), newGateway(t, upstream, audit), newGateway(t, upstream, gateway.Config{Worker: &recorder{}})
	history, err := json.Marshal(items(20))
	if err != nil {
		t.Fatal(err)
	}
	whole := `{"model": "gpt-5", "x_new": 1, "input": ` + string(history)
	encrypted := `{"model":"gpt-5","input":[{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA"},` +
		string(item("user", "And?")) + `,` + string(item("assistant", "Yes.")) + `,` + string(item("user", "Go on."))
	for name, c := range map[string]struct{ at, path, body string }{
		"a history at the provider":        {plain, "/v1/responses/compact", whole + `,"previous_response_id":"resp_1"}`},
		"a conversation":                   {plain, "/v1/responses/compact", whole + `,"conversation":"conv_1"}`},
		"an encrypted compaction":          {plain, "/v1/responses/compact", encrypted + `]}`},
		"a text":                           {plain, "/v1/responses/compact", `{"model":"gpt-5","input":"a"}`},
		"one prompt":                       {plain, "/v1/responses/compact", `{"model":"gpt-5","input":[` + string(item("user", "a")) + `]}`},
		"no JSON":                          {plain, "/v1/responses/compact", `{`},
		"an audit":                         {measured, "/v1/responses/compact", whole + `}`},
		"no worker":                        {without, "/v1/responses/compact", whole + `}`},
		"a base URL without a version":     {without, "/responses/compact", whole + `}`},
		"a compaction inside a call":       {plain, "/v1/responses", strings.TrimSuffix(whole, "]") + `,{"type":"compaction_trigger"}],"stream":true}`},
		"a call behind encrypted contents": {plain, "/v1/responses", encrypted + `],"context_management":[{"type":"compaction","compact_threshold":1000}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.at+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("OpenAI-Beta", "unknown=v9")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			if got, err := io.ReadAll(answer.Body); err != nil || string(got) != c.body || !strings.HasPrefix(answer.Header.Get("X-Upstream"), "/v1/responses") {
				t.Errorf("%.200s, %v, %v", got, answer.Header, err)
			}
		})
	}
}
