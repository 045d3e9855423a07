package validate

import (
	"fmt"

	"compactd/internal/events/codec"
)

// Violation is one breach of the rules of a provider.
type Violation struct {
	Rule  string // one of [Rules]
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

// Rules lists what [Messages] checks, by dialect.
var Rules = map[string][]string{
	anthropic: {
		"bad_shape",         // a message, a block or its fields are not as the API requires
		"first_is_user",     // a history begins with a user
		"roles_alternate",   // user and assistant in turns, no other role but the system's
		"system_place",      // a system message follows a user's, and an assistant's follows it, or nothing
		"call_answered",     // each tool_use has its tool_result in the next message
		"results_first",     // tool_results come before all other blocks of their message
		"orphan_result",     // a tool_result answers a tool_use of the message before it
		"duplicate_result",  // a tool_use is answered once
		"duplicate_call_id", // no two tool_use of a history share an id
		"empty_text",        // a text has more than white space
		"empty_content",     // a message has a block
		mediaByHash,
	},
	openai: {
		"bad_shape",
		"call_answered",     // tool messages answer all calls before any other role
		"orphan_result",     // a tool message answers a call of the assistant before it
		"duplicate_result",  // a call is answered once
		"duplicate_call_id", // no two calls of a message share an id
		"empty_content",     // an assistant message has content or calls
		mediaByHash,
	},
	neurolink: {
		"bad_shape",
		"call_answered", // each tool_call has a tool_result among the tool messages after it
		"orphan_result", // each tool_result has a tool_call among the tool messages before it; without id it may follow another one
	},
	responses: {
		"bad_shape",
		"call_answered",      // each call has its output before the model or the user goes on
		"orphan_result",      // an output answers a call before it, of its kind
		"duplicate_result",   // a call is answered once
		"duplicate_call_id",  // no two open calls share a call_id
		"reasoning_followed", // a reasoning item is followed by one that the model made
		mediaByHash,
	},
	gemini: {
		"bad_shape",
		"first_is_user",     // a history begins with a user's content, not with responses
		"call_answered",     // as many functionResponses follow as there were functionCalls; names are not compared
		"call_follows_user", // a functionCall follows a content of the user
		"orphan_result",     // a functionResponse answers a functionCall of the content before it
		"responses_apart",   // a content of functionResponses has nothing else
		"signature",         // in the current turn the first functionCall of a step is signed, if any is
		"empty_text",
		"empty_content",
		mediaByHash,
	},
	bedrock: {
		"bad_shape", // also an id that is not 1 to 64 of A-Z a-z 0-9 _ -
		"first_is_user",
		"roles_alternate",
		"call_answered", // each toolUse has its toolResult in the next message
		"results_first",
		"orphan_result",
		"duplicate_result",
		"duplicate_call_id", // no two toolUse of a message share an id
		"document_text",     // a document has a text beside it
		"empty_text",
		"empty_content",
		mediaByHash,
	},
	aiSDK: {
		"bad_shape",
		"call_answered", // tool messages answer all calls before any other role
		"orphan_result",
		"duplicate_result",
		"duplicate_call_id", // no two calls of a message share an id
		"empty_content",
		mediaByHash,
	},
}

// Messages returns every breach of a dialect's rules: none means that the history can be
// sent to its provider as it is. Calls that are open at the very end, where their results
// are still to come, are no breach, nor is an empty history.
func Messages[F ~string](format F, messages []codec.Raw) []Violation {
	var c checker
	switch string(format) {
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
	return c.found
}

// checker collects violations.
type checker struct{ found []Violation }

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
