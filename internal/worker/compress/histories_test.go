package compress_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/workertest"
)

// A body that is no request to compress is refused with a code and a hint. A failure of compactd
// is no failure of the call: the messages come back as they were sent. No client gets an original
// of another tenant, or by a hash that was made up.
func TestGatewaysHostile(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	const talk = `{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},{"role":"user","content":"Why?"}`
	for _, c := range []struct {
		name, token, method, path, body string
		headers                         []string
		status                          int
		code                            events.Code
	}{
		{"no token", "", "POST", "/v1/compress", `{"messages":[]}`, nil, 401, events.CodeUnauthorized},
		{"an operator", workertest.OperatorToken, "POST", "/v1/compress", `{"messages":[]}`, nil, 403, events.CodeForbidden},
		{"an operator's usage", workertest.OperatorToken, "POST", "/v1/usage", `{"view":"0:a","usage":{}}`, nil, 403, events.CodeForbidden},
		{"another method", workertest.DefaultToken, "GET", "/v1/compress", "", nil, 405, events.CodeMethodNotAllowed},
		{"no body", workertest.DefaultToken, "POST", "/v1/compress", "", nil, 400, events.CodeBadJSON},
		{"no JSON", workertest.DefaultToken, "POST", "/v1/compress", `{"messages":[`, nil, 400, events.CodeBadJSON},
		{"no messages", workertest.DefaultToken, "POST", "/v1/compress", `{"model":"gpt-4"}`, nil, 400, events.CodeMissingField},
		{"messages of another type", workertest.DefaultToken, "POST", "/v1/compress", `{"messages":"Hi"}`, nil, 400, events.CodeBadType},
		{"a message of another type", workertest.DefaultToken, "POST", "/v1/compress", `{"messages":["Hi"]}`, nil, 400, events.CodeBadMessage},
		{"a model of another type", workertest.DefaultToken, "POST", "/v1/compress", `{"model":{"name":"x"},"messages":[]}`, nil, 400, events.CodeBadType},
		{"frozen below 0", workertest.DefaultToken, "POST", "/v1/compress", `{"messages":[],"config":{"frozen_message_count":-1}}`, nil, 400, events.CodeOutOfRange},
		{"a config of another type", workertest.DefaultToken, "POST", "/v1/compress", `{"messages":[],"config":[]}`, nil, 400, events.CodeBadType},
		{"two sessions", workertest.DefaultToken, "POST", "/v1/compress", `{"messages":[]}`, []string{events.SessionHeader, "a", events.SessionHeader, "b"}, 400, events.CodeBadID},
		{"usage without view", workertest.DefaultToken, "POST", "/v1/usage", `{"session":"s","usage":{}}`, nil, 400, events.CodeMissingField},
		{"usage without session", workertest.DefaultToken, "POST", "/v1/usage", `{"view":"0:a","usage":{}}`, nil, 400, events.CodeBadID},
		{"no hash", workertest.DefaultToken, "GET", "/v1/retrieve/xyz", "", nil, 400, events.CodeBadID},
		{"a hash in upper case", workertest.DefaultToken, "GET", "/v1/retrieve/B573993006976AF767214FAC", "", nil, 400, events.CodeBadID},
		{"a hash of sequence 0", workertest.DefaultToken, "GET", "/v1/retrieve/000000000076af767214fac0", "", nil, 404, events.CodeNotFound},
		{"a hash that was made up", workertest.DefaultToken, "GET", "/v1/retrieve/b573993006976af767214fac", "", nil, 404, events.CodeNotFound},
	} {
		status, text := e.Do(c.token, c.method, c.path, c.body, c.headers...)
		var out events.ServiceError
		if err := json.Unmarshal([]byte(text), &out); err != nil || status != c.status || out.Code != c.code || out.Hint == "" {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, text, c.status, c.code)
		}
	}
	before := env.LogEnd()
	for name, body := range map[string]string{
		"no messages":         `{"messages":[]}`,
		"a first request":     `{"model":"gpt-4","messages":[{"role":"user","content":"Hi"}]}`,
		"a role that is none": `{"messages":[{"role":"no-role","content":"Hi"},{"role":"assistant","content":7}]}`,
	} {
		var in, out events.CompressResponse
		status, text := e.Do(workertest.DefaultToken, "POST", "/v1/compress", body)
		if err := codec.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		if err := codec.Unmarshal([]byte(text), &out); err != nil || status != 200 || !workertest.BeginsWith(out.Messages, in.Messages) || len(out.Messages) != len(in.Messages) || out.Session != "" {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	var odd events.CompressResponse
	_, text := e.Do(workertest.DefaultToken, "POST", "/v1/compress", `{"mode":"ccr","messages":[],"config":{"mode":"ccr","target_ratio":0.5}}`)
	if err := codec.Unmarshal([]byte(text), &odd); err != nil || !slices.Equal(odd.Unknown, []string{"mode", "config.target_ratio"}) {
		t.Errorf("fields without effect: %s", text)
	}
	if env.LogEnd() != before {
		t.Error("requests that belong to no conversation are published")
	}

	names := map[string]bool{}
	for _, c := range []struct{ token, header, more string }{
		{workertest.DefaultToken, "", ""},
		{workertest.DefaultToken, "", `,{"role":"assistant","content":"So."},{"role":"user","content":"Really?"}`},
		{workertest.DefaultToken, "", `,{"role":"assistant","content":"No."},{"role":"user","content":"Really?"}`},
		{workertest.AcmeToken, "", ""},
		{workertest.DefaultToken, "chat/1", ""},
		{workertest.DefaultToken, "chat/1", `,{"role":"assistant","content":"So."},{"role":"user","content":"Really?"}`},
		{workertest.DefaultToken, "chat/1", `,{"role":"assistant","content":"No."},{"role":"user","content":"Really?"}`},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{events.SessionHeader, c.header}
		}
		status, text := e.Do(c.token, "POST", "/v1/compress", `{"model":"gpt-4","messages":[`+talk+c.more+`]}`, headers...)
		var out events.CompressResponse
		if err := codec.Unmarshal([]byte(text), &out); err != nil || status != 200 || out.Session == "" || out.Code != "" {
			t.Errorf("%d %s", status, text)
		}
		names[c.token+out.Session] = true
	}
	if len(names) != 5 { // of default two and two, of acme one
		t.Errorf("%d sessions: %v", len(names), names)
	}

	acme := strings.Repeat("text of acme ", 9)
	_, sent := e.Do(workertest.AcmeToken, "POST", "/v1/sessions/acme/s/turns", fmt.Sprintf(`{"turn":1,"messages":[{"role":"user","content":%q}]}`, acme))
	var event events.EventResponse
	if err := json.Unmarshal([]byte(sent), &event); err != nil || event.Seq == 0 {
		t.Fatal(sent)
	}
	hash := events.ContentHash(event.Seq, acme)
	for token, want := range map[string]int{workertest.AcmeToken: 200, workertest.OperatorToken: 200, workertest.DefaultToken: 404} {
		if status, text := e.Do(token, "GET", "/v1/retrieve/"+hash, ""); status != want || strings.Contains(text, "text of acme") != (want == 200) {
			t.Errorf("%s: %d %s", token, status, text)
		}
	}
}

// A provider's count of an answer corrects the estimates of the session.
func TestGatewaysUsage(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	a := workertest.SyncAgent{T: t}
	a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
	a.Call(0, 60)
	last := e.Compress(workertest.DefaultToken, a.History, events.SessionHeader, "chat 1")
	status, text := e.Do(workertest.DefaultToken, "POST", "/v1/usage", fmt.Sprintf(`{"session":%q,"view":%q,"usage":{"prompt_tokens":901,"completion_tokens":9}}`, last.Session, last.View))
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	a.Call(1, 60)
	last = e.Compress(workertest.DefaultToken, a.History, events.SessionHeader, "chat 1")
	id, err := events.SessionID(last.Session)
	if err != nil || last.Session != "chat 1" {
		t.Fatalf("session %q: %v", last.Session, err)
	}
	turns := env.Logged(id, events.KindTurn)
	if turn := string(turns[len(turns)-1]); len(turns) != 2 || !strings.Contains(turn, `"prompt_tokens":901`) || len(last.Warnings) > 0 {
		t.Errorf("%d turns, the last one %s; %+v", len(turns), turn, last.Warnings)
	}
}

// bytesOf is the size of messages.
func bytesOf[M ~[]byte](list []M) (n int64) {
	for _, m := range list {
		n += int64(len(m))
	}
	return n
}

// Frozen messages come back in the same bytes, whatever the session has in their place, and what is
// behind them is made to fit. The answer stays a valid history; where the frozen messages do not
// fit it has the code for it.
func TestGatewaysFrozen(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	a := &workertest.SyncAgent{T: t}
	a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
	for n := range 20 {
		a.Call(n, 90)
	}
	last := len(a.History)
	for n := range 4 {
		a.Call(last+n, 40)
	}
	cut, over := false, false
	for frozen := range len(a.History) + 3 {
		body, err := json.Marshal(map[string]any{
			"messages": a.History, "model": "gpt-4", "config": map[string]any{"session_id": "frozen", "frozen_message_count": frozen},
		})
		if err != nil {
			t.Fatal(err)
		}
		status, text := e.Do(workertest.DefaultToken, "POST", "/v1/compress", string(body))
		var out events.CompressResponse
		if err := codec.Unmarshal([]byte(text), &out); err != nil || status != 200 || out.Code != "" {
			t.Fatalf("%d %s", status, text)
		}
		if n := min(frozen, len(a.History)); !workertest.BeginsWith(out.Messages, a.History[:n]) {
			t.Fatalf("%d frozen messages come back changed: %s", frozen, text)
		}
		if problems := validate.Messages(events.OpenAI, out.Messages); len(problems) > 0 {
			t.Errorf("%d frozen: %v", frozen, problems)
		}
		warned := slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == events.CodeBudgetExceeded })
		if most := int64(5324); warned && out.TokensAfter < most-100 || !warned && out.TokensAfter > most {
			t.Errorf("%d frozen: %d tokens, warned %t: %+v", frozen, out.TokensAfter, warned, out.Warnings)
		}
		if share := out.TokensBefore * bytesOf(a.History[:min(frozen, len(a.History))]) / bytesOf(a.History); warned && share < 4000 || out.View == "" {
			t.Errorf("%d frozen, of %d tokens: %d tokens, view %q, %+v", frozen, share, out.TokensAfter, out.View, out.Warnings)
		}
		if _, again := e.Do(workertest.DefaultToken, "POST", "/v1/compress", string(body)); again != text {
			t.Errorf("%d frozen: the same request has another answer", frozen)
		}
		cut, over = cut || frozen > 2 && out.TokensSaved > 0, over || warned
	}
	if !cut || !over {
		t.Errorf("some frozen histories are cut: %t, some do not fit: %t", cut, over)
	}
}
