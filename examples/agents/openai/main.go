// Command openai is a whole agent on openai-go: it answers what it reads from standard input, line
// by line, and may read files of the directory it runs in. Three lines of start keep its history
// inside the window of its model.
//
//	export OPENAI_API_KEY=… COMPACTD_URL=http://127.0.0.1:8224 COMPACTD_TOKEN=…
//	cd examples/agents && go run ./openai -session chat-42
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"compactd/client"
	"compactd/client/transport"
)

// agent is a conversation with a model.
type agent struct {
	model   openai.Client
	name    string // of the model
	files   fs.FS
	history []openai.ChatCompletionMessageParamUnion
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
	a := start(&client.HTTP{URL: os.Getenv("COMPACTD_URL"), Token: os.Getenv("COMPACTD_TOKEN")}, *session, client.Model{Name: *name})
	if err := a.run(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// start begins a conversation. Options are those of the SDK.
func start(worker client.Worker, session string, model client.Model, options ...option.RequestOption) *agent {
	fitter := client.NewFitter(client.FitterConfig{Worker: worker, OnProblem: problem, OnCompacted: compacted})
	t := &transport.Transport{Fitter: fitter, Session: session, Config: client.Config{Model: model}}
	options = append(options, option.WithHTTPClient(&http.Client{Transport: t}))
	return &agent{
		model: openai.NewClient(options...), name: model.Name, files: os.DirFS("."),
		history: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are a careful engineer. Read a file before you speak of it.")},
	}
}

// problem and compacted are for the display of the agent.
func problem(n client.Note) { log.Printf("%s: %s", n.Code, n.Message) }

func compacted(_ string, s *client.Synced) {
	log.Printf("compacted: %d of %d tokens are used", s.Budget.EstimatedInput, s.Budget.AvailableInput)
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
	a.history = append(a.history, openai.UserMessage(prompt))
	for {
		answer, err := a.model.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: a.name, Messages: a.history, Tools: tools})
		if err != nil {
			return "", err
		}
		message := answer.Choices[0].Message
		a.history = append(a.history, message.ToParam())
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		for _, c := range message.ToolCalls {
			a.history = append(a.history, openai.ToolMessage(a.use(c.Function.Arguments), c.ID))
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
