package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/broker/embedded"
)

// native is a message of an agent's own type.
type native struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Key     int    `json:"-"` // which compactd never has
}

// An agent with objects of its own gets them back, the same ones, but where compactd made a
// message; a restart without memory, usage, a refusal and a worker that is replaced change
// nothing.
func TestSync(t *testing.T) {
	env := newEnv(t)
	env.start(t)
	c, ctx, name := env.client(t), context.Background(), env.name()+" of Größe/1"
	defer c.Close()
	var all []any
	var last *Synced
	for step := range 30 {
		all = append(all, &native{"user", fmt.Sprintf("%d %s", step, words(40)), step})
		in := Sync{Config: small, Messages: all, Last: last, Wait: 8e9}
		if last != nil {
			in.Usage = map[string]int{"prompt_tokens": int(last.Budget.EstimatedInput), "completion_tokens": 40}
		}
		if step == 20 {
			env.stop()
			env.start(t)
		}
		if step%7 == 6 { // it has no memory
			in.Last, in.Usage = nil, nil
		}
		var err error
		if last, err = c.Sync(ctx, name, in); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if len(last.Warnings) > 0 || !last.Budget.Fits {
			t.Fatalf("step %d: %+v", step, last)
		}
		own, made := 0, 0
		for _, m := range last.Messages {
			switch m := m.(type) {
			case *native:
				if m != all[2*m.Key] && m.Role == "user" {
					t.Fatalf("step %d: message %d is another one", step, m.Key)
				}
				own++
			case json.RawMessage:
				made++
			}
		}
		if end := last.Messages[len(last.Messages)-1]; end != all[len(all)-1] || last.Changed != (own < len(all)) {
			t.Fatalf("step %d: %d own, %d made: %+v", step, own, made, last)
		}
		all = append(all, &native{"assistant", words(20), step})
	}
	if last.Generation == 0 {
		t.Error("nothing was compacted")
	}
	gen := last.Generation
	const refusal = "This model's maximum context length is 1200 tokens. However, your messages resulted in 1300 tokens."
	fits, err := c.Sync(ctx, name, Sync{Messages: all, Last: last, Refusal: fmt.Errorf("%s", refusal), Status: 400})
	if err != nil || fits.Generation <= gen || fits.Budget.ContextWindow != 1200 || !fits.Budget.Fits {
		t.Errorf("after a refusal: %+v, %v", fits, err)
	}
	other := Sync{Messages: []any{user("a conversation of another agent, which has nothing of it")}}
	for range 2 {
		own, err := c.Sync(ctx, name, other)
		if err != nil || own.Session == "" || own.Branch == "" {
			t.Fatalf("another conversation: %+v %v", own, err)
		}
		other.Branch, other.Last = own.Branch, own // its session is the same
		other.Messages = append(other.Messages, &native{"assistant", "It is read.", 0})
		again, err := c.Sync(ctx, name, other)
		if err != nil || again.Session != "" || len(again.Messages) != len(other.Messages) || again.Changed {
			t.Fatalf("its branch by name: %+v %v", again, err)
		}
		other = Sync{Messages: other.Messages}
	}
	var bad *Error
	_, err = c.Sync(ctx, name, Sync{OnDivergence: "refuse", Messages: other.Messages})
	if !errors.As(err, &bad) || bad.Code != "other_history" {
		t.Errorf("another conversation: %v", err)
	}
	branch, err := c.Sync(ctx, name, Sync{Branch: "sub", Messages: []any{user("a conversation of another agent, which has nothing of it")}})
	if err != nil || branch.Changed || len(branch.Messages) != 1 {
		t.Errorf("a branch: %+v, %v", branch, err)
	}
}

// An agent that edits a message of a conversation too large to send as a whole in each call is
// understood: what is not as it was is sent again.
func TestSyncEdited(t *testing.T) {
	env := newEnvOf(t, embedded.Config{MaxPayload: 128 << 10})
	env.start(t)
	c, ctx, name := env.client(t), context.Background(), env.name()
	defer c.Close()
	config := Config{Model: Model{Provider: "openai", Name: "gpt-4o"}}
	var all []any
	var last *Synced
	sync := func() {
		t.Helper()
		var err error
		if last, err = c.Sync(ctx, name, Sync{Config: config, Messages: all, Last: last, Wait: 8e9}); err != nil {
			t.Fatal(err)
		}
	}
	for step := range 8 {
		all = append(all, &native{"user", fmt.Sprintf("%d %s", step, words(2000)), step}, &native{"assistant", "It is done.", step})
		sync()
	}
	all[4] = &native{"user", "EDITED", 2}
	sync()
	s, err := c.Open(ctx, name, config)
	if err != nil {
		t.Fatal(err)
	}
	has, err := s.Context(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(has.Messages[4]); !strings.Contains(got, "EDITED") {
		t.Errorf("the session has %.60s", got)
	}
}

// The same for an agent that marks its newest message for a cache: known messages are not sent again.
func TestSyncMarked(t *testing.T) {
	env := newEnvOf(t, embedded.Config{MaxPayload: 128 << 10})
	env.start(t)
	c := env.client(t)
	defer c.Close()
	in := Sync{Config: Config{Model: Model{Provider: "anthropic", Name: "claude-3-5-haiku"}}, Wait: 8e9}
	text := func(cache string) any {
		return json.RawMessage(fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"%d %s"%s}]}`, len(in.Messages)/2, words(2000), cache))
	}
	for step := range 20 {
		in.Messages = append(in.Messages, text(`,"cache_control":{"type":"ephemeral"}`))
		var err error
		if in.Last, err = c.Sync(t.Context(), "marked", in); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		in.Messages[len(in.Messages)-1] = text("")
		in.Messages = append(in.Messages, assistant("It is done."))
	}
}
