package events

import "strings"

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
