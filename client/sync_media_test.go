package client

import (
	"context"
	"encoding/json"
	"testing"

	"compactd/internal/testkit/mediatest"
)

// An agent that has lost its memory sends more images than one request has room for: its session
// recognises them, and what it sends is its own.
func TestSyncManyMedia(t *testing.T) {
	env := newEnv(t)
	env.start(t)
	c, ctx, name := env.client(t), context.Background(), env.name()+"-shots"
	defer c.Close()
	all := []any{user("Look at the screen.")}
	for i := range 12 {
		all = append(all, json.RawMessage(mediatest.In(mediatest.Places["openai"][0], mediatest.PNG(t, 900_000+16*i), 0)),
			json.RawMessage(`{"role":"assistant","content":"I see a cat."}`))
	}
	in := Sync{Config: Config{Format: "openai", Model: Model{Provider: "openai", Name: "gpt-4o", ContextWindow: 128_000}}, Messages: all, Wait: 8e9}
	for range 2 {
		out, err := c.Sync(ctx, name, in)
		if err != nil || out.Changed || len(out.Messages) != len(all) || out.Session != "" {
			t.Fatalf("%+v: %v", out, err)
		}
		in.OnDivergence = "refuse"
	}
}
