package compress_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/workertest"
)

// caller is what a gateway sends, by its source or manual: testdata/gateways/*.json.
type caller struct {
	Source  string
	Headers map[string]string
	Body    map[string]any // without the messages
	Format  events.Format  // of the provider; "" is the one that the messages show
	First   []codec.Raw
	Step    []codec.Raw // has {n} and {text}

	TextBytes  int   `json:"text_bytes"`
	MostBytes  int   `json:"most_bytes"`  // of a request and of an answer; 0 is no bound
	MostTokens int64 `json:"most_tokens"` // of an answer; 0 is no bound

	name    string
	e       *workertest.Edge
	history []codec.Raw
	last    answer
}

// answer is what gateways read of an answer.
type answer struct {
	Messages     []codec.Raw
	TokensBefore *int64    `json:"tokens_before"`
	TokensAfter  *int64    `json:"tokens_after"`
	TokensSaved  *int64    `json:"tokens_saved"`
	Ratio        *float64  `json:"compression_ratio"`
	Transforms   *[]string `json:"transforms_applied"`

	Hashes     []string `json:"ccr_hashes"`
	Session    string
	Generation int64
	Code       events.Code
}

func callers(t *testing.T) (all []*caller) {
	t.Helper()
	files, err := filepath.Glob("testdata/gateways/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		c := &caller{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err == nil {
			err = json.Unmarshal(data, c)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		all = append(all, c)
	}
	return all
}

// is reports whether a caller is one of a gateway.
func (c *caller) is(gateway string) bool { return strings.HasPrefix(c.name, gateway) }

// step lets the agent call a tool.
func (c *caller) step(n, size int) {
	text := strings.Repeat(fmt.Sprintf("line %d of part. ", n), size/16)
	with := strings.NewReplacer("{n}", strconv.Itoa(n), "{text}", text)
	for _, raw := range c.Step {
		c.history = append(c.history, codec.Raw(with.Replace(string(raw))))
	}
}

func (c *caller) request() string {
	body := maps.Clone(c.Body)
	body["messages"] = c.history
	data, err := json.Marshal(body)
	if err != nil {
		c.e.T.Fatal(err)
	}
	return string(data)
}

// compress sends the history and checks the answer as the gateway does. It returns the answer.
func (c *caller) compress() answer {
	t := c.e.T
	t.Helper()
	var headers []string
	for name, value := range c.Headers {
		headers = append(headers, name, value)
	}
	status, text := c.e.Do(workertest.DefaultToken, "POST", "/v1/compress", c.request(), headers...)
	var out answer
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 || len(out.Messages) == 0 {
		t.Fatalf("%d %.400s", status, text)
	}
	if err := schematest.Validate("compress-response", []byte(text)); err != nil {
		t.Error(err)
	}
	if c.MostBytes > 0 && len(text) > c.MostBytes {
		t.Errorf("the answer has %d bytes", len(text))
	}
	if out.TokensBefore == nil || out.TokensAfter == nil || out.TokensSaved == nil || out.Ratio == nil || out.Transforms == nil {
		t.Errorf("a member that it reads is not there: %.400s", withoutMessages(text))
	}
	if broken := unpaired(out.Messages); len(broken) > 0 {
		t.Errorf("calls without a result, or results without a call: %v", broken)
	}
	if problems := validate.Messages(events.FormatOf(c.history, c.Format), out.Messages); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	if c.is("litellm") && !slices.Equal(hashesOfTexts(out.Messages), out.Hashes) {
		t.Errorf("it finds the hashes %v, of %v", hashesOfTexts(out.Messages), out.Hashes)
	}
	if !c.is("litellm") && len(out.Hashes) > 0 {
		t.Errorf("its models cannot retrieve %v", out.Hashes)
	}
	return out
}

// grow sends a longer history, and checks the prefix.
func (c *caller) grow(n int) {
	t := c.e.T
	t.Helper()
	c.step(n, c.TextBytes)
	before := c.last
	c.last = c.compress()
	if c.last.Code != "" || c.last.Session == "" {
		t.Fatalf("step %d: session %q, code %q", n, c.last.Session, c.last.Code)
	}
	if c.last.Generation == before.Generation && !workertest.BeginsWith(c.last.Messages, before.Messages) {
		t.Errorf("step %d: the prefix has other bytes in generation %d", n, c.last.Generation)
	}
	if c.MostTokens > 0 && *c.last.TokensAfter > c.MostTokens {
		t.Errorf("step %d: %d tokens, at most %d", n, *c.last.TokensAfter, c.MostTokens)
	}
}

func withoutMessages(text string) string {
	_, rest, _ := strings.Cut(text, `"tokens_before"`)
	return rest
}

// unpaired lists the ids of calls and results that stand alone, as agentgateway finds them.
func unpaired(messages []codec.Raw) (ids []string) {
	calls, results := map[string]bool{}, map[string]bool{}
	type block struct {
		Type, ID  string
		ToolUseID string `json:"tool_use_id"`
	}
	for _, raw := range messages {
		var m struct {
			Type       string
			CallID     string  `json:"call_id"`
			ToolCallID string  `json:"tool_call_id"`
			ToolCalls  []block `json:"tool_calls"`
			Content    json.RawMessage
		}
		var blocks []block
		if json.Unmarshal(raw, &m) != nil {
			return []string{"a message that is no object"}
		}
		if bytes.HasPrefix(m.Content, []byte("[")) && json.Unmarshal(m.Content, &blocks) != nil {
			return []string{"a block that is no object"}
		}
		calls[""], results[""] = true, true
		for _, call := range m.ToolCalls {
			calls[call.ID] = true
		}
		results[m.ToolCallID] = true
		for _, b := range blocks {
			calls[map[bool]string{true: b.ID}[b.Type == "tool_use"]] = true
			results[b.ToolUseID] = true
		}
		calls[map[bool]string{true: m.CallID}[m.Type == "function_call"]] = true
		results[map[bool]string{true: m.CallID}[m.Type == "function_call_output"]] = true
	}
	for id := range calls {
		if !results[id] {
			ids = append(ids, id)
		}
	}
	for id := range results {
		if !calls[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// hashesIn lists those that LiteLLM finds, which looks at texts of contents alone.
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

// hashesOfTexts lists the hashes that LiteLLM finds: in a content, or in the texts of its blocks.
func hashesOfTexts(messages []codec.Raw) []string {
	out := []string{}
	for _, raw := range messages {
		var m struct {
			Content []struct{ Text string }
		}
		out = append(out, hashesIn([]codec.Raw{raw})...)
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		for _, b := range m.Content {
			text, _ := json.Marshal(map[string]string{"content": b.Text})
			out = append(out, hashesIn([]codec.Raw{text})...)
		}
	}
	return out
}

// Each gateway that teams have gets answers that it takes, for the requests that it sends: the
// history shrinks, calls keep their results, bytes change with a generation alone, and an
// original comes back where the gateway has a tool for it.
func TestGateways(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	for _, c := range callers(t) {
		t.Run(c.name, func(t *testing.T) {
			sub := *e
			sub.T, c.e, c.history = t, &sub, slices.Clone(c.First)
			if first := c.compress(); len(first.Messages) != len(c.First) || first.Code != "" {
				t.Errorf("a first request: %+v", first)
			}
			for n := range 24 {
				c.grow(n)
			}
			if c.last.Generation == 0 || *c.last.TokensSaved == 0 || *c.last.Ratio >= 1 {
				t.Errorf("nothing was saved in generation %d", c.last.Generation)
			}
			if c.is("litellm") {
				c.retrieve()
			}
			if c.MostBytes > 0 {
				c.fill()
			}
			if c.is("kong") {
				c.another()
			}
		})
	}
}

// retrieve gets the originals as LiteLLM does: by 24 hex digits, with the query of the model.
func (c *caller) retrieve() {
	t := c.e.T
	t.Helper()
	if len(c.last.Hashes) == 0 {
		t.Error("there is nothing to retrieve")
	}
	for _, hash := range c.last.Hashes {
		status, text := c.e.Do(workertest.DefaultToken, "GET", "/v1/retrieve/"+hash+"?query=line+2", "", "Content-Type", "application/json")
		var out struct {
			Original string `json:"original_content"`
		}
		if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 || !strings.Contains(fmt.Sprintf("%s", c.history), out.Original) || out.Original == "" {
			t.Errorf("%s: %d %.200s", hash, status, text)
		}
	}
	if status, _ := c.e.Do(workertest.DefaultToken, "GET", "/v1/retrieve/"+strings.Repeat("f", 24), ""); status != 404 {
		t.Errorf("a hash of nothing: %d", status)
	}
}

// fill sends the largest history that the gateway has room for.
func (c *caller) fill() {
	const step = 400
	for n := 24; c.MostBytes-len(c.request()) > step; n++ {
		c.step(n, min(c.TextBytes, c.MostBytes-len(c.request())-step))
	}
	if out := c.compress(); out.Code != "" || *out.TokensSaved == 0 {
		c.e.T.Errorf("a request of %d bytes: %+v", len(c.request()), out.Code)
	}
}

// another sends a second conversation with the same name, as Kong names both where they begin
// alike: each has its own words.
func (c *caller) another() {
	first, was := c.last.Session, c.history
	c.history, c.last = slices.Clone(c.First), answer{}
	for n := range 24 {
		c.grow(n + 100)
	}
	if c.last.Session == first || strings.Contains(fmt.Sprintf("%s", c.last.Messages), "line 23 ") {
		c.e.T.Errorf("it shares the session %q", first)
	}
	c.history = was
	if out := c.compress(); out.Session != first {
		c.e.T.Errorf("the first conversation goes on in %q, not in %q", out.Session, first)
	}
}

// A gateway decides by the status: 200 has messages that can be sent, also where compactd could do
// nothing. All else is a failure, which LiteLLM and Kong refuse the call for by default, and agentgateway and
// Portkey do not.
func TestGatewaysFail(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	const unpairedCall = `{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"Why?"}`
	for _, c := range []struct {
		name, token, body string
		status            int
	}{
		{"a call without its result", workertest.DefaultToken, `{"model":"gpt-4","messages":[` + unpairedCall + `]}`, 200},
		{"a role that is none", workertest.DefaultToken, `{"model":"gpt-4","messages":[{"role":"no-role","content":"Hi"},{"role":"assistant","content":7}]}`, 200},
		{
			"a model that is unknown", workertest.DefaultToken,
			`{"model":"team/fast","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},{"role":"user","content":"Why?"}]}`, 200,
		},
		{"no model", workertest.DefaultToken, `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},{"role":"user","content":"Why?"}]}`, 200},
		{"options that are null", workertest.DefaultToken, `{"model":null,"token_budget":null,"config":{"session_id":null,"target_ratio":null},"messages":[{"role":"user","content":"Hi"}]}`, 200},
		{"no token", "", `{"model":"gpt-4","messages":[{"role":"user","content":"Hi"}]}`, 401},
		{"no messages", workertest.DefaultToken, `{"model":"gpt-4"}`, 400},
	} {
		status, text := e.Do(c.token, "POST", "/v1/compress", c.body, "Content-Type", "application/json", "X-Agw-Compression-Version", "1")
		var in, out struct{ Messages []codec.Raw }
		if err := json.Unmarshal([]byte(text), &out); err != nil || status != c.status {
			t.Errorf("%s: %d %s", c.name, status, text)
		}
		if err := json.Unmarshal([]byte(c.body), &in); err != nil {
			t.Fatal(err)
		}
		if status != 200 {
			continue
		}
		if len(unpaired(in.Messages)) > 0 {
			if broken := unpaired(out.Messages); len(broken) > 0 {
				t.Errorf("%s: %v stay broken: %s", c.name, broken, text)
			}
		} else if !workertest.BeginsWith(out.Messages, in.Messages) || len(out.Messages) != len(in.Messages) {
			t.Errorf("%s: the messages come back changed: %s", c.name, text)
		}
	}
}
