package events

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/models"
	"compactd/internal/events/traits"
)

// Format names the dialect of a session's messages.
type Format string

// The dialects of this version.
const (
	OpenAI    Format = "openai"           // chat completions
	Anthropic Format = "anthropic"        // messages
	NeuroLink Format = "neurolink"        // one message per tool call and result
	Responses Format = "openai-responses" // items of OpenAI's Responses API
	Gemini    Format = "gemini"           // contents of generateContent
	Bedrock   Format = "bedrock"          // messages of Converse
	AISDK     Format = "ai-sdk"           // ModelMessage of the AI SDK
)

// Formats lists the dialects of this version.
func Formats() []Format {
	out := make([]Format, 0, len(dialect.All()))
	for _, d := range dialect.All() {
		out = append(out, Format(d.Name))
	}
	return out
}

// Known reports whether f is a dialect of this version.
func (f Format) Known() bool { return dialect.Of(f) != nil }

// Dialect is the dialect of a format, openai's for an unknown one.
func (f Format) Dialect() *dialect.Dialect {
	if d := dialect.Of(f); d != nil {
		return d
	}
	return dialect.Of(OpenAI)
}

// formats are the dialects by provider, in any spelling, and by the maker of the model; "" is any. The first
// matching row counts. Its last column is the dialect of that provider's clients that name no format. A
// gateway such as OpenRouter accepts the models of all makers in OpenAI's dialect.
var formats = []struct {
	provider, maker string
	format          Format
}{
	{"anthropic", "", Anthropic},
	{"bedrock", "", Anthropic}, // its Messages; those of Converse name their format
	{"vertex", "anthropic", Anthropic},
	{"azure", "anthropic", Anthropic},
}

// DefaultFormat is the dialect of a session that names none, by the model of its first turn, nil for none.
func DefaultFormat(m *Model) Format {
	if m == nil {
		return OpenAI
	}
	provider, maker := models.Provider(m.Provider), models.Maker(m.Name)
	for _, f := range formats {
		if f.provider == provider && (f.maker == "" || f.maker == maker) {
			return f.format
		}
	}
	return OpenAI
}

// maxBadMessages bounds the messages that one error names.
const maxBadMessages = 8

// unknownFormat is the error about an unknown format.
func unknownFormat() *Invalid {
	return NewInvalid(CodeUnknownFormat, "format", "is none of "+formatNames())
}

// formatNames names all dialects.
func formatNames() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// Read returns the model of one message. Members that the dialect does not define stay
// in the message's and the parts' Raw. The error is an [*Invalid]. The message
// holds parts of raw, which must not change afterwards.
func (f Format) Read(raw codec.Raw) (dialect.Message, error) {
	if !f.Known() {
		return dialect.Message{}, unknownFormat()
	}
	if codec.Check(raw) != nil {
		return dialect.Message{}, NewInvalid(CodeBadMessage, "message", dialect.ErrNoMessage.Error())
	}
	m, err := f.read(raw)
	if err != nil {
		return dialect.Message{}, &Invalid{[]Problem{f.problem("message", raw, err)}}
	}
	return m, nil
}

// ReadAll reads messages in order, each of them JSON as [DecodeTurn] and
// [Format.Write] return it: unlike Read it does not check that again. Its error is
// an [*Invalid] that names the first few bad ones, as messages[3].
func (f Format) ReadAll(raws []codec.Raw) ([]dialect.Message, error) {
	if !f.Known() {
		return nil, unknownFormat()
	}
	out := make([]dialect.Message, len(raws))
	var bad problems
	for i, raw := range raws {
		m, err := f.read(raw)
		if err != nil {
			bad = append(bad, f.problem(fmt.Sprintf("messages[%d]", i), raw, err))
			if len(bad) == maxBadMessages {
				break
			}
		}
		out[i] = m
	}
	if len(bad) > 0 {
		return nil, bad.err()
	}
	return out, nil
}

func (f Format) read(raw codec.Raw) (dialect.Message, error) {
	r := dialect.Reader{Walker: codec.Walk(raw)}
	m, err := f.Dialect().Read(&r)
	if r.End() != nil {
		m, err = dialect.Message{}, dialect.ErrNoMessage
	}
	m.Raw = raw
	return m, err
}

// Write returns a message in its dialect: its original bytes if it is not edited, else with content and calls
// built from its parts, and all other members of its Raw in their order. It fails if the parts do not make a
// message of the dialect, which is a defect of the caller.
func (f Format) Write(m dialect.Message) (codec.Raw, error) {
	if m.Raw != nil && !m.Edited {
		return m.Raw, nil
	}
	return f.Append(nil, &m)
}

// Append builds a message from its parts like [Format.Write], and appends it to out.
func (f Format) Append(out codec.Raw, m *dialect.Message) (codec.Raw, error) {
	if !f.Known() {
		return nil, unknownFormat()
	}
	return f.Dialect().Append(out, m)
}

// Record returns a message in its recorded form: references replace media above [dialect.LargeMedia], and
// smaller ones, the largest first, while it has more than most bytes. Its identity and its price stay. See
// docs/format/wire.md, "Media by hash".
func (f Format) Record(raw codec.Raw, most int) codec.Raw { return f.Dialect().Record(raw, most) }

// Sendable returns a message that a provider accepts: placeholders replace media of which only the hash was
// kept.
func (f Format) Sendable(raw codec.Raw) codec.Raw { return f.Dialect().Sendable(raw) }

// Fold replaces media by references, in the oldest messages first, until the messages have at most most bytes
// together, if that is possible.
func (f Format) Fold(messages []codec.Raw, most int) []codec.Raw {
	size := 0
	for _, m := range messages {
		size += len(m) + 1
	}
	if size <= most {
		return messages
	}
	out := append([]codec.Raw(nil), messages...)
	for i, m := range out {
		if size <= most {
			break
		}
		out[i] = f.Record(m, dialect.LeastMessage)
		size += len(out[i]) - len(m)
	}
	return out
}

// DisableNulls returns an object in which {"enabled":false} replaces each group that is null, if hasSwitch is
// true for its path, such as prune.micro; other text stays.
func DisableNulls(object codec.Raw, hasSwitch func(path string) bool) codec.Raw {
	return disableNulls("", object, hasSwitch)
}

func disableNulls(path string, object codec.Raw, hasSwitch func(path string) bool) codec.Raw {
	ms, err := codec.ReadObject(object)
	if err != nil {
		return object
	}
	for i, x := range ms {
		at := strings.TrimPrefix(path+"."+x.Name, ".")
		switch {
		case x.Value.Kind() == '{':
			ms[i].Value = disableNulls(at, x.Value, hasSwitch)
		case x.Value.Kind() == 'n' && hasSwitch(at):
			ms[i].Value = codec.Raw(`{"enabled":false}`)
		}
	}
	return codec.WriteObject(ms)
}

// Thinking reports whether the thinking of a session's model is valid only after the history it was made
// under; see [traits.Thinking]. Claude is served in other dialects too: in Converse by Bedrock, in chat
// completions by OpenRouter, and by the AI SDK. In its own dialect, and in Converse, a model with a name of
// no known maker may be Claude, whichever provider serves it.
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

// ownModels are providers that have an API in Anthropic's dialect and only models of their own.
var ownModels = []string{"deepseek", "minimax", "moonshot", "qwen", "xai", "xiaomi", "zhipu"}

// BindsThinking reports whether the thinking of a session's model is or may be bound; see [Format.Thinking].
func (f Format) BindsThinking(m Model) bool { return f.Thinking(m) != traits.Free }

// MayBind reports whether the model is unknown: its thinking may be bound, and that of
// the open tool loop may be demanded.
func (f Format) MayBind(m Model) bool { return f.Thinking(m) == traits.MayBind }

// HasPrompt reports whether the user wrote one of the messages, which ends a tool loop.
func (f Format) HasPrompt(messages []codec.Raw) bool {
	return slices.ContainsFunc(messages, func(raw codec.Raw) bool {
		m, err := f.Read(raw)
		return err == nil && IsPrompt(m)
	})
}

// IsPrompt reports whether the user wrote a message.
func IsPrompt(m dialect.Message) bool {
	return m.Role == dialect.RoleUser && !slices.ContainsFunc(m.Parts, func(p dialect.Part) bool { return p.Kind == dialect.PartResult })
}

// thinks are words of every message that has thinking: types of blocks, and members.
var thinks = [][]byte{[]byte("thinking"), []byte("reasoning")}

// WithoutThinking returns messages without their model's thinking, as a worker renders them. Messages without
// any keep their bytes, and a message with nothing else is left out.
func (f Format) WithoutThinking(messages []codec.Raw) []codec.Raw {
	out := make([]codec.Raw, 0, len(messages))
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
		m.Parts = slices.DeleteFunc(m.Parts, func(p dialect.Part) bool { return isThinking(p) || p.Kind == dialect.PartText && p.Blank() })
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

func isThinking(p dialect.Part) bool { return p.Kind == dialect.PartThinking }
