package mcpserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

const (
	filesToken = "token-of-session-s3"
	oddToken   = "token-of-session-odd"
)

// A model looks up its session over MCP: what a compaction removed, where, and the original.
func TestMCP(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Config, env.Summarizer = workertest.NewConfig(t, policy.Default()), extract.New()
	summarized := make(chan observe.SummaryDone, 64)
	r := env.StartReady("a", observe.Listener{SummaryDone: func(d observe.SummaryDone) { summarized <- d }})
	e := env.StartEdge(r.Worker, nil)
	const odd = "thread 7/a"
	id, err := events.SessionID(odd)
	if err != nil {
		t.Fatal(err)
	}
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.SessionToken, "default/s1 session") +
		workertest.TokenLine(filesToken, "default/s3 session") + workertest.TokenLine(oddToken, "default/"+id+" session"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 24; n++ { // the window has room for them: the one compaction is the one of the tool
		e.Post("s1", "turns", strings.Replace(string(workertest.Turn(n)), ":16000", ":200000", 1))
	}
	e.Post("s1", "turns", `{"turn":25,"messages":[{"role":"user","content":"`+strings.Repeat("é", 20_000)+`"}]}`)
	e.Post("s3", "turns", string(workertest.CallsTurn(1, "read_file:/a.go", "write_file:/b.go")))
	e.Post(odd, "turns", `{"turn":1,"messages":[{"role":"user","content":"odd"}]}`)

	s, err := e.MCP(workertest.SessionToken, "default", "s1")
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
	if text, bad := e.CallTool(s, "compact_now", map[string]any{"focus": "the words"}); bad || !strings.Contains(text, "ompact") {
		t.Errorf("compact_now: %s", text)
	}
	workertest.Next(t, summarized, "summary")
	env.AwaitDecided()
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
		{"recall", map[string]any{}, "missing_field: turn or text is required, not both. ", true},
		{"recall", map[string]any{"turn": -1}, "out_of_range: turn must be between 1 and 2147483648. ", true},
		{"recall", map[string]any{"turn": 1, "index": -1}, "out_of_range: index must be between 0 and 2147483648. ", true},
		{"recall", map[string]any{"turn": 1, "session": "a/b"}, "bad_id: ancestor is not 1 to 352 of A-Z a-z 0-9 _ -. ", true},
		{"search_history", map[string]any{"text": "word", "limit": 101}, "out_of_range: limit must be between 1 and 100. ", true},
		{"search_history", map[string]any{"text": "word", "limit": -1}, "out_of_range: limit must be between 1 and 100. ", true},
		{"search_history", map[string]any{"text": strings.Repeat("x", 1025)}, "too_large: text is longer than 1024 bytes; text is empty. ", true},
		{"compact_now", map[string]any{"focus": strings.Repeat("x", 4097)}, "too_large: focus is longer than 4096 bytes. ", true},
		{"search_history", map[string]any{"text": "WORD", "limit": 2}, "turn 24, message 1, assistant", false},
		{"search_history", map[string]any{"text": "no such text"}, "Not found.", false},
		{"search_history", map[string]any{}, "missing_field", true},
		{"what_was_dropped", map[string]any{}, "generation 1, ", false},
		{"what_was_dropped", map[string]any{"since_generation": 99}, "Nothing was removed after generation 99.", false},
		{"context_stats", map[string]any{}, "turns: 25", false},
		{"files", map[string]any{}, "No files.", false},
	} {
		text, bad := e.CallTool(s, c.tool, c.arguments)
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
		if out.CacheScope != "private" {
			t.Errorf("%s: the cache scope is %q", uri, out.CacheScope)
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
	o, err := e.MCP(oddToken, "default", odd)
	if err != nil {
		t.Fatal(err)
	}
	if text, bad := e.CallTool(o, "recall", map[string]any{"turn": 1}); bad || !strings.Contains(text, "odd") {
		t.Errorf("a session with a free name: %s", text)
	}
	f, err := e.MCP(filesToken, "default", "s3")
	if err != nil {
		t.Fatal(err)
	}
	if text, bad := e.CallTool(f, "files", nil); bad || !strings.Contains(text, "/b.go: changed, turns 1 to 1, 0 reads, 1 changes") {
		t.Errorf("files: %s", text)
	}
}

// A session is shown to a token of that session alone, and such a token is for nothing else.
func TestMCPTokens(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.OperatorToken, "* operator") +
		workertest.TokenLine(workertest.SessionToken, "default/s1 session") +
		workertest.TokenLine(workertest.ExpiredToken, "default/s1 session 2020-01-01T00:00:00Z"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	e.Post("s1", "turns", string(workertest.Turn(1)))
	e.Post("s2", "turns", string(workertest.Turn(1)))
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"turn":1}}}`
	accept := []string{"Accept", "application/json, text/event-stream", "Content-Type", "application/json"}
	for _, c := range []struct {
		token, path string
		want        int
	}{
		{workertest.SessionToken, "/mcp/default/s1", 200},
		{"", "/mcp/default/s1", 401},
		{"wrong", "/mcp/default/s1", 401},
		{workertest.ExpiredToken, "/mcp/default/s1", 401},
		{workertest.DefaultToken, "/mcp/default/s1", 403},
		{workertest.DefaultToken, "/%6Dcp/default/s1", 403},
		{workertest.OperatorToken, "/mcp/default/s1", 403},
		{workertest.SessionToken, "/mcp/default/s2", 403},
		{workertest.SessionToken, "/mcp/acme/s1", 403},
		{workertest.SessionToken, "/mcp/default/s1/../s2", 404},
		{workertest.SessionToken, "/mcp/default/s1%2F..%2Fs2", 403},
		{workertest.SessionToken, "/mcp/default/S1", 403},
		{workertest.SessionToken, "/v1/sessions/default/s1/turns", 403},
	} {
		status, text := e.Do(c.token, "POST", c.path, body, accept...)
		if status != c.want || (status == 200) != strings.Contains(text, "[turn 1, message 0, user]") {
			t.Errorf("%.12q %s: %d %s, want %d", c.token, c.path, status, text, c.want)
		}
	}
	for _, path := range []string{"/v1/sessions/default/s1/context", "/v1/sessions/default/s1/recall?turn=1", "/v1/sessions", "/v1/sessions/default/s1/events", "/v1/openapi.json", "/v1/health"} {
		if status, text := e.Do(workertest.SessionToken, "GET", path, ""); status != 403 {
			t.Errorf("the token of a session GET %s: %d %s", path, status, text)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, text := e.Do(workertest.SessionToken, method, "/mcp/default/s1", "", accept...); status != 405 {
			t.Errorf("%s: %d %s", method, status, text)
		}
	}
	if status, text := e.Do(workertest.SessionToken, "POST", "/mcp/default/s1", `{"a":"`+strings.Repeat("x", 70<<10)+`"}`, accept...); status != 413 {
		t.Errorf("a large request: %d %.100s", status, text)
	}
	if _, err := e.MCP(workertest.DefaultToken, "default", "s1"); err == nil {
		t.Error("a client with the token of an agent is connected")
	}
	for line, want := range map[string]string{
		"default session": "tenant/session", "default/ session": "tenant/session", "default/a/b session": "tenant/session", "*/s1 session": "tenant/session", "default/s1 agent": "tenant is not",
	} {
		e.WriteTokens(workertest.TokenLine("x", line))
		if err := e.Listener.Reload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Tools that a model calls in one request run at once: each is an operation of its own, and all give back their
// shares.
func TestMCPBatch(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, l := env.RunLimitedEdge(0)
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.SessionToken, "default/s1 session"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 20; n++ {
		e.Post("s1", "turns", string(workertest.Turn(n)))
	}
	const calls = 20
	batch := make([]string, calls)
	for i := range batch {
		batch[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search_history","arguments":{"text":"word"}}}`, i)
		if i%10 == 0 {
			batch[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"compact_now","arguments":{"focus":"%d"}}}`, i, i)
		}
	}
	status, text := e.Do(workertest.SessionToken, "POST", "/mcp/default/s1", "["+strings.Join(batch, ",")+"]",
		"Accept", "application/json, text/event-stream", "Content-Type", "application/json", "MCP-Protocol-Version", "2025-03-26")
	if found := strings.Count(text, "turn 20, message 1"); status != 200 || found != calls-2 {
		t.Errorf("%d, %d of %d searches: %.300s", status, found, calls-2, text)
	}
	large := "[" + strings.Repeat(batch[1]+",", 2*calls) + batch[1] + "]"
	status, text = e.Do(workertest.SessionToken, "POST", "/mcp/default/s1", large, "Accept", "application/json, text/event-stream", "Content-Type", "application/json")
	if status != 413 || !strings.Contains(text, `"too_large"`) {
		t.Errorf("a batch of %d requests: %d %.300s", 2*calls+1, status, text)
	}
	for _, c := range []limit.Class{limit.Memory, limit.Processor, limit.Reads, limit.Waits} {
		l.Await(t, func() bool { return l.Held(c) == 0 })
	}
}
