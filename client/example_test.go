package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"compactd/client"
	"compactd/examples/agenttest"
)

// An agent: what Context returns is what the next call should get, and what the call
// appended is published.
func Example() {
	ctx := context.Background()
	url, stop := start(ctx)
	defer stop()

	// doc:begin readme
	c, err := client.Connect(ctx, client.Options{URL: url})
	must(err)
	s, err := c.Open(ctx, "chat-42", client.Config{Model: client.Model{Provider: "openai", Name: "gpt-4o"}})
	must(err)
	for _, prompt := range prompts { // messages of your provider, as json.RawMessage
		h, err := s.Context(ctx) // fits the window; never waits for a summary
		must(err)
		answer, usage := call(append(h.Messages, prompt)) // your provider
		must(s.Publish(ctx, client.Turn{Messages: []any{prompt, answer}, Usage: usage}))
	}
	// doc:end readme

	h, err := s.Context(ctx)
	must(err)
	fmt.Println(h.Turn, "turns,", len(h.Messages), "messages")
	// Output: 2 turns, 4 messages
}

// An agent with messages of its own type gets its own objects back, as far as they are kept.
func ExampleConversation() {
	ctx := context.Background()
	url, stop := start(ctx)
	defer stop()
	worker, err := client.Connect(ctx, client.Options{URL: url})
	must(err)
	defer worker.Close()

	// doc:begin conversation
	fitter := client.NewFitter(client.FitterConfig{Worker: worker, OnProblem: func(n client.Note) { log.Println(n.Code, n.Message) }})
	c := client.Conversation[*note]{Fitter: fitter, Session: "chat-42", Config: config}
	var history []*note
	for _, prompt := range []string{"Hello", "Go on"} {
		history = append(history, &note{Role: "user", Content: prompt})
		sent := c.Fit(ctx, history)
		answer, usage, err := complete(sent.Messages) // your provider
		if again, ok := sent.Refused(ctx, err, http.StatusBadRequest); ok {
			sent = again
			answer, usage, err = complete(sent.Messages)
		}
		must(err)
		sent.Used(usage)
		history = append(history, answer)
	}
	// doc:end conversation

	fmt.Println(len(history), "messages,", history[0] == c.Fit(ctx, history).Messages[0])
	// Output: 4 messages, true
}

// note is a message with a member that no provider gets.
type note struct {
	Role    string    `json:"role"`
	Content string    `json:"content"`
	At      time.Time `json:"-"`
}

// complete is a model that accepts any length.
func complete([]*note) (answer *note, usage any, err error) {
	return &note{Role: "assistant", Content: "Hello.", At: time.Now()}, map[string]int{"prompt_tokens": 12}, nil
}

var config = client.Config{Model: client.Model{Provider: "openai", Name: "gpt-4o"}}

// An answer is made again, and a second conversation goes on from there.
func ExampleSync_branch() {
	ctx := context.Background()
	url, stop := start(ctx)
	defer stop()
	c, err := client.Connect(ctx, client.Options{URL: url})
	must(err)
	s, err := c.Open(ctx, "chat-42", client.Config{Model: client.Model{Provider: "openai", Name: "gpt-4o"}})
	must(err)
	must(s.Publish(ctx, client.Turn{Messages: []any{message("user", "Name a colour."), message("assistant", "Blue.")}}))
	must(s.Publish(ctx, client.Turn{Messages: []any{message("user", "Another."), message("assistant", "Blue.")}}))

	must(s.Publish(ctx, client.Turn{ReplacesFrom: 2})) // takes turn 2 back
	must(s.Publish(ctx, client.Turn{Messages: []any{message("user", "Another."), message("assistant", "Red.")}}))

	h, err := s.Context(ctx)
	must(err)
	branch := client.Sync{Config: config, Branch: "b"}
	for _, m := range h.Messages {
		branch.Messages = append(branch.Messages, m)
	}
	_, err = c.Sync(ctx, "chat-42", branch)
	must(err)
	f, err := c.Open(ctx, "chat-42/b", config)
	must(err)
	must(f.Publish(ctx, client.Turn{Messages: []any{message("user", "A third.")}}))
	for _, session := range []*client.Session{s, f} {
		h, err := session.Context(ctx)
		must(err)
		fmt.Printf("%d messages, the last is %s\n", len(h.Messages), h.Messages[len(h.Messages)-1])
	}
	// Output:
	// 4 messages, the last is {"role":"assistant","content":"Red."}
	// 5 messages, the last is {"role":"user","content":"A third."}
}

// A provider refused a call as too long: that is reported, and the call sent again
// with the history that comes. Another error is named by its class.
func ExampleSession_Overflow() {
	ctx := context.Background()
	url, stop := start(ctx)
	defer stop()
	c, err := client.Connect(ctx, client.Options{URL: url})
	must(err)
	s, err := c.Open(ctx, "chat-42", client.Config{Model: client.Model{Provider: "openai", Name: "gpt-4o"}})
	must(err)
	long := strings.Repeat("word ", 200)
	for range 6 {
		must(s.Publish(ctx, client.Turn{Messages: []any{message("user", long), message("assistant", long)}}))
	}

	refusal := `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 2000 tokens. However, your messages resulted in 2600 tokens."}}`
	done, err := s.Overflow(ctx, refusal, http.StatusBadRequest)
	must(err)
	h, err := s.Context(ctx)
	must(err)
	fmt.Println(done.Reason, done.TokensAfter < done.TokensBefore, h.Generation == done.Generation)

	_, err = s.Overflow(ctx, "Rate limit reached", http.StatusTooManyRequests)
	fmt.Println(errors.Is(err, client.CodeNotOverflow))
	// Output:
	// overflow true true
	// true
}

// A refusal has a code to act on, and a hint.
func ExampleError() {
	ctx := context.Background()
	url, stop := start(ctx)
	defer stop()
	c, err := client.Connect(ctx, client.Options{URL: url})
	must(err)
	s, err := c.Open(ctx, "chat-42", client.Config{})
	must(err)

	err = s.Publish(ctx, client.Turn{Messages: []any{message("robot", "Hello")}})
	if refused, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(refused.Code == client.CodeBadMessage)
		fmt.Println(refused.Message)
		fmt.Println(refused.Hint)
	}
	// Output:
	// true
	// messages[0] has a role that is none of openai (system, developer, user, assistant, tool)
	// Check format, and the message at the index that the text names.
}

var prompts = []json.RawMessage{message("user", "Hello"), message("user", "Go on")}

// call is a fake provider.
func call([]json.RawMessage) (answer json.RawMessage, usage any) {
	return message("assistant", "Hello."), map[string]int{"prompt_tokens": 12, "completion_tokens": 3}
}

func message(role, text string) json.RawMessage {
	return fmt.Appendf(nil, `{"role":%q,"content":%q}`, role, text)
}

// start runs a worker with its own server.
func start(ctx context.Context) (url string, stop func()) {
	dir, err := os.MkdirTemp("", "compactd-example-")
	must(err)
	url, end, err := agenttest.Start(ctx, dir)
	must(err)
	return url, func() {
		must(end())
		_ = os.RemoveAll(dir)
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
