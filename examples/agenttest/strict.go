package agenttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/ops/fakemodel"
	"compactd/internal/testkit/strict"
)

// The tokens that a [Strict] takes, and how many of them are for the answer.
const (
	StrictWindow = 16_384
	StrictOutput = 1_024
)

// Strict is a provider that takes valid histories alone, up to the window of its model. Each answer
// calls tools, behind reasoning where the wire format has it.
type Strict struct {
	Format events.Format
	Model  string
	Window int            // tokens; 0 is [StrictWindow]
	Uses   int            // of tools in an answer; 0 is one
	Talks  bool           // every second answer is a text
	Steps  int            // answers with calls of tools, and then a text; 0 is without end
	At     func(call int) // is called before each call is answered, nil for none
	// Use is the call of a tool that the agent has: the tool and its arguments. Calls without tools,
	// such as those for a title, are then answered with a text and not counted. Default: files are read.
	Use func(call int) (tool, arguments string)

	once   sync.Once
	model  fakemodel.Model
	made   int        // answers with calls of tools; one goroutine at a time answers
	mu     sync.Mutex // guards result
	result Result
}

// Result is what a [Strict] has received.
type Result struct {
	Calls   int
	Most    int      // tokens of a call
	Refused []string // calls that were not valid, or too long
	TooLong int      // of them, for their length alone
}

// Result returns what was received until now.
func (p *Strict) Result() Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result
}

func (p *Strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.once.Do(func() {
		p.model = fakemodel.Model{
			Window: cmp.Or(p.Window, StrictWindow), Output: StrictOutput, Refuse: p.check, Answer: p.answer, OnCall: p.received,
		}
	})
	p.model.ServeHTTP(w, r)
}

// isAside reports whether a call is outside the agent's loop.
func (p *Strict) isAside(c *fakemodel.Call) bool { return p.Use != nil && len(c.Tools) == 0 }

func (p *Strict) received(c *fakemodel.Call) {
	if p.isAside(c) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Calls++
	p.result.Most = max(p.result.Most, c.Tokens)
	switch {
	case c.TooLong:
		p.result.TooLong++
		p.result.Refused = append(p.result.Refused, fmt.Sprintf("call %d: %d tokens", c.Number, c.Tokens))
	case len(c.Refused) > 0:
		p.result.Refused = append(p.result.Refused, fmt.Sprintf("call %d: %v", c.Number, c.Refused))
	}
	if p.At != nil {
		p.At(c.Number)
	}
}

// check returns what the provider would refuse.
func (p *Strict) check(c *fakemodel.Call) (refused []string) {
	if c.Format != p.Format {
		return []string{fmt.Sprintf("this is no call of %s", p.Format)}
	}
	if p.Format == events.Responses {
		items := make([]codec.Raw, len(c.Messages))
		for i, item := range c.Messages {
			items[i] = codec.Raw(item)
		}
		for _, v := range validate.Messages(p.Format, items) {
			refused = append(refused, fmt.Sprint(v))
		}
		return refused
	}
	for _, bad := range strict.Refuse(p.call(c)) {
		refused = append(refused, bad.String())
	}
	return refused
}

func (p *Strict) call(c *fakemodel.Call) strict.Call {
	return strict.Call{Provider: string(p.Format), Model: p.Model, System: c.System, Tools: c.Tools, Messages: c.Messages}
}

// answer reads files.
func (p *Strict) answer(c *fakemodel.Call) (a fakemodel.Answer) {
	if p.Talks && c.Number%2 == 0 {
		return fakemodel.Answer{Text: fmt.Sprintf("Answer %d. ", c.Number) + strings.Repeat("There is more to say about it. ", 32)}
	}
	if p.isAside(c) {
		return fakemodel.Answer{Text: "A title"}
	}
	if p.Steps > 0 && p.made >= p.Steps {
		return fakemodel.Answer{Text: "Done."}
	}
	p.made++
	switch p.Format {
	case events.Responses:
		a.Thinking = json.RawMessage(fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"%0200d"}`, c.Number, c.Number))
	case events.Anthropic:
		a.Thinking = strict.Think(p.call(c), "The next file may say why.")
	}
	use := p.Use
	if use == nil {
		use = readFile
	}
	for i := range max(p.Uses, 1) {
		u := fakemodel.Use{ID: fmt.Sprintf("call_%d_%d", c.Number, i)}
		u.Name, u.Arguments = use(c.Number + i)
		a.Uses = append(a.Uses, u)
	}
	return a
}

func readFile(call int) (tool, arguments string) {
	return "read_file", fmt.Sprintf(`{"path":"f%d.go"}`, call)
}
