package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"compactd/client"
	"compactd/client/transport"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Compacter compacts a session now, and returns when that is decided. A [client.HTTP] does.
type Compacter interface {
	Compact(ctx context.Context, session string) error
}

// Bounds of a compaction that an agent waits for.
const (
	compactWait = 20 * time.Second
	syncWait    = 2 * time.Second
)

// answerCompaction answers an agent that requests a shorter history (POST …/responses/compact). It returns
// false, and the call goes upstream, if the provider keeps the history, an item is opaque, or no
// worker shortens the history.
func (g *Gateway) answerCompaction(w http.ResponseWriter, r *http.Request, report *transport.Report) bool {
	compacter, ok := g.config.Worker.(Compacter)
	if !ok || g.config.Audit || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/responses/compact") {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, events.MaxSyncBytes+1))
	r.Body = restored{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	if err != nil || len(body) > events.MaxSyncBytes {
		return false
	}
	c := compactionOf(r.Header, body)
	if c == nil {
		return false
	}
	session := g.sessionOf(c)
	if session == "" {
		return false
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), compactWait)
	defer cancel()
	s, err := g.compacted(ctx, compacter, session, c)
	if err != nil {
		g.config.OnProblem(client.Note{Code: "compact", Message: "the agent's own compaction goes upstream: " + err.Error(), Hint: "Check the worker."})
		return false
	}
	output := rawsOf(s.Messages)
	if codec.Size(output) >= codec.Size(c.Messages) {
		return false
	}
	*report = transport.Report{Session: session, Generation: s.Generation, Changed: true, Took: time.Since(began)}
	g.metrics.count(report, http.StatusOK)
	g.describe(w.Header(), report)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"resp_%s","object":"response.compaction","created_at":%d,"output":[%s],"usage":%s}`,
		strings.ReplaceAll(uuid.NewString(), "-", ""), began.Unix(), bytes.Join(output, []byte{','}), noUsage)
	return true
}

// noUsage is the usage of a compaction that called no model of the upstream.
const noUsage = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`

// compacted records the history of a call, requests its compaction, and returns the result.
func (g *Gateway) compacted(ctx context.Context, compacter Compacter, session string, c *transport.Call) (*client.Synced, error) {
	model, _ := codec.Text(codec.Raw(c.Body["model"]))
	set := client.Config{Format: c.Format, Model: g.config.Model}
	set.Model.Provider, set.Model.Name = cmp.Or(set.Model.Provider, "openai"), cmp.Or(set.Model.Name, model)
	if v := codec.Raw(c.Body["instructions"]); codec.IsSet(v) {
		set.System = v
	}
	if v := codec.Raw(c.Body["tools"]); codec.IsSet(v) {
		set.Tools = v
	}
	in := client.Sync{Config: set, Wait: syncWait}
	for _, m := range c.Messages {
		in.Messages = append(in.Messages, m)
	}
	s, err := g.config.Worker.Sync(ctx, session, in)
	if err != nil {
		return nil, err
	}
	if err := compacter.Compact(ctx, cmp.Or(s.Session, session)); err != nil {
		return nil, err
	}
	return g.config.Worker.Sync(ctx, session, in)
}

// compactionOf reads a request for a compaction; nil if the request does not have the whole
// history.
func compactionOf(h http.Header, body []byte) *transport.Call {
	c := &transport.Call{Header: h, Format: string(events.Responses), Body: map[string]json.RawMessage{}}
	members, err := codec.ReadObject(body)
	if err != nil || codec.Check(body) != nil {
		return nil
	}
	for _, m := range members {
		c.Body[m.Name] = json.RawMessage(m.Value)
	}
	items, err := codec.ReadArray(codec.Raw(c.Body["input"]))
	if err != nil || codec.IsSet(codec.Raw(c.Body["previous_response_id"])) || codec.IsSet(codec.Raw(c.Body["conversation"])) || slices.ContainsFunc(items, isCompactionItem) {
		return nil
	}
	for _, item := range items {
		c.Messages = append(c.Messages, json.RawMessage(item))
	}
	return c
}

// isCompactionItem reports whether an item stands for the history before it, in a form that only
// its provider can read.
func isCompactionItem(item codec.Raw) bool {
	return strings.Contains(textOf(json.RawMessage(item), "type"), "compaction")
}

// rawsOf returns the bytes of messages.
func rawsOf(messages []any) [][]byte {
	out := make([][]byte, len(messages))
	for i, m := range messages {
		out[i], _ = m.(json.RawMessage) // of the agent or made by a worker
	}
	return out
}

// restored is a body of which a part was read.
type restored struct {
	io.Reader
	io.Closer
}
