package transcript

import (
	"cmp"
	"slices"
	"time"

	"compactd/internal/events/codec"
)

// dialogue collects the messages of a program that keeps them in a form of its own, as lines
// of ours. As the program does before it calls a model, it puts results right behind their
// calls, and gives a call without one a text in its place.
type dialogue struct {
	name   string
	absent string // result of a call that never got one
	system string // prompt

	lines []*line
	calls []string // of the last answer, that have no result yet
	held  []*line  // of the user, until they have
	missing
}

// user takes a message of the user, or of the program in the same role.
func (d *dialogue) user(at time.Time, blocks ...block) {
	if len(blocks) == 0 {
		return
	}
	l := &line{Kind: "message", Role: "user", TS: at, Content: blocks}
	if len(d.calls) > 0 {
		d.held = append(d.held, l)
		return
	}
	d.lines = append(d.lines, l)
}

// answer takes an answer of a model.
func (d *dialogue) answer(at time.Time, model string, usage *lineUsage, blocks ...block) {
	if len(blocks) == 0 {
		return
	}
	d.resolve(at)
	d.lines = append(d.lines, &line{Kind: "message", Role: "assistant", TS: at, Content: blocks, Model: model, Usage: usage})
	d.expect(blocks)
}

// more adds to the last answer. It reports false where something came in between.
func (d *dialogue) more(at time.Time, usage *lineUsage, blocks ...block) bool {
	n := len(d.lines)
	if n == 0 || d.lines[n-1].Role != "assistant" {
		return false
	}
	l := d.lines[n-1]
	l.TS, l.Usage, l.Content = at, cmp.Or(usage, l.Usage), append(l.Content, blocks...)
	d.expect(blocks)
	return true
}

func (d *dialogue) expect(blocks []block) {
	for _, b := range blocks {
		if b.Type == "tool_use" {
			d.calls = append(d.calls, b.ID)
		}
	}
}

// result takes the result of a call. Others are left out.
func (d *dialogue) result(at time.Time, id, text string, failed bool) {
	i := slices.Index(d.calls, id)
	if i < 0 {
		return
	}
	d.calls = slices.Delete(d.calls, i, i+1)
	made := resultBlock(id, text, failed)
	if n := len(d.lines) - 1; d.lines[n].Role == "user" && d.lines[n].Content[0].Type == "tool_result" {
		d.lines[n].TS, d.lines[n].Content = at, append(d.lines[n].Content, made)
	} else {
		d.lines = append(d.lines, &line{Kind: "message", Role: "user", TS: at, Content: []block{made}})
	}
	if len(d.calls) == 0 {
		d.lines = append(d.lines, d.held...)
		d.held = nil
	}
}

// resolve gives the calls that wait a result.
func (d *dialogue) resolve(at time.Time) {
	for len(d.calls) > 0 {
		d.result(at, d.calls[0], d.absent, true)
	}
}

// compaction is where the program compacted its history; what it wrote then may be unknown.
func (d *dialogue) compaction(at time.Time, summary string) {
	d.resolve(at)
	d.lines = append(d.lines, &line{Kind: "compaction", TS: at, Content: []block{{Text: summary}}})
}

// put gives the session to the reader of the file.
func (d *dialogue) put(in input) {
	if len(d.held) > 0 {
		d.resolve(d.held[0].TS)
	}
	if len(d.lines) == 0 {
		return
	}
	rec := recordingOf(d.lines)
	rec.name, rec.missing = in.named(d.name), d.missing
	rec.take(in, d.lines)
	if len(rec.steps) > 0 {
		rec.steps[0].system = d.system
	}
	rec.put(in)
}

// texts is one block of a text, or none of an empty one.
func texts(text string) []block {
	if text == "" {
		return nil
	}
	return []block{textBlock(text)}
}

// media stands for what is no text.
func (d *dialogue) media(kind string) block {
	d.lacks(missingMedia, 1)
	return textBlock("[" + kind + "]")
}

// thinkingBlock is reasoning, with what the provider signed it with.
func thinkingBlock(text, signature string) block {
	members := []any{"type", "thinking", "thinking", text}
	if signature != "" {
		members = append(members, "signature", signature)
	}
	return block{Type: "thinking", Text: text, Signature: signature, raw: object(members...)}
}

// callBlock is a call of a tool; arguments that are not an object become one.
func callBlock(id, tool string, args codec.Raw) block {
	if args.Kind() != '{' {
		text, ok := codec.Text(args)
		if !ok {
			text = string(args)
		}
		args = must(map[string]string{"input": text})
	}
	b := block{Type: "tool_use", ID: id, Name: tool, Input: must(args)} // without the white space of its file
	b.raw = object("type", b.Type, "id", id, "name", tool, "input", b.Input)
	return b
}

func resultBlock(id, text string, failed bool) block {
	b := block{Type: "tool_result", ToolUseID: id, Content: must(text)}
	members := []any{"type", b.Type, "tool_use_id", id, "content", b.Content}
	if failed {
		members = append(members, "is_error", true)
	}
	b.raw = object(members...)
	return b
}
