package transport

import (
	"encoding/json"
	"slices"

	"compactd/internal/events"
)

// cut returns the instructions, the first prompt, and the newest turns that have most bytes
// together; where no whole turn fits, the newest calls with their results.
func (c *call) cut(messages []any, most int) []any {
	read := make([]events.Message, len(messages))
	for i, raw := range messages {
		m, err := c.format.Read(events.Raw(raw.(json.RawMessage)))
		if err != nil {
			return messages
		}
		read[i] = m
	}
	head := slices.IndexFunc(read, isPrompt) + 1
	size := func(part []any) (n int) {
		for _, m := range part {
			n += len(m.(json.RawMessage)) + 1
		}
		return n
	}
	room := most - size(messages[:head])
	prompts, all := starts(read, head)
	for _, from := range slices.Concat(prompts, all) {
		if size(messages[from:]) <= room {
			return c.bound(slices.Concat(messages[:head], messages[from:]))
		}
	}
	if len(all) == 0 {
		return messages
	}
	return c.bound(slices.Concat(messages[:head], messages[all[len(all)-1]:]))
}

// starts lists where a history may go on behind its head: at prompts, and at all places without an
// open call.
func starts(read []events.Message, head int) (prompts, all []int) {
	open := map[string]bool{}
	for i, m := range read {
		answers := slices.ContainsFunc(m.Parts, func(p events.Part) bool { return p.Kind == events.PartResult })
		if i >= head && len(open) == 0 && !answers && !isReasoning(read[i-1]) {
			all = append(all, i)
			if isPrompt(m) {
				prompts = append(prompts, i)
			}
		}
		for _, p := range m.Parts {
			switch p.Kind {
			case events.PartCall:
				open[p.CallID] = true
			case events.PartResult:
				delete(open, p.CallID)
			}
		}
	}
	return prompts, all
}

func isPrompt(m events.Message) bool {
	return m.Role == events.RoleUser && !slices.ContainsFunc(m.Parts, func(p events.Part) bool { return p.Kind == events.PartResult })
}

// isReasoning reports whether a message is an item of reasoning, which belongs to the next one.
func isReasoning(m events.Message) bool {
	return len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, func(p events.Part) bool { return p.Kind != events.PartThinking })
}

// bound leaves thinking out where the model accepts it with the history alone that it was made
// under. A model that is not known keeps that of its open tool loop.
func (c *call) bound(messages []any) []any {
	m := events.Model{Provider: c.model.Provider, Name: c.model.Name}
	if !c.format.BindsThinking(m) {
		return messages
	}
	raws := make([]events.Raw, len(messages))
	loop := len(messages)
	for i, raw := range messages {
		raws[i] = events.Raw(raw.(json.RawMessage))
		if c.format.MayBind(m) && c.format.HasPrompt(raws[i:i+1]) {
			loop = i
		}
	}
	var out []any
	for _, raw := range slices.Concat(c.format.WithoutThinking(raws[:loop]), raws[loop:]) {
		out = append(out, json.RawMessage(raw))
	}
	return out
}
