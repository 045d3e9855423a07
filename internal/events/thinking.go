package events

import (
	"bytes"
	"cmp"
	"slices"

	"compactd/internal/events/models"
	"compactd/internal/events/traits"
)

// Thinking states whether the thinking of a session's model goes only with the history that it
// was made under; see [traits.Thinking]. Claude is served in other dialects too: in Converse by
// Bedrock, in chat completions by OpenRouter, and by the AI SDK. In its own dialect, and in
// Converse, a model whose name shows no maker may be Claude whichever provider serves it.
func (f Format) Thinking(m Model) traits.Binding {
	switch f {
	case Anthropic, Bedrock:
		if p := models.Provider(m.Provider); !slices.Contains(ownModels, p) {
			m.Provider = string(f)
		}
	case OpenAI, AISDK:
		m.Provider = cmp.Or(m.Provider, string(f))
	default:
		return traits.Free
	}
	return traits.Thinking(m.Provider, m.Name)
}

// ownModels are the providers that have an API in Anthropic's dialect and models of their own
// alone.
var ownModels = []string{"deepseek", "minimax", "moonshot", "qwen", "xai", "xiaomi", "zhipu"}

// BindsThinking reports whether the thinking of a session's model is bound, or may be; see
// [Format.Thinking].
func (f Format) BindsThinking(m Model) bool { return f.Thinking(m) != traits.Free }

// MayBind reports whether the model is none that is known: its thinking may be bound, and that of
// the open tool loop may be demanded.
func (f Format) MayBind(m Model) bool { return f.Thinking(m) == traits.MayBind }

// HasPrompt reports whether the user wrote one of some messages: it ends a tool loop.
func (f Format) HasPrompt(messages []Raw) bool {
	return slices.ContainsFunc(messages, func(raw Raw) bool {
		m, err := f.Read(raw)
		return err == nil && m.Role == RoleUser && !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Kind == PartResult })
	})
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
