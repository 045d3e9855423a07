// Command anthropic is a whole agent on anthropic-sdk-go: it answers what it reads from standard input, line
// by line, and may read files of the directory it runs in. Three lines of start keep its history
// inside the window of its model.
//
//	export ANTHROPIC_API_KEY=… COMPACTD_URL=http://127.0.0.1:8224 COMPACTD_TOKEN=…
//	cd examples/agents && go run ./anthropic -session chat-42
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

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"compactd/client"
	"compactd/client/transport"
)

// agent is a conversation with a model.
type agent struct {
	model   anthropic.Client
	name    string // of the model
	files   fs.FS
	history []anthropic.MessageParam
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
	return &agent{model: anthropic.NewClient(options...), name: model.Name, files: os.DirFS(".")}
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
	a.history = append(a.history, anthropic.NewUserMessage(anthropic.NewTextBlock(prompt)))
	for {
		answer, err := a.model.Messages.New(ctx, anthropic.MessageNewParams{
			Model: a.name, MaxTokens: maxOutput, System: system, Tools: tools, Messages: a.history,
		})
		if err != nil {
			return "", err
		}
		a.history = append(a.history, answer.ToParam())
		text := ""
		var results []anthropic.ContentBlockParamUnion
		for _, block := range answer.Content {
			switch block.Type {
			case "text":
				text = block.Text
			case "tool_use":
				results = append(results, anthropic.NewToolResultBlock(block.ID, a.use(block.Input), false))
			}
		}
		if len(results) == 0 {
			return text, nil
		}
		a.history = append(a.history, anthropic.NewUserMessage(results...))
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
