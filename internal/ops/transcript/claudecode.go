package transcript

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// claudeLine is one line of a session of Claude Code. Lines of other types than
// those below (titles, snapshots of files, progress) are no part of a prompt.
type claudeLine struct {
	Type      string         `json:"type"` // user, assistant, system
	Subtype   string         `json:"subtype"`
	UUID      string         `json:"uuid"`
	Parent    string         `json:"parentUuid"`
	Agent     string         `json:"agentId"`
	Side      bool           `json:"isSidechain"`
	Summary   bool           `json:"isCompactSummary"`
	Failed    bool           `json:"isApiErrorMessage"`
	Timestamp time.Time      `json:"timestamp"`
	Message   *claudeMessage `json:"message"`
}

type claudeMessage struct {
	ID      string    `json:"id"` // the lines of one answer share it
	Role    string    `json:"role"`
	Model   string    `json:"model"`
	Content codec.Raw `json:"content"`
	Usage   codec.Raw `json:"usage"`
}

// syntheticModel is the model that Claude Code names where none was called.
const syntheticModel = "<synthetic>"

// compactAgent begins the name of the sub-agent that writes Claude Code's own
// summaries. It was sent the history a second time, and is left out as the summary is.
const compactAgent = "acompact-"

// parseClaudeCode reads a session and, as sessions of their own, the sidechains
// in which its sub-agents ran.
func parseClaudeCode(in input, r io.Reader) {
	f := claudeFile{in: in, chainOf: map[string]string{}, chains: map[string]*claudeChain{}}
	eachValue(in, r, func(n int, l *claudeLine) error {
		f.add(n, l)
		return nil
	})
	for _, key := range f.order {
		c := f.chains[key]
		rec := &recording{
			name: in.named(f.name(key)), format: events.Anthropic, model: events.Model{Provider: "anthropic", Name: claudePrefix}, missing: c.missing,
		}
		rec.take(in, slices.DeleteFunc(c.lines, func(l *line) bool { return l.Kind == "message" && len(l.Content) == 0 }))
		rec.put(in)
	}
}

// claudeFile has the sorted lines of a file.
type claudeFile struct {
	in      input
	chainOf map[string]string // the chain of a line, by its uuid
	chains  map[string]*claudeChain
	order   []string // keys of chains; the main one is ""
}

func (f *claudeFile) add(n int, l *claudeLine) {
	if _, again := f.chainOf[l.UUID]; again && l.UUID != "" {
		return // a session that was resumed repeats lines
	}
	if strings.HasPrefix(l.Agent, compactAgent) {
		return
	}
	key := f.key(l)
	f.chainOf[l.UUID] = key
	boundary := l.Type == "system" && l.Subtype == "compact_boundary"
	if !boundary && (l.Message == nil || l.Type != "user" && l.Type != "assistant") {
		return
	}
	c := f.chains[key]
	if c == nil {
		c = &claudeChain{}
		f.chains[key] = c
		f.order = append(f.order, key)
	}
	switch {
	case boundary:
		c.lines = append(c.lines, &line{Kind: "compaction", TS: l.Timestamp})
	case l.Summary, l.Failed, l.Message.Model == syntheticModel:
	default:
		c.add(f.in, n, l)
	}
}

// key names the chain of a line: "" for the conversation with the user, else what
// the sub-agent is called, or where its conversation began.
func (f *claudeFile) key(l *claudeLine) string {
	switch {
	case !l.Side:
		return ""
	case l.Agent != "":
		return l.Agent
	}
	if key := f.chainOf[l.Parent]; l.Parent != "" && key != "" {
		return key
	}
	if l.UUID == "" {
		return "side"
	}
	return l.UUID
}

// name is the file's for its first conversation, which is the only one as a rule.
func (f *claudeFile) name(key string) string {
	if key == f.order[0] {
		return f.in.stem
	}
	return f.in.stem + "-" + cmp.Or(key, "main")
}

// claudeChain is one conversation.
type claudeChain struct {
	lines []*line // a message as the model saw it each, or a compaction
	missing
}

// add takes a line. An answer is written block by block, with results of its
// first calls in between; messages of the user go out together.
func (c *claudeChain) add(in input, n int, l *claudeLine) {
	m := l.Message
	s := c.open(l.Type, m.ID)
	if s == nil {
		s = &line{number: n, id: m.ID, Kind: "message", Role: l.Type}
		c.lines = append(c.lines, s)
	}
	if s.TS.Before(l.Timestamp) {
		s.TS = l.Timestamp
	}
	if s.Role == "assistant" {
		s.Usage = cmp.Or(counted(m.Usage), s.Usage) // the last counts the whole answer
	}
	s.Model = m.Model
	blocks, err := claudeBlocks(m.Content)
	if err != nil {
		in.bad(atLine(n, err)) // an empty message is left out
	}
	for _, b := range blocks {
		if b.Type == "thinking" && b.Thinking == "" || b.Type == "redacted_thinking" {
			c.lacks(missingThinking, 1)
		}
		if keepBlock(b) {
			s.Content = append(s.Content, b)
		}
	}
	slices.SortStableFunc(s.Content, func(a, b block) int { return blockOrder[a.Type] - blockOrder[b.Type] })
}

// blockOrder is that of the blocks of a message: the provider wants results first.
var blockOrder = map[string]int{"tool_result": -1}

// open returns the message that another line goes on with; nil begins one.
func (c *claudeChain) open(role, id string) *line {
	for _, s := range slices.Backward(c.lines) {
		switch {
		case s.Kind == "compaction":
			return nil
		case role == "user":
			if s.Role != "user" {
				return nil
			}
			return s
		case id != "" && s.id == id:
			return s
		}
	}
	return nil
}

// claudeBlocks are the blocks of a content, which may be one text.
func claudeBlocks(content codec.Raw) (out []block, err error) {
	if text, ok := codec.Text(content); ok {
		return []block{textBlock(text)}, nil
	}
	err = codec.Unmarshal(content, &out)
	return out, err
}

func textBlock(text string) block {
	return block{raw: object("type", "text", "text", text), Type: "text", Text: text}
}

// keepBlock leaves out what the provider would not take back.
func keepBlock(b block) bool {
	switch b.Type {
	case "thinking":
		return b.Signature != ""
	case "text":
		return strings.TrimSpace(b.Text) != ""
	default:
		return b.Type != ""
	}
}
