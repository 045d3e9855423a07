package compress_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// guardrail calls compress as LiteLLM's guardrail does: the messages, the model and a token,
// without a session; of the answer it takes the messages that are objects.
type guardrail struct {
	e     *workertest.Edge
	token string
	last  events.CompressResponse
}

// compress returns the messages to send, in bytes as they came.
func (g *guardrail) compress(history []codec.Raw, headers ...string) []codec.Raw {
	g.e.T.Helper()
	body, err := json.Marshal(map[string]any{"messages": history, "model": "gpt-4"})
	if err != nil {
		g.e.T.Fatal(err)
	}
	if len(headers) == 0 {
		headers = []string{"User-Agent", "litellm/1.93.0", "Content-Type", "application/json"}
	}
	status, text := g.e.Do(g.token, "POST", "/v1/compress", string(body), headers...)
	if status != 200 {
		g.e.T.Fatalf("compress: %d %s", status, text)
	}
	if err := schematest.Validate("compress-response", []byte(text)); err != nil {
		g.e.T.Errorf("%v: %s", err, text)
	}
	g.last = events.CompressResponse{}
	if err := codec.Unmarshal([]byte(text), &g.last); err != nil {
		g.e.T.Fatal(err)
	}
	if len(g.last.Messages) == 0 {
		g.e.T.Fatalf("no messages: %s", text)
	}
	return g.last.Messages
}

// hashes lists those that LiteLLM finds, which looks at texts of contents alone.
func hashesIn(messages []codec.Raw) (out []string) {
	pattern := regexp.MustCompile(`hash=([a-f0-9]{24})`)
	for _, raw := range messages {
		var m struct {
			Content any `json:"content"`
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		text, _ := m.Content.(string)
		for _, h := range pattern.FindAllStringSubmatch(text, -1) {
			out = append(out, h[1])
		}
	}
	return out
}

// A gateway that names no session gets of each conversation what fits, with the same bytes of
// its prefix until the next generation: before and after a restart, and from another worker.
// Conversations that begin alike, and those of another tenant, are apart. The original of a
// placeholder is retrieved by its hash, by its tenant alone.
func TestCompressHistories(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r, e := env.RunEdge()
	type talk struct {
		workertest.SyncAgent
		guardrail
		sent       []codec.Raw
		generation int64
		sessions   map[string]bool
	}
	var all []*talk
	for _, token := range []string{workertest.DefaultToken, workertest.DefaultToken, workertest.AcmeToken} {
		a := &talk{SyncAgent: workertest.SyncAgent{T: t}, guardrail: guardrail{e: e, token: token}, sessions: map[string]bool{}}
		a.History = append(a.History, codec.Raw(`{"role":"system","content":"Be careful."}`))
		a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
		all = append(all, a)
	}
	step := func(a *talk) {
		t.Helper()
		before := a.sent
		a.sent = a.compress(a.History)
		if a.guardrail.last.Code != "" || a.guardrail.last.TokensAfter > 8192 {
			t.Fatalf("%+v", a.guardrail.last)
		}
		if a.guardrail.last.Generation == a.generation && before != nil && !workertest.BeginsWith(a.sent, before) {
			t.Fatalf("generation %d: the prefix has other bytes:\n%s\n%s", a.generation, before, a.sent)
		}
		a.generation = a.guardrail.last.Generation
		if a.guardrail.last.Session != "" {
			a.sessions[a.guardrail.last.Session] = true
		}
	}
	for n := range 24 {
		for i, a := range all {
			step(a)
			if n < 2 { // they begin alike
				a.Call(n, 60)
			} else {
				a.History = append(a.History,
					codec.Raw(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function",`+
						`"function":{"name":"read_file","arguments":"{\"path\":\"f%d.go\"}"}}]}`, n, n)),
					codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, n, strings.Repeat(fmt.Sprintf("talk %d line %d. ", i, n), 90))))
			}
		}
	}
	seen := map[string]int{}
	for i, a := range all {
		step(a)
		if len(a.sessions) != 1 && i != 1 || a.generation == 0 {
			t.Errorf("talk %d: sessions %v, generation %d", i, a.sessions, a.generation)
		}
		seen[a.token+a.guardrail.last.Session]++
		for j := range all {
			if text := fmt.Sprintf("talk %d ", j); j != i && strings.Contains(fmt.Sprintf("%s", a.sent), text) {
				t.Errorf("talk %d has text of %d", i, j)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("sessions are shared: %v", seen)
	}

	first := all[0]
	hashes := hashesIn(first.sent)
	if len(hashes) == 0 || !slices.Equal(hashes, first.guardrail.last.Hashes) {
		t.Fatalf("hashes %v, of the answer %v:\n%s", hashes, first.guardrail.last.Hashes, first.sent)
	}
	for _, hash := range hashes {
		status, text := e.Do(workertest.DefaultToken, "GET", "/v1/retrieve/"+hash+"?query=line", "")
		var out events.RetrieveResponse
		if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 || out.Hash != hash {
			t.Fatalf("%d %s", status, text)
		}
		quoted, _ := json.Marshal(out.Original)
		if len(out.Original) < 64 || !strings.Contains(fmt.Sprintf("%s", first.History), string(quoted)) {
			t.Errorf("%s is none of the history's: %.80s", hash, out.Original)
		}
		if err := schematest.Validate("retrieve-response", []byte(text)); err != nil {
			t.Error(err)
		}
		if status, text := e.Do(workertest.AcmeToken, "GET", "/v1/retrieve/"+hash, ""); status != 404 || strings.Contains(text, "talk") {
			t.Errorf("another tenant: %d %s", status, text)
		}
	}

	again := func(name string) {
		t.Helper()
		for i, a := range all {
			if got := a.compress(a.History); !workertest.BeginsWith(got, a.sent) || len(got) != len(a.sent) {
				t.Errorf("%s: talk %d gets other bytes\n%s\n%s", name, i, a.sent, got)
			}
		}
	}
	again("sent again")
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	e.Stop()
	second := env.Start("b", observe.Listener{})
	<-second.Worker.Ready()
	e = env.StartEdge(second.Worker, nil)
	for _, a := range all {
		a.e = e
	}
	again("after a restart")
	third := env.Start("c", observe.Listener{})
	<-third.Worker.Ready()
	elsewhere := env.StartEdge(third.Worker, nil)
	for _, a := range all {
		a.e = elsewhere
	}
	again("by way of another worker")
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	again("after a take-over")
	for n := 24; n < 27; n++ {
		for _, a := range all {
			a.Call(n, 60)
			step(a)
		}
	}
	if err := third.Stop(); err != nil {
		t.Fatal(err)
	}
}

// A body that is no request to compress is refused with a code and a hint. A failure of compactd
// is no failure of the call: the messages come back as they were sent. No client gets an original
// of another tenant, or by a hash that was made up.
func TestGatewaysHostile(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r, e := env.RunEdge()
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
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	e.Stop()
}

// A provider's count of an answer corrects the estimates of the session.
func TestGatewaysUsage(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r, e := env.RunEdge()
	g := guardrail{e: e, token: workertest.DefaultToken}
	a := workertest.SyncAgent{T: t}
	a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
	a.Call(0, 60)
	g.compress(a.History, events.SessionHeader, "chat 1")
	status, text := e.Do(workertest.DefaultToken, "POST", "/v1/usage", fmt.Sprintf(`{"session":%q,"view":%q,"usage":{"prompt_tokens":901,"completion_tokens":9}}`, g.last.Session, g.last.View))
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	a.Call(1, 60)
	g.compress(a.History, events.SessionHeader, "chat 1")
	id, err := events.SessionID(g.last.Session)
	if err != nil || g.last.Session != "chat 1" {
		t.Fatalf("session %q: %v", g.last.Session, err)
	}
	turns := env.Logged(id, events.KindTurn)
	if last := string(turns[len(turns)-1]); len(turns) != 2 || !strings.Contains(last, `"prompt_tokens":901`) || len(g.last.Warnings) > 0 {
		t.Errorf("%d turns, the last one %s; %+v", len(turns), last, g.last.Warnings)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
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
	r, e := env.RunEdge()
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
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	e.Stop()
}
