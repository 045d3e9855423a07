package worker_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

const (
	sessionToken = "token-of-session-s1"
	filesToken   = "token-of-session-s3"
	oddToken     = "token-of-session-odd"
)

// bearer sends a token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// mcpClient connects to the server of a session.
func (e *edge) mcpClient(token, tenant, session string) (*mcp.ClientSession, error) {
	e.t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(e.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: "http://" + e.edge.Addr() + "/mcp/" + tenant + "/" + escape(session), HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1,
	}, nil)
	if err == nil {
		e.t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// callTool returns the text of a tool, and whether it is an error.
func (e *edge) callTool(s *mcp.ClientSession, name string, arguments map[string]any) (string, bool) {
	e.t.Helper()
	out, err := s.CallTool(e.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		e.t.Fatalf("%s: %v", name, err)
	}
	return out.Content[0].(*mcp.TextContent).Text, out.IsError
}

// A model looks up its session over MCP: what a compaction removed, where, and the original.
func TestMCP(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.config, env.summarizer = newConfig(t, compaction.DefaultPolicy()), extract.New()
	summarized := make(chan observe.SummaryDone, 64)
	r := env.start("a", observe.Listener{SummaryDone: func(d observe.SummaryDone) { summarized <- d }})
	<-r.worker.Ready()
	e := env.edge(r.worker, nil)
	const odd = "thread 7/a"
	id, err := events.SessionID(odd)
	if err != nil {
		t.Fatal(err)
	}
	e.write(tokenLine(defaultToken, "default agent") + tokenLine(sessionToken, "default/s1 session") + tokenLine(filesToken, "default/s3 session") + tokenLine(oddToken, "default/"+id+" session"))
	if err := e.edge.Reload(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 24; n++ {
		e.post("s1", "turns", string(turn(n)))
	}
	e.post("s1", "turns", `{"turn":25,"messages":[{"role":"user","content":"`+strings.Repeat("é", 20_000)+`"}]}`)
	e.post("s3", "turns", string(calls(1, "read_file:/a.go", "write_file:/b.go")))
	e.post(odd, "turns", `{"turn":1,"messages":[{"role":"user","content":"odd"}]}`)

	s, err := e.mcpClient(sessionToken, "default", "s1")
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"compact_now", "context_stats", "files", "recall", "search_history", "what_was_dropped"}; !slices.Equal(names, want) {
		t.Errorf("tools: %v, want %v", names, want)
	}
	if text, bad := e.callTool(s, "compact_now", map[string]any{"focus": "the words"}); bad || !strings.Contains(text, "ompact") {
		t.Errorf("compact_now: %s", text)
	}
	next(t, summarized, "summary")
	env.awaitDecided()
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
		bad       bool
	}{
		{"recall", map[string]any{"turn": 1}, "[turn 1, message 0, user]", false},
		{"recall", map[string]any{"turn": 1, "index": 1}, "[turn 1, message 1, assistant]", false},
		{"recall", map[string]any{"turn": 25, "page": 2}, "[page 2 of 2]", false},
		{"recall", map[string]any{"turn": 25, "page": 3}, "must be between 1 and 2", true},
		{"recall", map[string]any{"turn": 99}, "unknown_turn", true},
		{"recall", map[string]any{"turn": 1, "session": "s2"}, "is no session that this one branched off", true},
		{"recall", map[string]any{"turn": "one"}, "bad_type", true},
		{"search_history", map[string]any{"text": "WORD", "limit": 2}, "turn 24, message 1, assistant", false},
		{"search_history", map[string]any{"text": "no such text"}, "Not found.", false},
		{"search_history", map[string]any{}, "missing_field", true},
		{"what_was_dropped", map[string]any{}, "generation 1, ", false},
		{"what_was_dropped", map[string]any{"since_generation": 99}, "Nothing was removed after generation 99.", false},
		{"context_stats", map[string]any{}, "turns: 25", false},
		{"files", map[string]any{}, "No files.", false},
	} {
		text, bad := e.callTool(s, c.tool, c.arguments)
		if !strings.Contains(text, c.want) || bad != c.bad || len(text) > 25<<10 {
			t.Errorf("%s %v: %t %d bytes %.300s, want %q", c.tool, c.arguments, bad, len(text), text, c.want)
		}
	}
	read := func(uri string) string {
		t.Helper()
		out, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return err.Error()
		}
		return out.Contents[0].Text
	}
	for uri, want := range map[string]string{
		"compactd://session/generation/0": `"generation":0`, "compactd://session/generation/1?page=1": `"generation":1`,
		"compactd://session/generation/99": "unknown_generation", "compactd://session/generation/x": "out_of_range",
		"compactd://session/record": `[`, "compactd://session/other": "not found",
	} {
		if text := read(uri); !strings.Contains(text, want) {
			t.Errorf("%s: %.200s, want %s", uri, text, want)
		}
	}
	if text := read("compactd://session/summary"); text == "" {
		t.Error("there is no summary")
	}
	o, err := e.mcpClient(oddToken, "default", odd)
	if err != nil {
		t.Fatal(err)
	}
	if text, bad := e.callTool(o, "recall", map[string]any{"turn": 1}); bad || !strings.Contains(text, "odd") {
		t.Errorf("a session with a free name: %s", text)
	}
	f, err := e.mcpClient(filesToken, "default", "s3")
	if err != nil {
		t.Fatal(err)
	}
	if text, bad := e.callTool(f, "files", nil); bad || !strings.Contains(text, "/b.go: changed, turns 1 to 1, 0 reads, 1 changes") {
		t.Errorf("files: %s", text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A session is shown to a token of that session alone, and such a token is for nothing else.
func TestMCPTokens(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	e.write(tokenLine(defaultToken, "default agent") + tokenLine(operatorToken, "* operator") + tokenLine(sessionToken, "default/s1 session") +
		tokenLine(expiredToken, "default/s1 session 2020-01-01T00:00:00Z"))
	if err := e.edge.Reload(); err != nil {
		t.Fatal(err)
	}
	e.post("s1", "turns", string(turn(1)))
	e.post("s2", "turns", string(turn(1)))
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"turn":1}}}`
	accept := []string{"Accept", "application/json, text/event-stream", "Content-Type", "application/json"}
	for _, c := range []struct {
		token, path string
		want        int
	}{
		{sessionToken, "/mcp/default/s1", 200},
		{"", "/mcp/default/s1", 401},
		{"wrong", "/mcp/default/s1", 401},
		{expiredToken, "/mcp/default/s1", 401},
		{defaultToken, "/mcp/default/s1", 403},
		{defaultToken, "/%6Dcp/default/s1", 403},
		{operatorToken, "/mcp/default/s1", 403},
		{sessionToken, "/mcp/default/s2", 403},
		{sessionToken, "/mcp/acme/s1", 403},
		{sessionToken, "/mcp/default/s1/../s2", 404},
		{sessionToken, "/mcp/default/s1%2F..%2Fs2", 403},
		{sessionToken, "/mcp/default/S1", 403},
		{sessionToken, "/v1/sessions/default/s1/turns", 403},
	} {
		status, text := e.do(c.token, "POST", c.path, body, accept...)
		if status != c.want || (status == 200) != strings.Contains(text, "[turn 1, message 0, user]") {
			t.Errorf("%.12q %s: %d %s, want %d", c.token, c.path, status, text, c.want)
		}
	}
	for _, path := range []string{"/v1/sessions/default/s1/context", "/v1/sessions/default/s1/recall?turn=1", "/v1/sessions", "/v1/sessions/default/s1/events", "/v1/openapi.json", "/v1/health"} {
		if status, text := e.do(sessionToken, "GET", path, ""); status != 403 {
			t.Errorf("the token of a session GET %s: %d %s", path, status, text)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, text := e.do(sessionToken, method, "/mcp/default/s1", "", accept...); status != 405 {
			t.Errorf("%s: %d %s", method, status, text)
		}
	}
	if status, text := e.do(sessionToken, "POST", "/mcp/default/s1", `{"a":"`+strings.Repeat("x", 70<<10)+`"}`, accept...); status != 413 {
		t.Errorf("a large request: %d %.100s", status, text)
	}
	if _, err := e.mcpClient(defaultToken, "default", "s1"); err == nil {
		t.Error("a client with the token of an agent is connected")
	}
	for line, want := range map[string]string{
		"default session": "tenant/session", "default/ session": "tenant/session", "default/a/b session": "tenant/session", "*/s1 session": "tenant/session", "default/s1 agent": "tenant is not",
	} {
		e.write(tokenLine("x", line))
		if err := e.edge.Reload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// Tools that a model calls in one request run at once: each is an operation of its own, and all give back their
// shares.
func TestMCPBatch(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e, l := env.limitedEdge(0)
	e.write(tokenLine(defaultToken, "default agent") + tokenLine(sessionToken, "default/s1 session"))
	if err := e.edge.Reload(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 20; n++ {
		e.post("s1", "turns", string(turn(n)))
	}
	const calls = 20
	batch := make([]string, calls)
	for i := range batch {
		batch[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search_history","arguments":{"text":"word"}}}`, i)
		if i%10 == 0 {
			batch[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"compact_now","arguments":{"focus":"%d"}}}`, i, i)
		}
	}
	status, text := e.do(sessionToken, "POST", "/mcp/default/s1", "["+strings.Join(batch, ",")+"]",
		"Accept", "application/json, text/event-stream", "Content-Type", "application/json", "MCP-Protocol-Version", "2025-03-26")
	if found := strings.Count(text, "turn 20, message 1"); status != 200 || found != calls-2 {
		t.Errorf("%d, %d of %d searches: %.300s", status, found, calls-2, text)
	}
	large := "[" + strings.Repeat(batch[1]+",", 2*calls) + batch[1] + "]"
	if status, text := e.do(sessionToken, "POST", "/mcp/default/s1", large, "Accept", "application/json, text/event-stream", "Content-Type", "application/json"); status != 413 || !strings.Contains(text, `"too_large"`) {
		t.Errorf("a batch of %d requests: %d %.300s", 2*calls+1, status, text)
	}
	for _, c := range []limit.Class{limit.Memory, limit.Processor, limit.Reads, limit.Waits} {
		l.await(t, func() bool { return l.Held(c) == 0 })
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
