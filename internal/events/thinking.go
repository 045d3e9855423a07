package events

import (
	"bytes"
	"slices"

	"compactd/internal/events/traits"
)

// BindsThinking reports whether the thinking of a session's model goes only with the history
// that it was made under; see [traits.BindsThinking]. Without a provider it is that of the
// dialect. Claude is served in other dialects too: in Converse by Bedrock, in chat completions by
// OpenRouter, and by the AI SDK.
func (f Format) BindsThinking(m Model) bool {
	switch f {
	case Anthropic:
		if m.Provider == "" {
			m.Provider = string(Anthropic)
		}
	case Bedrock:
		if m.Name == "" { // it may be Claude
			return true
		}
	case OpenAI, AISDK:
		if m.Provider == "" {
			m.Provider = string(f)
		}
	default:
		return false
	}
	return traits.BindsThinking(m.Provider, m.Name)
}

// thinks are words of every message that has thinking: types of blocks, and members.
var thinks = [][]byte{[]byte("thinking"), []byte("reasoning")}

// WithoutThinking returns messages without their model's thinking, as a worker renders them.
// Messages without any keep their bytes, and one that has nothing else is left out.
func (f Format) WithoutThinking(messages []Raw) []Raw {
	out := make([]Raw, 0, len(messages))
	for _, raw := range messages {
		if !slices.ContainsFunc(thinks, func(word []byte) bool { return bytes.Contains(raw, word) }) {
			out = append(out, raw)
			continue
		}
		m, err := f.Read(raw)
		if err != nil || !slices.ContainsFunc(m.Parts, isThinking) {
			out = append(out, raw)
			continue
		}
		m.Parts = slices.DeleteFunc(m.Parts, func(p Part) bool { return isThinking(p) || p.Kind == PartText && p.Blank() })
		m.Edited = true
		if len(m.Parts) == 0 {
			continue
		}
		if stripped, err := f.Write(m); err == nil { // its parts came as blocks
			out = append(out, stripped)
		}
	}
	return out
}

func isThinking(p Part) bool { return p.Kind == PartThinking }
