package events

import (
	"errors"
	"fmt"
	"strings"

	"compactd/internal/events/codec"
)

// Format is the dialect of a session's messages.
type Format string

// The dialects of this version.
const (
	OpenAI    Format = "openai"    // chat completions
	Anthropic Format = "anthropic" // messages
	NeuroLink Format = "neurolink" // one message per tool call and result
)

// Known reports whether f is a dialect of this version.
func (f Format) Known() bool { return f == OpenAI || f == Anthropic || f == NeuroLink }

// DefaultFormat is the dialect of a session that names none.
func DefaultFormat(provider string) Format {
	switch strings.ToLower(provider) {
	case "anthropic", "bedrock":
		return Anthropic
	default:
		return OpenAI
	}
}

// maxBadMessages bounds how many messages one error names.
const maxBadMessages = 8

// What is wrong with a message, as the end of a sentence about it.
var (
	errNoMessage     = errors.New("is not a JSON object")
	errNoRole        = errors.New("has no role that its dialect has")
	errNoContent     = errors.New("has no content of a type that its dialect allows")
	errBadCalls      = errors.New("has tool calls that are not an array of objects")
	errUnknownFormat = NewInvalid(CodeUnknownFormat, "format", "is none of openai, anthropic, neurolink")
)

// Read returns the model of one message. Members that the dialect does not define stay
// in the message's and the parts' Raw. The error is an [*Invalid]. The message
// holds parts of raw, which must not change afterwards.
func (f Format) Read(raw Raw) (Message, error) {
	if !f.Known() {
		return Message{}, errUnknownFormat
	}
	if codec.Check(raw) != nil {
		return Message{}, NewInvalid(CodeBadMessage, "message", errNoMessage.Error())
	}
	m, err := f.read(raw)
	if err != nil {
		return Message{}, NewInvalid(CodeBadMessage, "message", f.explain(raw, err))
	}
	return m, nil
}

// ReadAll reads messages in order, each of them JSON as [DecodeTurn] and
// [Format.Write] return it: unlike Read it does not check that again. Its error is
// an [*Invalid] that names the first few bad ones, as messages[3].
func (f Format) ReadAll(raws []Raw) ([]Message, error) {
	if !f.Known() {
		return nil, errUnknownFormat
	}
	out := make([]Message, len(raws))
	var bad problems
	for i, raw := range raws {
		m, err := f.read(raw)
		if err != nil {
			bad.add(CodeBadMessage, fmt.Sprintf("messages[%d]", i), "%s", f.explain(raw, err))
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

func (f Format) read(raw Raw) (Message, error) {
	r := reader{Walker: codec.Walk(raw)}
	m, err := f.next(&r)
	if r.End() != nil {
		m, err = Message{}, errNoMessage
	}
	m.Raw = raw
	return m, err
}

// next reads the message at w, an object.
func (f Format) next(w *reader) (Message, error) {
	switch f {
	case Anthropic:
		return readAnthropic(w)
	case NeuroLink:
		return readNeuroLink(w)
	default:
		return readOpenAI(w)
	}
}

// Write returns a message in its dialect: the bytes it came in while it is
// not edited, else with content and calls built again from its parts and all other
// members of its Raw in their order. The error: the parts do not make a message of the
// dialect, a defect of the caller.
func (f Format) Write(m Message) (Raw, error) {
	if m.Raw != nil && !m.Edited {
		return m.Raw, nil
	}
	return f.Append(nil, &m)
}

// Append builds a message from its parts as [Format.Write] does, behind what out holds.
func (f Format) Append(out Raw, m *Message) (Raw, error) {
	var ms []codec.Member
	var err error
	if m.Raw != nil && f != Anthropic {
		if ms, err = codec.ReadObject(m.Raw); err != nil {
			return nil, fmt.Errorf("write message: %w", err)
		}
	}
	switch f {
	case Anthropic:
		out, err = appendAnthropic(out, m)
	case NeuroLink:
		ms, err = writeNeuroLink(*m, ms)
	case OpenAI:
		ms, err = writeOpenAI(*m, ms)
	default:
		return nil, errUnknownFormat
	}
	if err != nil {
		return nil, fmt.Errorf("write %s message: %w", f, err)
	}
	if f != Anthropic {
		out = codec.AppendObject(out, ms)
	}
	return out, nil
}
