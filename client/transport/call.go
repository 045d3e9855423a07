package transport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"compactd/client"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// api is a kind of request with a history.
type api struct {
	path             string // the end of it
	format           events.Format
	provider         string
	messages, system string   // members of the body; "" if the messages contain it
	output           []string // members with the most tokens of an answer
	counts           bool     // no model answers: tokens are counted
}

var apis = []api{
	{path: "/chat/completions", format: events.OpenAI, provider: "openai", messages: "messages", output: []string{"max_completion_tokens", "max_tokens"}},
	{path: "/responses", format: events.Responses, provider: "openai", messages: "input", system: "instructions", output: []string{"max_output_tokens"}},
	{path: "/messages", format: events.Anthropic, provider: "anthropic", messages: "messages", system: "system", output: []string{"max_tokens"}},
	{path: "/messages/count_tokens", format: events.Anthropic, provider: "anthropic", messages: "messages", system: "system", counts: true},
}

// apiOf returns the kind of a request; nil where its body must not change.
func apiOf(r *http.Request) *api {
	signed := strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC")
	if r.Method != http.MethodPost || r.Body == nil || signed || r.Header.Get("Content-Encoding") != "" || r.ContentLength > events.MaxSyncBytes {
		return nil
	}
	for i := range apis {
		if strings.HasSuffix(r.URL.Path, apis[i].path) {
			return &apis[i]
		}
	}
	return nil
}

// call is a request of a model, with its history.
type call struct {
	*api
	request  *http.Request
	body     []byte
	members  map[string]codec.Raw // parts of body
	messages []json.RawMessage    // parts of body; nil where there is no history
	from, to int                  // of their array in body
	rest     io.ReadCloser        // of a body that is too large to read; nil for none
}

// read reads the body of a request.
func read(r *http.Request, a *api) (*call, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, events.MaxSyncBytes+1))
	c := &call{api: a, request: r, body: body, members: map[string]codec.Raw{}}
	if err == nil && len(body) > events.MaxSyncBytes { // it came without its length
		c.rest = r.Body
		return c, nil
	}
	if closed := r.Body.Close(); err == nil {
		err = closed
	}
	if err != nil || !c.parse() || codec.IsSet(c.members["previous_response_id"]) || codec.IsSet(c.members["conversation"]) {
		return c, err
	}
	messages, _ := codec.ReadArray(c.members[a.messages])
	if n := len(messages); n > 0 && isTrigger(messages[n-1]) {
		return c, nil
	}
	for _, m := range messages {
		c.messages = append(c.messages, json.RawMessage(m))
	}
	return c, nil
}

// parse finds the members of the body, each once, and where the messages are.
func (c *call) parse() bool {
	if codec.Check(c.body) != nil {
		return false
	}
	w, unique := codec.Walk(c.body), true
	w.Object(func(key []byte) {
		name, v := string(key), w.Value()
		unique = unique && c.members[name] == nil
		if c.members[name] = v; name == c.api.messages {
			c.to = w.Offset()
			c.from = c.to - len(v)
		}
	})
	return w.End() == nil && unique
}

// isTrigger reports whether an item has the provider compact the history in front of it.
func isTrigger(item codec.Raw) bool {
	return codec.String(codec.Get(item, "type")) == "compaction_trigger"
}

// modelOf is the model of the call, unless the settings name one. Azure has it in the path.
func (c *call) modelOf(set client.Model) client.Model {
	_, path, _ := strings.Cut(c.request.URL.Path, "/deployments/")
	deployment, _, _ := strings.Cut(path, "/")
	set.Provider, set.Name = cmp.Or(set.Provider, c.provider), cmp.Or(set.Name, codec.String(c.members["model"]), deployment)
	for _, member := range c.output {
		if n, _ := codec.Integer(c.members[member]); n > 0 && (set.ContextWindow == 0 || n < set.ContextWindow) { // a larger number is no reserve
			set.MaxOutputTokens = cmp.Or(set.MaxOutputTokens, n)
		}
	}
	return set
}

// config has the settings of the body beside the messages.
func (c *call) config(set client.Config) client.Config {
	set.Format, set.Model = string(c.format), c.modelOf(set.Model)
	if v := c.members[c.api.system]; codec.IsSet(v) {
		set.System = v
	}
	if v := c.members["tools"]; codec.IsSet(v) {
		set.Tools = v
	}
	return set
}

// with is the body with the messages to send.
func (c *call) with(f *client.Fitted[json.RawMessage]) []byte {
	if !f.Changed {
		return c.body
	}
	raws := make([][]byte, len(f.Messages))
	for i, m := range f.Messages {
		raws[i] = m
	}
	array := bytes.Join(raws, []byte{','})
	return bytes.Join([][]byte{c.body[:c.from], {'['}, array, {']'}, c.body[c.to:]}, nil)
}

// narrow leaves only the encodings that can be read here.
func (c *call) narrow() {
	encodings := strings.Join(c.request.Header.Values("Accept-Encoding"), ",")
	if encodings == "" {
		return
	}
	c.request = c.request.Clone(c.request.Context())
	if strings.Contains(encodings, "gzip") {
		c.request.Header.Set("Accept-Encoding", "gzip")
	} else {
		c.request.Header.Set("Accept-Encoding", "identity")
	}
}

// send sends the request with a body, which is kept until the answer begins.
func (c *call) send(base http.RoundTripper, body []byte) (*http.Response, error) {
	r := c.request.WithContext(c.request.Context()) // a copy
	if c.rest != nil {
		r.Body = whole{io.MultiReader(bytes.NewReader(body), c.rest), c.rest}
		return base.RoundTrip(r)
	}
	p := &payload{data: body}
	r.ContentLength, r.GetBody = int64(len(body)), p.open
	r.Body, _ = p.open()
	defer p.drop()
	return base.RoundTrip(r)
}

// payload is a body until it is dropped. A stream may go on for hours, and its request with it.
type payload struct {
	mu   sync.Mutex // guards data
	data []byte
}

var errAnswered = errors.New("the request was answered")

func (p *payload) open() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data == nil {
		return nil, errAnswered
	}
	return io.NopCloser(&forgetful{bytes.NewReader(p.data)}), nil
}

func (p *payload) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data = nil
}

// forgetful is a reader that has nothing at its end.
type forgetful struct{ of *bytes.Reader }

func (f *forgetful) Read(b []byte) (int, error) {
	n, err := f.of.Read(b)
	if f.of.Len() == 0 {
		f.of = bytes.NewReader(nil)
	}
	return n, err
}

// whole is a body that was read in part.
type whole struct {
	io.Reader
	io.Closer
}
