// Command openai is a whole agent on openai-go and compactd's client: it answers what
// it reads from standard input, line by line, and may read files of the directory it
// runs in. Its conversation goes on where it ended, on any machine.
//
//	export OPENAI_API_KEY=… NATS_URL=nats://127.0.0.1:4222
//	cd examples/agents && go run ./openai -session chat-42
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

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"compactd/client"
)

const system = "You are a careful engineer. Read a file before you speak of it."

// agent is a conversation with a model.
type agent struct {
	model   openai.Client // OPENAI_API_KEY and OPENAI_BASE_URL
	name    string        // of the model
	session *client.Session
	files   fs.FS
}

var tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
	Name: "read_file", Description: openai.String("Read a file of the directory."),
	Parameters: shared.FunctionParameters{
		"type": "object", "required": []string{"path"},
		"properties": map[string]any{"path": map[string]string{"type": "string"}},
	},
})}

func main() {
	session := flag.String("session", "openai-example", "name of the conversation")
	name := flag.String("model", "gpt-4o", "model to ask")
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
	s, err := open(ctx, c, session, client.Model{Provider: "openai", Name: name})
	if err != nil {
		return err
	}
	a := &agent{model: openai.NewClient(), name: name, session: s, files: os.DirFS(".")}
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
func (a *agent) ask(ctx context.Context, prompt string) (string, error) {
	pending := []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}
	for {
		answer, err := a.call(ctx, pending)
		if err != nil {
			return "", err
		}
		message := answer.Choices[0].Message
		turn := client.Turn{Usage: answer.Usage} // what was appended since the last one
		for _, m := range append(pending, message.ToParam()) {
			turn.Messages = append(turn.Messages, m)
		}
		if err := a.session.Publish(ctx, turn); err != nil {
			return "", err
		}
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		pending = nil
		for _, c := range message.ToolCalls {
			pending = append(pending, openai.ToolMessage(a.use(c.Function.Arguments), c.ID))
		}
	}
}

// call sends the history with what is new. What is too long is reported, and sent
// again when it is shorter.
func (a *agent) call(
	ctx context.Context, pending []openai.ChatCompletionMessageParamUnion,
) (*openai.ChatCompletion, error) {
	for {
		h, err := a.session.Context(ctx)
		if err != nil {
			return nil, err
		}
		messages := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system)}
		for _, m := range h.Messages {
			messages = append(messages, param.Override[openai.ChatCompletionMessageParamUnion](m))
		}
		answer, err := a.model.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
			Model: a.name, Messages: append(messages, pending...), Tools: tools,
		})
		var refusal *openai.Error
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
func (a *agent) use(arguments string) string {
	var in struct{ Path string }
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return err.Error()
	}
	data, err := fs.ReadFile(a.files, cmp.Or(in.Path, "."))
	if err != nil {
		return err.Error()
	}
	return string(data[:min(len(data), maxFile)])
}
