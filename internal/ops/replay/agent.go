package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/transcript"
)

// agent is one session. Its turns are made by one goroutine.
type agent struct {
	address events.Address
	model   events.Model
	format  events.Format
	written *transcript.Translator // of what it makes, in its dialect
	content *rand.Rand             // of its messages
	pace    *rand.Rand

	turn       int64
	generation int64
	base       []codec.Raw // the compacted history of the turns up to through
	through    int64
	own        []ownTurn // after through
	bytes      int       // of base and own
	call       string    // that the next turn answers

	mu   sync.Mutex
	next *events.Compacted // the newest that was received and not applied yet
}

type ownTurn struct {
	number   int64
	messages []codec.Raw
}

// models are those of the agents by dialect; of any other one it is Anthropic's.
var models = map[events.Format]events.Model{
	events.OpenAI:    {Provider: "openai", Name: "gpt-4o"},
	events.Responses: {Provider: "openai", Name: "gpt-5"},
	events.Gemini:    {Provider: "google", Name: "gemini-2.5-pro"},
	events.Bedrock:   {Provider: "bedrock", Name: "anthropic.claude-sonnet-4-20250514-v1:0"},
}

func newAgent(a events.Address, f events.Format, window int64, seed uint64, number int) *agent {
	model, ok := models[f]
	if !ok {
		model = events.Model{Provider: "anthropic", Name: "claude-sonnet-4-20250514"}
	}
	model.ContextWindow, model.MaxOutputTokens = window, window/8
	return &agent{
		address: a,
		model:   model,
		format:  f,
		written: transcript.NewTranslator(events.Anthropic, f),
		content: rand.New(rand.NewPCG(seed, uint64(number)*2)),
		pace:    rand.New(rand.NewPCG(seed, uint64(number)*2+1)),
	}
}

// pause is the time of the agent for a turn, both messages of it.
func (a *agent) pause() time.Duration {
	return time.Duration((Gaps.Draw(a.pace) + Gaps.Draw(a.pace)) * float64(time.Second))
}

type usage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// bytesPerToken is about what Claude's tokenizer makes of the text below.
const bytesPerToken = 4

// nextTurn makes the next turn: what the last call gave, or the question, then an
// answer that calls a tool.
func (a *agent) nextTurn() (id string, data []byte, err error) {
	a.turn++
	user := message("user", block{Type: "tool_result", ToolUseID: a.call, Content: a.text()})
	if a.turn == 1 {
		user = message("user", block{Type: "text", Text: "Find out why the build fails, and cure it. " + a.text()})
	}
	answer := a.answer()
	messages, err := a.written.Messages([]codec.Raw{user, answer})
	if err != nil {
		return "", nil, err
	}
	input := a.bytes + len(user)
	a.own = append(a.own, ownTurn{a.turn, messages})
	a.bytes = input + len(answer)
	p := events.WireTurn[usage]{V: events.Version, Usage: usage{1 + input/bytesPerToken, 1 + len(answer)/bytesPerToken}, Turn: events.Turn{
		ID: fmt.Sprintf("%s-%d", a.address, a.turn), Number: a.turn, Generation: a.generation, Format: a.format, Messages: messages,
	}}
	if a.turn == 1 {
		p.Model = &a.model
	}
	data, err = codec.Marshal(p)
	return p.ID, data, err
}

type block struct {
	Type      string    `json:"type"`
	Text      string    `json:"text,omitzero"`
	ID        string    `json:"id,omitzero"`
	Name      string    `json:"name,omitzero"`
	Input     codec.Raw `json:"input,omitzero"`
	ToolUseID string    `json:"tool_use_id,omitzero"`
	Content   string    `json:"content,omitzero"`
}

func message(role string, blocks ...block) codec.Raw {
	data, _ := codec.Marshal(struct { // texts are ASCII, and always written
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}{role, blocks})
	return data
}

// answer reads one of some files again and again, or runs a command.
func (a *agent) answer() codec.Raw {
	a.call = fmt.Sprintf("toolu_%016x", a.content.Uint64())
	call := block{Type: "tool_use", ID: a.call, Name: "read_file", Input: fmt.Appendf(nil, `{"path":"/src/server/handler_%d.go"}`, a.content.IntN(12))}
	if a.content.IntN(2) == 0 {
		call.Name, call.Input = "bash", fmt.Appendf(nil, `{"command":"go test ./server/part%d"}`, a.content.IntN(1000))
	}
	return message("assistant", block{Type: "text", Text: a.text()}, call)
}

// text is as long as a message of a real session.
func (a *agent) text() string {
	n := int(Sizes.Draw(a.content))
	from := a.content.IntN(len(prose))
	return "# " + strings.Repeat(prose, 2+n/len(prose))[from:][:n]
}

const prose = `the agent reads a file and then calls the build tool which prints a long log line
error: cannot find symbol "parseHeader" in package server/http at line 214; retrying with cache disabled
func main() { fmt.Println("hello, world") } // handles the nil case
{"status":"ok","items":[1,2,3]} path=/usr/local/lib/go/src/net/http/server.go status=200
`

// receive keeps a compaction until the next turn boundary.
func (a *agent) receive(b *events.Compacted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil || b.Generation > a.next.Generation {
		a.next = b
	}
}

// apply swaps the history for the newest compaction, and reports whether it did.
func (a *agent) apply() bool {
	a.mu.Lock()
	b := a.next
	a.next = nil
	a.mu.Unlock()
	if b == nil || b.Generation <= a.generation || b.MessagesOmitted {
		return false
	}
	a.generation, a.base, a.through = b.Generation, b.Messages, b.Through.Turn
	a.own = slices.DeleteFunc(a.own, func(t ownTurn) bool { return t.number <= a.through })
	a.bytes = 0
	for _, m := range a.history() {
		a.bytes += len(m)
	}
	return true
}

// history is the history that the agent would send to its model.
func (a *agent) history() []codec.Raw {
	all := slices.Clone(a.base)
	for _, t := range a.own {
		all = append(all, t.messages...)
	}
	return all
}
