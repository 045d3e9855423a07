package validate

import (
	"fmt"
	"iter"

	"compactd/internal/events/codec"
	"compactd/internal/events/traits"
)

// Violation is one breach of the rules of a provider.
type Violation struct {
	Rule  string // its name
	Index int    // of the message, -1 for the history as a whole
	Text  string // what is wrong, without any content of a message
}

// String returns the violation as one line.
func (v Violation) String() string {
	return fmt.Sprintf("messages[%d] %s: %s", v.Index, v.Rule, v.Text)
}

// The dialects, as [events.Format] names them.
const (
	anthropic = "anthropic"
	openai    = "openai"
	neurolink = "neurolink"
	responses = "openai-responses"
	gemini    = "gemini"
	bedrock   = "bedrock"
	aiSDK     = "ai-sdk"
)

// mediaByHash is the rule against media that are recorded by a reference.
const mediaByHash = "media_by_hash"

// Messages returns every breach of a dialect's rules: none means that the history can be
// sent to its provider as it is. Calls that are open at the very end, where their results
// are still to come, are no breach, nor is an empty history.
func Messages[F ~string](format F, messages []codec.Raw) []Violation {
	return Check(Call{Format: string(format), Messages: messages})
}

// Call is a history, and what is known of the call that it is for.
type Call struct {
	Format   string
	Demands  traits.Demands // of the provider
	Messages []codec.Raw

	// Sent: the history goes to the provider as it is, with System and Tools, nil for none. Else
	// results and messages of a user may follow.
	Sent          bool
	System, Tools codec.Raw
}

// Check returns every breach of the rules of a call's dialect and provider.
func Check(call Call) []Violation {
	c := checker{sent: call.Sent}
	messages := call.Messages
	switch call.Format {
	case anthropic:
		c.anthropic(messages)
	case openai:
		c.openai(messages)
	case neurolink:
		c.neurolink(messages)
	case responses:
		c.responses(messages)
	case gemini:
		c.gemini(messages)
	case bedrock:
		c.bedrock(messages)
	case aiSDK:
		c.aiSDK(messages)
	default:
		c.report("bad_shape", -1, "the format is unknown")
		return c.found
	}
	c.references(messages)
	c.demanded(&call)
	return c.found
}

// checker collects violations.
type checker struct {
	found []Violation
	sent  bool // calls at the end are open no more
}

func (c *checker) report(rule string, index int, format string, args ...any) {
	c.found = append(c.found, Violation{rule, index, fmt.Sprintf(format, args...)})
}

// whole reports a message or block that is not as its dialect has it.
func (c *checker) whole(index int, bad bool) bool {
	if bad {
		c.report("bad_shape", index, "a message or block is not as its dialect has it")
	}
	return !bad
}

// whole yields the blocks of a message that have the shape of its dialect. It reports the others.
func whole[T any](c *checker, index int, blocks []codec.Strict[T]) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range blocks {
			if c.whole(index, blocks[i].Bad) && !yield(&blocks[i].Of) {
				return
			}
		}
	}
}

// idTaken checks the id of a call that is answered, or passed over.
func (c *checker) idTaken(index int, dialect, id string) {
	if !traits.DemandsOf(dialect, "", "").IDs.Takes(traits.ClassOf(id)) {
		c.report("call_id", index, "the id of a call has signs or a length that the dialect does not take")
	}
}
