package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"compactd/internal/events/codec"
)

// geminiRecord is one line of a chat of Gemini CLI, or the whole of an older one. Source:
// github.com/google-gemini/gemini-cli at 5411f11, packages/core/src/services/chatRecordingService.ts,
// chatRecordingTypes.ts and utils/sessionUtils.ts.
type geminiRecord struct {
	SessionID string      `json:"sessionId"`
	Messages  []codec.Raw `json:"messages"`
	RewindTo  *string     `json:"$rewindTo"`
	Set       *struct {
		Messages []codec.Raw `json:"messages"`
	} `json:"$set"`

	geminiMessage
}

type geminiMessage struct {
	ID        string       `json:"id"`
	Timestamp time.Time    `json:"timestamp"`
	Type      string       `json:"type"` // user, gemini; info, error and warning are for the interface
	Content   codec.Raw    `json:"content"`
	Model     string       `json:"model"`
	Thoughts  []codec.Raw  `json:"thoughts"` // their titles
	Calls     []geminiCall `json:"toolCalls"`
	Tokens    *struct {
		Input    int64 `json:"input"` // with those of caches
		Output   int64 `json:"output"`
		Cached   int64 `json:"cached"`
		Thoughts int64 `json:"thoughts"`
	} `json:"tokens"`
}

type geminiCall struct {
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Args   codec.Raw `json:"args"`
	Result codec.Raw `json:"result"` // a text, a part, or parts
	Status string    `json:"status"`
}

type geminiPart struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"`
	Call    *struct {
		ID   string    `json:"id"`
		Name string    `json:"name"`
		Args codec.Raw `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string    `json:"id"`
		Name     string    `json:"name"`
		Response codec.Raw `json:"response"`
	} `json:"functionResponse"`
	Inline codec.Raw `json:"inlineData"`
	File   codec.Raw `json:"fileData"`
}

// geminiName stands for the model of a chat that names none.
const geminiName = "gemini"

// geminiChat is the result of a file's records.
type geminiChat struct {
	id       string
	messages []geminiMessage // with an empty type for each compaction
	known    map[string]bool // those that the program has, by id
	rewound  int
}

// parseGemini reads a chat: records a line, one document, or a checkpoint that its user saved.
func parseGemini(in input, r io.Reader) {
	data, err := document(r)
	if err != nil {
		in.bad(err)
		return
	}
	if contents, ok := geminiContents(data); ok {
		in.checkpoint(contents)
		return
	}
	c := &geminiChat{known: map[string]bool{}}
	if raw := codec.Raw(data); raw.IsValid() { // also a chat of one line
		err = c.record(data)
		if err != nil {
			in.bad(err)
		}
	} else {
		in.eachLine(bytes.NewReader(data), func(_ int, line []byte) error { return c.record(line) })
	}
	d := &dialogue{name: "gemini-" + cmp.Or(c.id, in.stem), absent: "The tool call was cancelled."}
	d.lacks(missingBranch, c.rewound)
	for _, m := range c.messages {
		if err := m.put(d); err != nil {
			in.bad(fmt.Errorf("message %s: %w", m.ID, err))
		}
	}
	d.put(in)
}

func (c *geminiChat) record(line []byte) error {
	var r geminiRecord
	if err := codec.Unmarshal(line, &r); err != nil {
		return err
	}
	switch {
	case r.RewindTo != nil:
		c.rewind(*r.RewindTo)
	case r.ID != "":
		c.put(r.geminiMessage)
	case r.Set != nil:
		if r.Set.Messages != nil {
			return c.replace(r.Set.Messages)
		}
	default:
		c.id = cmp.Or(c.id, r.SessionID)
		messages, err := geminiMessages(r.Messages)
		for _, m := range messages {
			c.put(m)
		}
		return err
	}
	return nil
}

func geminiMessages(all []codec.Raw) (out []geminiMessage, err error) {
	for _, raw := range all {
		var m geminiMessage
		if e := codec.Unmarshal(raw, &m); e != nil {
			err = cmp.Or(err, e)
			continue
		}
		out = append(out, m)
	}
	return out, err
}

func (c *geminiChat) index(id string) int {
	return slices.IndexFunc(c.messages, func(m geminiMessage) bool { return m.ID == id })
}

// put adds a message, or replaces it: calls get their results so.
func (c *geminiChat) put(m geminiMessage) {
	c.known[m.ID] = true
	if i := c.index(m.ID); i >= 0 && m.ID != "" {
		c.messages[i] = m
		return
	}
	c.messages = append(c.messages, m)
}

// rewind takes messages back, from one on; from the first where it is not known.
func (c *geminiChat) rewind(id string) {
	for _, m := range c.messages[max(c.index(id), 0):] {
		if m.Type == "gemini" {
			c.rewound++
		}
	}
	c.messages = c.messages[:max(c.index(id), 0)]
}

// replace is the history as the program changed it. Where messages are gone it was compacted:
// what it wrote in their place comes first, and whatever it recorded from there on is a copy.
func (c *geminiChat) replace(all []codec.Raw) error {
	now, err := geminiMessages(all)
	kept := map[string]bool{}
	for _, m := range now {
		kept[m.ID] = true
	}
	gone := false
	for id := range c.known {
		gone = gone || !kept[id]
	}
	if !gone {
		for _, m := range now {
			if !c.known[m.ID] {
				c.put(m)
			}
		}
		return err
	}
	var summary codec.Raw
	if len(now) > 0 {
		summary = now[0].Content
		if i := c.index(now[0].ID); i > 0 {
			c.messages = c.messages[:i]
		}
	}
	c.known = kept
	c.messages = append(c.messages, geminiMessage{Content: summary})
	return err
}

func (m *geminiMessage) put(d *dialogue) error {
	parts, err := geminiParts(m.Content)
	switch m.Type {
	case "":
		d.compaction(m.Timestamp, geminiText(parts))
	case "user":
		if text := strings.TrimSpace(geminiText(parts)); strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?") {
			return nil // a command to the program
		}
		d.geminiUser(m.Timestamp, parts)
	case "gemini":
		d.answer(m.Timestamp, cmp.Or(m.Model, geminiName), m.counted(), m.blocks(d, parts)...)
		for _, call := range m.Calls {
			if text, ok := call.answer(d); ok {
				d.result(m.Timestamp, call.ID, text, call.Status == "error")
			}
		}
	}
	return err
}

func (m *geminiMessage) counted() *lineUsage {
	if m.Tokens == nil {
		return nil
	}
	t := m.Tokens
	return &lineUsage{Input: t.Input - t.Cached, CacheRead: t.Cached, Output: t.Output + t.Thoughts}
}

// blocks are those of an answer. Its calls are in its content, or beside it in older chats.
func (m *geminiMessage) blocks(d *dialogue, parts []geminiPart) (out []block) {
	d.lacks(missingThinking, len(m.Thoughts))
	out = d.geminiBlocks(parts)
	if slices.ContainsFunc(parts, func(p geminiPart) bool { return p.Call != nil }) {
		return out
	}
	for _, call := range m.Calls {
		out = append(out, callBlock(call.ID, call.Name, call.Args))
	}
	return out
}

// answer is the result of a call as the model got it.
func (c *geminiCall) answer(d *dialogue) (string, bool) {
	if !codec.IsSet(c.Result) {
		return "", false
	}
	parts, err := geminiParts(c.Result)
	if err != nil {
		return "", false
	}
	var out []string
	for _, p := range parts {
		switch {
		case p.Response != nil:
			out = append(out, geminiOutput(p.Response.Response))
		case p.Text != "":
			out = append(out, p.Text)
		case p.Inline != nil || p.File != nil:
			out = append(out, d.media("file").Text)
		}
	}
	return strings.Join(out, "\n"), true
}

// geminiOutput is the text of a response: its output, or all of it.
func geminiOutput(response codec.Raw) string {
	for _, name := range []string{"output", "error"} {
		if text, ok := codec.Text(codec.Get(response, name)); ok {
			return text
		}
	}
	return string(response)
}

// geminiParts are those of a content: a text, a part, or a list of both.
func geminiParts(content codec.Raw) (out []geminiPart, err error) {
	var items []codec.Raw
	switch content.Kind() {
	case 0, 'n':
		return nil, nil
	case '[':
		if err := codec.Unmarshal(content, &items); err != nil {
			return nil, err
		}
	default:
		items = []codec.Raw{content}
	}
	for _, item := range items {
		var p geminiPart
		if text, ok := codec.Text(item); ok {
			p.Text = text
		} else if err := codec.Unmarshal(item, &p); err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}

func geminiText(parts []geminiPart) string {
	return joined(parts, func(p *geminiPart) string {
		if p.Thought {
			return ""
		}
		return p.Text
	})
}

// geminiUser takes a message of the user: results of calls, and texts.
func (d *dialogue) geminiUser(at time.Time, parts []geminiPart) {
	for _, p := range parts {
		if p.Response != nil {
			d.result(at, cmp.Or(p.Response.ID, d.nameless(p.Response.Name)), geminiOutput(p.Response.Response), false)
		}
	}
	d.user(at, d.geminiBlocks(parts)...)
}

func (d *dialogue) geminiBlocks(parts []geminiPart) (out []block) {
	for i, p := range parts {
		switch {
		case p.Thought:
			if p.Text != "" {
				out = append(out, thinkingBlock(p.Text, ""))
			}
		case p.Call != nil:
			out = append(out, callBlock(cmp.Or(p.Call.ID, fmt.Sprintf("%s-%d-%d", p.Call.Name, len(d.lines), i)), p.Call.Name, p.Call.Args))
		case p.Text != "":
			out = append(out, textBlock(p.Text))
		case p.Inline != nil || p.File != nil:
			out = append(out, d.media("file"))
		}
	}
	return out
}

// nameless is the first call of a tool that waits for a result, for a result without an id.
func (d *dialogue) nameless(tool string) string {
	for _, id := range d.calls {
		if strings.HasPrefix(id, tool+"-") {
			return id
		}
	}
	return ""
}

// geminiContent is a message of Gemini's API.
type geminiContent struct {
	Role  string    `json:"role"`
	Parts codec.Raw `json:"parts"`
}

// geminiContents are those of a checkpoint: a list, or one under history.
func geminiContents(data []byte) (out []geminiContent, ok bool) {
	raw := codec.Raw(data)
	if !raw.IsValid() {
		return nil, false
	}
	if history := codec.Get(raw, "history"); history != nil {
		raw = history
	}
	return out, has(first(raw), "role", "parts") && codec.Unmarshal(raw, &out) == nil
}

func (in input) checkpoint(contents []geminiContent) {
	d := &dialogue{name: "gemini-" + in.stem, absent: "The tool call was cancelled."}
	for i, c := range contents {
		parts, err := geminiParts(c.Parts)
		if err != nil {
			in.bad(fmt.Errorf("history[%d]: %w", i, err))
			continue
		}
		if c.Role == "model" {
			d.answer(time.Time{}, geminiName, nil, d.geminiBlocks(parts)...)
		} else {
			d.geminiUser(time.Time{}, parts)
		}
	}
	d.put(in)
}
