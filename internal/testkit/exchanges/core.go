package exchanges

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// Native is a message of an agent: a provider gets role and content, which is the text.
type Native struct {
	Role string `json:"role"`
	Text string `json:"text"`
	Note string `json:"note,omitempty"` // the agent's own, which no provider gets
}

// Conversation is the core of an adapter, with native messages.
type Conversation interface {
	Fit(ctx context.Context, history []*Native) Sent
}

// Sent is what a conversation sends with one call.
type Sent interface {
	Messages() []*Native
	Refused(ctx context.Context, refusal string, status int) (Sent, bool)
	Used(usage json.RawMessage)
}

// RunCore runs each file of a directory against the core of an adapter.
func RunCore(t *testing.T, dir string, start func(Setup) Conversation) {
	t.Helper()
	runFiles(t, dir, func(s Setup) actor { return &core{conversation: start(s)} })
}

// core is an agent with native messages.
type core struct {
	conversation Conversation
	history      []*Native
	sent         Sent // of the last call
}

func (c *core) act(ctx context.Context, p *player) {
	p.t.Helper()
	in, ok := p.step.request, true
	switch in.name {
	case "fit":
		c.history = nil
		p.decode(in, &c.history)
		before := asText(c.history)
		c.sent = c.conversation.Fit(ctx, slices.Clone(c.history))
		if asText(c.history) != before {
			p.t.Errorf("%s: the agent's own messages are others now: %s", in, asText(c.history))
		}
	case "refused":
		var refusal struct {
			Status int             `json:"status"`
			Error  json.RawMessage `json:"error"`
		}
		p.decode(in, &refusal)
		var again Sent
		if again, ok = c.sent.Refused(ctx, string(refusal.Error), refusal.Status); ok {
			c.sent = again
		}
	case "used":
		c.sent.Used(json.RawMessage(trim(in.text)))
		return
	default:
		p.t.Fatalf("%s is none of the core", in)
	}
	want, _ := p.step.result("fitted")
	if got := c.describe(ok); got != trim(want.text) {
		p.t.Errorf("%s of %s:\n%s\nwant\n%s", want.name, in, got, want.text)
	}
}

// describe lists what is sent: the index of each message of the agent's own, and others as JSON.
func (c *core) describe(ok bool) string {
	if !ok {
		return "none"
	}
	parts := []any{}
	for _, m := range c.sent.Messages() {
		if own := slices.Index(c.history, m); own >= 0 {
			parts = append(parts, own)
		} else {
			parts = append(parts, m)
		}
	}
	return asText(parts)
}

func (p *player) decode(s section, v any) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(s.text), v); err != nil {
		p.t.Fatalf("%s: %v", s, err)
	}
}

func asText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text)
}
