// Command eino is a whole agent on a chat model of eino: it answers what it reads from standard
// input, line by line, and may read files and look at PNG images of the directory it runs in. Three
// lines of start keep its history inside the window of its model.
//
//	export OPENAI_API_KEY=… COMPACTD_URL=http://127.0.0.1:8224 COMPACTD_TOKEN=…
//	cd examples/agents && go run ./eino -session chat-42
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"compactd/client"
	"compactd/client/transport"
)

// agent is a conversation with a model.
type agent struct {
	model   model.ToolCallingChatModel
	files   fs.FS
	history []*schema.Message
}

var tools = []*schema.ToolInfo{{
	Name: "read_file", Desc: "Read a file of the directory.",
	ParamsOneOf: schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{"path": {Type: schema.String, Required: true}}),
}}

func main() {
	session := flag.String("session", "eino-example", "name of the conversation")
	name := flag.String("model", "gpt-4o", "model to ask")
	flag.Parse()
	ctx := context.Background()
	worker := &client.HTTP{URL: os.Getenv("COMPACTD_URL"), Token: os.Getenv("COMPACTD_TOKEN")}
	a, err := start(ctx, worker, *session, client.Model{}, openai.ChatModelConfig{
		APIKey: os.Getenv("OPENAI_API_KEY"), BaseURL: os.Getenv("OPENAI_BASE_URL"), Model: *name,
	})
	if err == nil {
		err = a.run(ctx, os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// start begins a conversation.
func start(ctx context.Context, worker client.Worker, session string, window client.Model, config openai.ChatModelConfig) (*agent, error) {
	fitter := client.NewFitter(client.FitterConfig{Worker: worker, OnProblem: problem, OnCompacted: compacted})
	t := &transport.Transport{Fitter: fitter, Session: session, Config: client.Config{Model: window}}
	config.HTTPClient = &http.Client{Transport: t}
	m, err := openai.NewChatModel(ctx, &config)
	if err != nil {
		return nil, err
	}
	withTools, err := m.WithTools(tools)
	return &agent{model: withTools, files: os.DirFS(".")}, err
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
	a.history = append(a.history, a.prompt(prompt))
	for {
		answer, err := a.model.Generate(ctx, a.history)
		if err != nil {
			return "", err
		}
		a.history = append(a.history, answer)
		if len(answer.ToolCalls) == 0 {
			return answer.Content, nil
		}
		for _, c := range answer.ToolCalls {
			a.history = append(a.history, schema.ToolMessage(a.use(c.Function.Arguments), c.ID))
		}
	}
}

// prompt sends an image where the text names one.
func (a *agent) prompt(text string) *schema.Message {
	m := &schema.Message{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{{Type: schema.ChatMessagePartTypeText, Text: text}}}
	for word := range strings.FieldsSeq(text) {
		data, err := fs.ReadFile(a.files, word)
		if err != nil || !strings.HasSuffix(word, ".png") {
			continue
		}
		image := base64.StdEncoding.EncodeToString(data)
		m.UserInputMultiContent = append(m.UserInputMultiContent, schema.MessageInputPart{
			Type:  schema.ChatMessagePartTypeImageURL,
			Image: &schema.MessageInputImage{MessagePartCommon: schema.MessagePartCommon{Base64Data: &image, MIMEType: "image/png"}},
		})
	}
	return m
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
