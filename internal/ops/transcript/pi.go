package transcript

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"compactd/internal/events/codec"
)

// piEntry is one line of a session of pi, or of oh-my-pi, which grew out of it. Source:
// github.com/badlogic/pi-mono at 83378aa, packages/coding-agent/src/core/session-manager.ts and
// messages.ts, packages/ai/src/types.ts.
type piEntry struct {
	Type      string     `json:"type"`
	ID        string     `json:"id"`
	Parent    string     `json:"parentId"`
	Timestamp time.Time  `json:"timestamp"`
	Message   *piMessage `json:"message"`
	Content   codec.Raw  `json:"content"`      // of custom_message
	Summary   string     `json:"summary"`      // of compaction and branch_summary
	System    string     `json:"systemPrompt"` // of session_init, oh-my-pi's

	line int
}

type piMessage struct {
	Role     string    `json:"role"`
	Content  codec.Raw `json:"content"` // a text or blocks
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Stop     string    `json:"stopReason"`
	Usage    codec.Raw `json:"usage"`

	CallID string `json:"toolCallId"` // of toolResult
	Failed bool   `json:"isError"`

	Command   string `json:"command"` // of bashExecution
	Output    string `json:"output"`
	ExitCode  int    `json:"exitCode"`
	Cancelled bool   `json:"cancelled"`
	Hidden    bool   `json:"excludeFromContext"`
	Truncated bool   `json:"truncated"`
	Full      string `json:"fullOutputPath"`
	Summary   string `json:"summary"` // of branchSummary
}

type piBlock struct {
	Type      string    `json:"type"`
	Text      string    `json:"text"`
	Thinking  string    `json:"thinking"`
	Signature string    `json:"thinkingSignature"`
	Redacted  bool      `json:"redacted"`
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Arguments codec.Raw `json:"arguments"`
}

// parsePi reads a session: the branch that its last line is on, as pi itself does.
func parsePi(in input, r io.Reader) {
	d := &dialogue{name: "pi-" + in.stem, absent: "No result provided"}
	var entries []*piEntry
	eachValue(in, r, func(n int, e *piEntry) error {
		switch e.line = n; e.Type {
		case "session":
			d.name = "pi-" + cmp.Or(e.ID, in.stem)
		case "title":
		default:
			entries = append(entries, e)
		}
		return nil
	})
	path := piPath(entries)
	for _, e := range entries {
		if e.Message != nil && e.Message.Role == "assistant" && !path[e] {
			d.lacks(missingBranch, 1)
		}
	}
	for _, e := range entries {
		if !path[e] {
			continue
		}
		if err := e.put(d); err != nil {
			in.bad(atLine(e.line, err))
		}
	}
	d.put(in)
}

// piPath is the way from the first entry to the last. Entries of the first version have no
// ids, and are all on it.
func piPath(entries []*piEntry) map[*piEntry]bool {
	byID := map[string]*piEntry{}
	for _, e := range entries {
		byID[e.ID] = e
	}
	path := map[*piEntry]bool{}
	if len(entries) == 0 {
		return path
	}
	if entries[0].ID == "" {
		for _, e := range entries {
			path[e] = true
		}
		return path
	}
	for e := entries[len(entries)-1]; e != nil && !path[e]; e = byID[e.Parent] {
		path[e] = true
	}
	return path
}

func (e *piEntry) put(d *dialogue) error {
	switch e.Type {
	case "session_init":
		d.system = cmp.Or(d.system, e.System)
	case "compaction":
		d.compaction(e.Timestamp, e.Summary)
	case "branch_summary":
		d.user(e.Timestamp, texts(piBranch(e.Summary))...)
	case "custom_message":
		blocks, err := d.piBlocks(e.Content)
		d.user(e.Timestamp, blocks...)
		return err
	case "message":
		if e.Message != nil {
			return e.message(d)
		}
	}
	return nil
}

func (e *piEntry) message(d *dialogue) error {
	m := e.Message
	switch m.Role {
	case "bashExecution":
		if !m.Hidden {
			d.user(e.Timestamp, textBlock(m.ran()))
		}
		return nil
	case "branchSummary":
		d.user(e.Timestamp, texts(piBranch(m.Summary))...)
		return nil
	case "compactionSummary":
		d.compaction(e.Timestamp, m.Summary)
		return nil
	}
	blocks, err := d.piBlocks(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "assistant":
		if m.Stop != "error" && m.Stop != "aborted" { // pi sends none of these again
			d.answer(e.Timestamp, qualified(m.Provider, m.Model), counted(m.Usage), blocks...)
		}
	case "toolResult":
		d.result(e.Timestamp, piCall(m.CallID), joined(blocks, textOf), m.Failed)
	default: // user, custom, hookMessage, developer
		d.user(e.Timestamp, blocks...)
	}
	return nil
}

// ran is a command of the user's own, in pi's words to the model.
func (m *piMessage) ran() string {
	text := "Ran `" + m.Command + "`\n(no output)"
	if m.Output != "" {
		text = "Ran `" + m.Command + "`\n```\n" + m.Output + "\n```"
	}
	switch {
	case m.Cancelled:
		text += "\n\n(command cancelled)"
	case m.ExitCode != 0:
		text += fmt.Sprintf("\n\nCommand exited with code %d", m.ExitCode)
	}
	if m.Truncated && m.Full != "" {
		text += "\n\n[Output truncated. Full output: " + m.Full + "]"
	}
	return text
}

// piBranch is the text that pi has in place of a branch that its user left.
func piBranch(summary string) string {
	if summary == "" {
		return ""
	}
	return "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n" + summary + "</summary>"
}

// piBlocks are those of a content, which may be one text.
func (d *dialogue) piBlocks(content codec.Raw) (out []block, err error) {
	if text, ok := codec.Text(content); ok {
		return texts(text), nil
	}
	var blocks []piBlock
	if content == nil {
		return nil, nil
	}
	if err := codec.Unmarshal(content, &blocks); err != nil {
		return nil, err
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) != "" {
				out = append(out, textBlock(b.Text))
			}
		case "thinking":
			out = append(out, d.piThinking(b)...)
		case "toolCall":
			out = append(out, callBlock(piCall(b.ID), b.Name, b.Arguments))
		case "image":
			out = append(out, d.media("image"))
		}
	}
	return out, nil
}

func (d *dialogue) piThinking(b piBlock) []block {
	if b.Redacted || b.Thinking == "" {
		d.lacks(missingReasoning, 1)
		return nil
	}
	signature := b.Signature
	if strings.HasPrefix(signature, "{") || strings.HasPrefix(signature, "reasoning") { // an item of the Responses API, or a field's name
		signature = ""
	}
	return []block{thinkingBlock(b.Thinking, signature)}
}

// piCall is the id of a call: behind the sign is that of its item in the Responses API.
func piCall(id string) string {
	id, _, _ = strings.Cut(id, "|")
	return id
}

// textOf is the text of a block of text, "" of others.
func textOf(b *block) string {
	if b.Type != "text" {
		return ""
	}
	return b.Text
}
