// Command anthropic is a whole agent on anthropic-sdk-go and compactd's client: it answers what
// it reads from standard input, line by line, and may read files of the directory it
// runs in. Its conversation goes on where it ended, on any machine.
//
//	export ANTHROPIC_API_KEY=… NATS_URL=nats://127.0.0.1:4222
//	cd examples/agents && go run ./anthropic -session chat-42
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"compactd/client"
)

// agent is a conversation with a model.
type agent struct {
	model   anthropic.Client // ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL
	name    string           // of the model
	session *client.Session
	files   fs.FS
}

// maxOutput is what an answer may have, in tokens.
const maxOutput = 4096

var system = []anthropic.TextBlockParam{{Text: "You are a careful engineer. Read a file before you speak of it."}}

var tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
	Name: "read_file", Description: anthropic.String("Read a file of the directory."),
	InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]string{"type": "string"}}, Required: []string{"path"}},
}}}

func main() {
	session := flag.String("session", "anthropic-example", "name of the conversation")
	name := flag.String("model", "claude-sonnet-4-20250514", "model to ask")
	flag.Parse()
	if err := start(context.Background(), *session, *name); err != nil {
		log.Fatal(err)
	}
}

func start(ctx context.Context, session, name string) error {
	c, err := client.Connect(ctx, client.Options{URL: os.Getenv("NATS_URL")})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := open(ctx, c, session, client.Model{Provider: "anthropic", Name: name, MaxOutputTokens: maxOutput})
	if err != nil {
		return err
	}
	a := &agent{model: anthropic.NewClient(), name: name, session: s, files: os.DirFS(".")}
	return a.run(ctx, os.Stdin, os.Stdout)
}

// open begins a conversation, or goes on with it.
func open(ctx context.Context, c *client.Client, name string, model client.Model) (*client.Session, error) {
	return c.Open(ctx, name, client.Config{
		Model: model, System: system, Tools: tools,
		OnCompaction: func(c client.Compaction) {
			log.Printf("compacted (%s): %d to %d tokens", c.Reason, c.TokensBefore, c.TokensAfter)
		},
	})
}

// run answers line by line.
func (a *agent) run(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		text, err := a.ask(ctx, lines.Text())
		if err != nil {
			return err
		}
		fmt.Fprintln(out, text)
	}
	return lines.Err()
}

// ask lets the model speak, and use tools, until it has an answer.
func (a *agent) ask(ctx context.Context, prompt string) (text string, err error) {
	pending := anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))
	for {
		answer, err := a.call(ctx, pending)
		if err != nil {
			return "", err
		}
		// A turn is what was appended since the last one.
		err = a.session.Publish(ctx, client.Turn{Messages: []any{pending, answer.ToParam()}, Usage: answer.Usage})
		if err != nil {
			return "", err
		}
		var results []anthropic.ContentBlockParamUnion
		for _, block := range answer.Content {
			switch b := block.AsAny().(type) {
			case anthropic.TextBlock:
				text = b.Text
			case anthropic.ToolUseBlock:
				results = append(results, anthropic.NewToolResultBlock(b.ID, a.use(b.Input), false))
			}
		}
		if results == nil {
			return text, nil
		}
		pending = anthropic.NewUserMessage(results...)
	}
}

// call sends the history with what is new. What is too long is reported, and sent
// again when it is shorter.
func (a *agent) call(ctx context.Context, pending anthropic.MessageParam) (*anthropic.Message, error) {
	for {
		h, err := a.session.Context(ctx)
		if err != nil {
			return nil, err
		}
		var messages []anthropic.MessageParam
		for _, m := range h.Messages {
			messages = append(messages, param.Override[anthropic.MessageParam](m))
		}
		answer, err := a.model.Messages.New(ctx, anthropic.MessageNewParams{
			Model: a.name, MaxTokens: maxOutput, System: system, Messages: append(messages, pending), Tools: tools,
		})
		var refusal *anthropic.Error
		if !errors.As(err, &refusal) ||
			refusal.StatusCode != http.StatusBadRequest && refusal.StatusCode != http.StatusRequestEntityTooLarge {
			return answer, err
		}
		if _, err := a.session.Overflow(ctx, refusal, refusal.StatusCode); err != nil {
			return nil, err // it was no overflow, or nothing can be made shorter
		}
	}
}

// maxFile is how much of a file the model gets, in bytes.
const maxFile = 8 << 10

// use reads the file that the model requested.
func (a *agent) use(arguments []byte) string {
	var in struct{ Path string }
	if err := json.Unmarshal(arguments, &in); err != nil {
		return err.Error()
	}
	data, err := fs.ReadFile(a.files, cmp.Or(in.Path, "."))
	if err != nil {
		return err.Error()
	}
	return string(data[:min(len(data), maxFile)])
}
