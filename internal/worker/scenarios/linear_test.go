package scenarios_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/linear"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// linearEnv is a worker whose requests are measured.
type linearEnv struct {
	t        testing.TB
	edge     *workertest.Edge
	sessions int
}

// newLinearEnv starts a worker without files, whose checkpoints would come at any time.
func newLinearEnv(t *testing.T) *linearEnv {
	t.Helper()
	env := workertest.New(t, t.TempDir())
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, nil)
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	return &linearEnv{t: t, edge: e}
}

// session is the name of a new one.
func (l *linearEnv) session() string {
	l.sessions++
	return fmt.Sprintf("s%d", l.sessions)
}

// send sends a request whose body comes in chunks, and returns the status.
func (l *linearEnv) send(method, path, body string, chunk int) int {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, "http://"+l.edge.Listener.Addr()+path, io.NopCloser(&chunks{body, chunk}))
	if err != nil {
		l.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	}
	r.Header.Set("Authorization", "Bearer "+workertest.DefaultToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode
}

// chunks is a body whose writer sends a little at a time.
type chunks struct {
	rest string
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// units are the messages that requests have many of.
var units = []struct {
	name string
	of   func(i int, text string, depth int) string
}{
	{"user", func(_ int, text string, _ int) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }},
	{"assistant", func(i int, text string, _ int) string {
		return fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text)
	}},
	{"pair", func(i int, text string, _ int) string {
		if i%2 == 0 {
			return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"a%d\"}"}}]}`, i, i)
		}
		return fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i-1, text)
	}},
	{"open call", func(i int, _ string, _ int) string {
		return fmt.Sprintf(`{"role":"assistant","content":"a","tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, i)
	}},
	{"result alone", func(i int, text string, _ int) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, text)
	}},
	{"nested", func(_ int, text string, depth int) string {
		return fmt.Sprintf(`{"role":"user","content":"a","x":%s%q%s}`, strings.Repeat("[", depth), text, strings.Repeat("]", depth))
	}},
	{"nested arguments", func(i int, _ string, depth int) string {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":%q}}]}`, i,
			`{"a":`+strings.Repeat(`{"b":`, depth)+"1"+strings.Repeat("}", depth)+"}")
	}},
	{"contents", func(_ int, text string, depth int) string {
		return fmt.Sprintf(`{"role":"user","content":[%s{"type":"text","text":"a"}]}`, strings.Repeat(fmt.Sprintf(`{"type":"text","text":%q},`, text), min(depth, 3)))
	}},
	{"image", func(_ int, text string, _ int) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`, text)
	}},
	{"spaces", func(_ int, text string, depth int) string {
		return fmt.Sprintf(`{%s"role" : "user" , "content" : %q}`, strings.Repeat(" \n", depth), text)
	}},
	{"no message", func(_ int, text string, _ int) string { return fmt.Sprintf("%q", text) }},
}

// ways are the requests that carry messages.
var ways = []struct {
	name, path string
	body       func(messages []string) string
}{
	{"turn", "/turns", func(m []string) string {
		return `{"turn":1,` + wideModel + `,"messages":[` + strings.Join(m, ",") + `]}`
	}},
	{"sync", "/sync", func(m []string) string { return `{` + wideModel + `,"messages":[` + strings.Join(m, ",") + `]}` }},
	{"check", "/check", func(m []string) string { return `{"messages":[` + strings.Join(m, ",") + `]}` }},
	{"attach", "/attach", func(m []string) string {
		return fmt.Sprintf(`{"context_window":3000,"max_output_tokens":100,"attachments":[{"name":"a","text":%q}]}`, strings.Join(m, ",\n")) // more than fits
	}},
	{"overflow", "/overflow", func(m []string) string { return `{"status":400,"error":[` + strings.Join(m, ",") + `]}` }},
	{"compress", "", func(m []string) string { return `{"model":"gpt-4o","messages":[` + strings.Join(m, ",") + `]}` }},
	{"one message", "/turns", func(m []string) string {
		return fmt.Sprintf(`{"turn":1,%s,"messages":[{"role":"user","content":%q}]}`, wideModel, strings.Join(m, ",\n"))
	}},
	{"tools", "/turns", func(m []string) string {
		return `{"turn":1,` + wideModel + `,"tools":[` + strings.Join(m, ",") + `],"messages":[{"role":"user","content":"a"}]}`
	}},
}

// wideModel is one whose window no request fills.
const wideModel = `"format":"openai","model":{"provider":"x","name":"x","context_window":100000000,"max_output_tokens":100}`

// linearUnits is how many a small request has; a large one has four times as many.
const linearUnits = 500

// mostGrowth is how much more than four times as much a request may cost that is four times as long.
const mostGrowth = 2.5

// requestRatio is how the cost grows of one kind of request.
func (l *linearEnv) requestRatio(way, unit int, text string, depth, chunk int) linear.Ratio {
	w, u := ways[way%len(ways)], units[unit%len(units)]
	var payloads [2]string
	for size, n := range []int{linearUnits, 4 * linearUnits} {
		messages := make([]string, n)
		for i := range messages {
			messages[i] = u.of(i, text, depth)
		}
		payloads[size] = w.body(messages)
	}
	if len(payloads[1]) > events.MaxTurnBytes {
		l.t.Skip("larger than a turn may be")
	}
	return linear.RatioOf(linearUnits, mostGrowth, func(size int) linear.Cost {
		path := "/v1/sessions/default/" + l.session() + w.path
		if w.path == "" {
			path = "/v1/compress"
		}
		return linear.OfProcess(func() { l.send(http.MethodPost, path, payloads[size], chunk) })
	})
}

// P24: the cost of a request, from its first byte to its answer and in the whole worker, is linear in its
// bytes, for requests of any kind.
func TestRequestsLinear(t *testing.T) { testRequestsLinear(t, 5) }

// testRequestsLinear tries one of so many kinds.
func testRequestsLinear(t *testing.T, every int) {
	l, worst, cases := newLinearEnv(t), linear.Ratio{}, 0
	for way := range ways {
		for unit := range units {
			if (way+unit)%every != 0 {
				continue
			}
			cases++
			r := l.requestRatio(way, unit, "some words of a text", 20, 4<<10)
			if r.Worst() > mostGrowth {
				t.Errorf("%s of %q: %v", ways[way].name, units[unit].name, r)
			}
			worst = worst.Max(r)
		}
	}
	figures.Print(t, "P24", "requests", cases, "worst_cpu", fmt.Sprintf("%.2f", worst.CPU), "worst_bytes", fmt.Sprintf("%.2f", worst.Bytes))
}

// FuzzRequest sends requests of any size, count, nesting and pace, and compares the cost of four times as much.
func FuzzRequest(f *testing.F) {
	for way := range ways {
		if way%2 == 0 {
			f.Add(byte(way), byte(way), "text", byte(2), uint16(100))
		} else {
			f.Add(byte(way), byte(way+5), strings.Repeat("long ", 100), byte(60), uint16(60_000))
		}
	}
	f.Fuzz(func(t *testing.T, way, unit byte, text string, depth byte, chunk uint16) {
		if len(text) > 1<<10 {
			t.Skip("longer than a request may have many of")
		}
		l := newLinearEnv(t)
		if r := l.requestRatio(int(way), int(unit), text, int(depth), max(int(chunk), 64)); r.Worst() > mostGrowth {
			t.Errorf("%v", r)
		}
	})
}

// pairs are calls and their results, each of a file of its own.
func pairs(n int) []string {
	messages := make([]string, n)
	for i := range messages {
		messages[i] = units[2].of(i, "the words of a result", 0)
	}
	return messages
}

// oneOfCalls is a message that reads so many files.
func oneOfCalls(n int) []string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"a%d\"}"}}`, i, i)
	}
	return []string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`}
}

// P24: the cost of what reads a session, or compacts it, is linear in its messages.
func TestReadsLinear(t *testing.T) {
	l := newLinearEnv(t)
	l.edge.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine("small", "default/s0 session") + workertest.TokenLine("large", "default/s1 session"))
	if err := l.edge.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	const n, compactions = 250, 4
	var models [2]*mcp.ClientSession
	var seqs [2]uint64 // of the turns
	for size, n := range []int{n, 4 * n} {
		session := fmt.Sprintf("/v1/sessions/default/s%d", size)
		l.edge.Post(fmt.Sprintf("one%d", size), "turns", ways[0].body(oneOfCalls(n)))
		messages := pairs(n)
		_, stored := l.edge.Post(fmt.Sprintf("s%d", size), "turns", ways[0].body(messages))
		seqs[size] = stored.Seq
		for range compactions {
			l.want(http.MethodPost, session+"/compact", `{"model":{"name":"x","context_window":1500,"max_output_tokens":100},"policy":{"summarize":{"enabled":false}}}`)
			l.want(http.MethodPost, session+"/rewind", `{"generation":0}`)
		}
		var err error
		if models[size], err = l.edge.MCP([]string{"small", "large"}[size], "default", fmt.Sprintf("s%d", size)); err != nil {
			t.Fatal(err)
		}
	}
	worst, reads := linear.Ratio{}, 0
	measure := func(name string, run func(size int)) {
		run(0)
		run(1)
		r := linear.RatioOf(n, mostGrowth, func(size int) linear.Cost { return linear.OfProcess(func() { run(size) }) })
		if r.Worst() > mostGrowth {
			t.Errorf("%s: %v", name, r)
		}
		worst, reads = worst.Max(r), reads+1
	}
	for _, path := range []string{
		"context", "context?generation=0", "context?generation=1", "stats", "files", "history", "recall?turn=1", "recall?turn=1&index=0",
		"recall?text=nowhere", "recall?text=words&limit=100", "recall?text=w",
	} {
		measure(path, func(size int) { l.want(http.MethodGet, fmt.Sprintf("/v1/sessions/default/s%d/%s", size, path), "") })
	}
	measure("files of one message", func(size int) { l.want(http.MethodGet, fmt.Sprintf("/v1/sessions/default/one%d/files", size), "") })
	measure("outcome", func(size int) {
		l.want(http.MethodGet, fmt.Sprintf("/v1/sessions/default/s%d/outcome?seq=%d", size, seqs[size]), "")
	})
	for name, arguments := range map[string]map[string]any{
		"recall": {"turn": 1}, "search_history": {"text": "nowhere"}, "what_was_dropped": {}, "context_stats": {}, "files": {},
	} {
		measure(name, func(size int) {
			if text, failed := l.edge.CallTool(models[size], name, arguments); failed {
				t.Fatalf("%s: %s", name, text)
			}
		})
	}
	for _, resource := range []string{"summary", "generation/0"} {
		measure(resource, func(size int) {
			if _, err := models[size].ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "compactd://session/" + resource}); err != nil {
				t.Fatal(err)
			}
		})
	}
	for verb, body := range map[string]string{
		"compact": `{}`, "rewind": `{"generation":0}`, "overflow": `{"error":"prompt is too long: 210000 tokens > 200000 maximum"}`, "turns": `{"messages":[{"role":"user","content":"a"}]}`,
	} {
		measure(verb, func(size int) {
			l.send(http.MethodPost, fmt.Sprintf("/v1/sessions/default/s%d/%s", size, verb), body, 4<<10)
		})
	}
	figures.Print(t, "P24", "reads", reads, "worst_cpu", fmt.Sprintf("%.2f", worst.CPU), "worst_bytes", fmt.Sprintf("%.2f", worst.Bytes))
}

// want sends a request that is answered.
func (l *linearEnv) want(method, path, body string) {
	l.t.Helper()
	if status := l.send(method, path, body, 4<<10); status != http.StatusOK {
		l.t.Fatalf("%s: %d", path, status)
	}
}
