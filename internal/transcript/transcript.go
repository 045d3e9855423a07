// Package transcript reads recorded agent sessions and turns them into the
// events their agents would have published.
//
//	sessions, err := transcript.Read("session.jsonl.gz")
//	for _, t := range sessions[0].Turns { publish(t.Payload) }
//
// A transcript is JSON Lines, gzip if the name ends in .gz, one message per line:
//
//	{"session","seq","source","kind":"message|compaction","ts","role",
//	 "content":[{text|thinking|tool_use|tool_result}],"model",
//	 "usage":{input,cache_read,cache_write,output},"meta":{summary,context_window}}
//
// # Guarantees
//
//   - A turn is everything up to and including an assistant message.
//   - What the recorded agent's own compaction wrote is left out: lines of kind
//     compaction, and messages with meta.summary. Usage after it is left out too,
//     since it counts another history than ours.
//   - Payloads and ids depend on the file alone, so a turn sent twice is one turn.
//
// # Concurrency
//
// Functions are safe for concurrent use.
//
// # On failure
//
// Errors name the file and the line.
package transcript

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"compactd/internal/events"
)

// Session is one recorded conversation.
type Session struct {
	Name   string
	Format events.Format
	Turns  []Turn
}

// Turn is one session.turn.
type Turn struct {
	ID       string
	Number   int64
	At       time.Time // when its last message was recorded; zero if unknown
	Payload  []byte
	Messages []events.Raw // those in Payload

	// Input is what the provider counted for the prompt of the turn's answer, in
	// tokens; 0 when it is not known. It stands also where Payload leaves usage
	// out: from the turn with Restarted on, which the recorded agent's own
	// compaction came before, it counts another history.
	Input     int64
	Restarted bool
}

// line is one line of a transcript.
type line struct {
	Session string     `json:"session"`
	Kind    string     `json:"kind"`
	TS      time.Time  `json:"ts"`
	Role    string     `json:"role"`
	Content []block    `json:"content"`
	Model   string     `json:"model"`
	Usage   *lineUsage `json:"usage"`
	Meta    struct {
		Summary       events.Raw `json:"summary"`
		ContextWindow int64      `json:"context_window"`
	} `json:"meta"`
}

type lineUsage struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
}

// block is one content block; its members are those of Anthropic.
type block struct {
	raw       events.Raw
	Type      string     `json:"type"`
	Text      string     `json:"text"`
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Input     events.Raw `json:"input"`
	ToolUseID string     `json:"tool_use_id"`
	Content   events.Raw `json:"content"`
	Signature string     `json:"signature"`
}

// UnmarshalJSON keeps the block's own bytes beside its fields.
func (b *block) UnmarshalJSON(data []byte) error {
	type plain block
	if err := events.Unmarshal(data, (*plain)(b)); err != nil {
		return err
	}
	b.raw = slices.Clone(data)
	return nil
}

// maxLine bounds one line, in bytes.
const maxLine = 64 << 20

// Read reads one file. A folder stands for all its *.jsonl and *.jsonl.gz.
// Sessions come in the order of their first line.
func Read(path string) ([]Session, error) { return read(path, false) }

// ReadThinking reads as Read does, but keeps thinking whose signature was not
// recorded. It was part of the prompts, and counts; no provider takes it back.
func ReadThinking(path string) ([]Session, error) { return read(path, true) }

func read(path string, thinking bool) ([]Session, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	if !info.IsDir() {
		return readFile(path, thinking)
	}
	var out []Session
	for _, pattern := range []string{"*.jsonl", "*.jsonl.gz"} {
		files, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, fmt.Errorf("read transcript: %w", err)
		}
		for _, f := range files {
			s, err := readFile(f, thinking)
			if err != nil {
				return nil, err
			}
			out = append(out, s...)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read transcript: %s holds no *.jsonl or *.jsonl.gz", path)
	}
	return out, nil
}

func readFile(path string, thinking bool) ([]Session, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("read transcript %s: %w", filepath.Base(path), err)
		}
	}
	s, err := parse(r, thinking)
	if err != nil {
		return nil, fmt.Errorf("read transcript %s: %w", filepath.Base(path), err)
	}
	return s, nil
}

func parse(r io.Reader, thinking bool) ([]Session, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	byName := map[string]*builder{}
	var order []*builder
	for n := 1; sc.Scan(); n++ {
		var l line
		if err := events.Unmarshal(sc.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if !events.ValidID(l.Session) {
			return nil, fmt.Errorf("line %d: session is not 1 to %d of A-Z a-z 0-9 _ -", n, events.MaxIDLen)
		}
		b := byName[l.Session]
		if b == nil {
			b = &builder{name: l.Session, thinking: thinking}
			byName[l.Session] = b
			order = append(order, b)
		}
		b.lines = append(b.lines, l)
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	out := make([]Session, 0, len(order))
	for _, b := range order {
		s, err := b.session()
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", b.name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// builder collects the lines of one session.
type builder struct {
	name     string
	lines    []line
	thinking bool // without a signature stays

	format    events.Format
	model     events.Model
	told      events.Model // by the turns so far
	pending   []events.Raw
	compacted bool
	restarted bool // by a compaction since the last turn
	turns     []Turn
}

// payload is the wire form of a session.turn.
type payload struct {
	V          int             `json:"v"`
	ID         string          `json:"id"`
	Turn       int64           `json:"turn"`
	Generation int64           `json:"generation"`
	Model      *events.Model   `json:"model,omitzero"`
	Format     events.Format   `json:"format,omitzero"`
	Messages   []events.Raw    `json:"messages"`
	Usage      *anthropicUsage `json:"usage,omitzero"`
}

type anthropicUsage struct {
	Input       int64 `json:"input_tokens"`
	CacheCreate int64 `json:"cache_creation_input_tokens"`
	CacheRead   int64 `json:"cache_read_input_tokens"`
	Output      int64 `json:"output_tokens"`
}

func (b *builder) session() (Session, error) {
	b.detect()
	for _, l := range b.lines {
		switch {
		case l.Kind == "compaction":
			b.compacted, b.restarted = true, true
		case l.Kind == "message" && l.Meta.Summary == nil:
			if l.Model != "" {
				b.model.Name = l.Model
			}
			b.pending = append(b.pending, b.messages(l)...)
			if l.Role == "assistant" {
				if err := b.turn(l); err != nil {
					return Session{}, err
				}
			}
		}
	}
	if len(b.pending) > 0 { // the agent never answered
		if err := b.turn(b.lines[len(b.lines)-1]); err != nil {
			return Session{}, err
		}
	}
	return Session{Name: b.name, Format: b.format, Turns: b.turns}, nil
}

// Models of transcripts that do not say more.
const (
	claudePrefix  = "claude"
	claudeWindow  = 200_000 // what the recorded agents ran with
	fallbackModel = "gpt-4o"
)

// detect finds dialect and window: sessions of Claude models go as anthropic,
// all others as openai.
func (b *builder) detect() {
	b.format, b.model = events.OpenAI, events.Model{Provider: "openai", Name: fallbackModel}
	for _, l := range b.lines {
		if strings.HasPrefix(l.Model, claudePrefix) {
			b.format, b.model = events.Anthropic, events.Model{Provider: "anthropic", Name: l.Model, ContextWindow: claudeWindow}
			break
		}
	}
	if w := b.lines[0].Meta.ContextWindow; w > 0 {
		b.model.ContextWindow = w
	}
}

func (b *builder) turn(last line) error {
	n := int64(len(b.turns)) + 1
	p := payload{
		V: events.Version, ID: turnID(b.name, n), Turn: n,
		Format: b.format, Messages: b.pending, Usage: b.usage(last),
	}
	if p.Messages == nil {
		p.Messages = []events.Raw{}
	}
	if b.model != b.told {
		m := b.model
		p.Model, b.told = &m, m
	}
	data, err := events.Marshal(p)
	if err != nil {
		return fmt.Errorf("turn %d: %w", n, err)
	}
	t := Turn{ID: p.ID, Number: n, At: last.TS, Payload: data, Messages: p.Messages, Restarted: b.restarted}
	if u := last.Usage; u != nil {
		t.Input = u.Input + u.CacheRead + u.CacheWrite
	}
	b.turns = append(b.turns, t)
	b.pending, b.restarted = nil, false
	return nil
}

var turnSpace = uuid.MustParse("0d3c2a3e-5f0c-5b63-9a55-4f4f6d1f7c20")

func turnID(session string, n int64) string {
	return uuid.NewSHA1(turnSpace, fmt.Appendf(nil, "%s\x00%d", session, n)).String()
}

func (b *builder) usage(l line) *anthropicUsage {
	u := l.Usage
	if u == nil || b.compacted || *u == (lineUsage{}) {
		return nil
	}
	return &anthropicUsage{Input: u.Input, CacheCreate: u.CacheWrite, CacheRead: u.CacheRead, Output: u.Output}
}

func (b *builder) messages(l line) []events.Raw {
	if b.format == events.Anthropic {
		return []events.Raw{b.anthropicMessage(l)}
	}
	return openaiMessages(l)
}

// anthropicMessage keeps the blocks as recorded. Thinking without a signature
// goes: the provider would refuse it.
func (b *builder) anthropicMessage(l line) events.Raw {
	content := []events.Raw{}
	for _, c := range l.Content {
		switch {
		case c.Type != "thinking" || c.Signature != "":
			content = append(content, c.raw)
		case b.thinking:
			content = append(content, must(struct {
				Type     string `json:"type"`
				Thinking string `json:"thinking"`
			}{c.Type, c.Text}))
		}
	}
	return must(struct {
		Role    string       `json:"role"`
		Content []events.Raw `json:"content"`
	}{l.Role, content})
}

type openaiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openaiMessage struct {
	Role       string       `json:"role"`
	Content    *string      `json:"content"`
	ToolCalls  []openaiCall `json:"tool_calls,omitzero"`
	ToolCallID string       `json:"tool_call_id,omitzero"`
}

// openaiMessages makes a tool message of each result, and one message of the rest.
func openaiMessages(l line) []events.Raw {
	var out []events.Raw
	var text []string
	m := openaiMessage{Role: l.Role}
	for _, b := range l.Content {
		switch b.Type {
		case "text":
			text = append(text, b.Text)
		case "tool_use":
			c := openaiCall{ID: b.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = b.Name, string(b.Input)
			m.ToolCalls = append(m.ToolCalls, c)
		case "tool_result":
			s, ok := events.Text(b.Content)
			if !ok {
				s = string(b.Content)
			}
			out = append(out, must(openaiMessage{Role: "tool", Content: &s, ToolCallID: b.ToolUseID}))
		}
	}
	if joined := strings.Join(text, "\n"); joined != "" || len(m.ToolCalls) == 0 && len(out) == 0 {
		m.Content = &joined
	}
	if m.Content != nil || len(m.ToolCalls) > 0 {
		out = append(out, must(m))
	}
	return out
}

// must writes a value whose parts were read from JSON.
func must(v any) events.Raw {
	data, err := events.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("transcript: write a message: %v", err)) // its raw parts are valid JSON
	}
	return data
}
