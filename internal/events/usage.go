package events

import (
	"fmt"
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

// usage reads the count of a provider or an SDK for one call. It is nil without one, if all counts are zero,
// and if it cannot be read: a usage improves the figures and never costs the turn. problem is then the
// reason, without any of its values.
//
// Shapes are recognised by the names of their fields. Their meanings are from these
// places, read in November 2026:
//   - Anthropic: docs.anthropic.com, prompt caching. input_tokens is without the cache.
//   - OpenAI: platform.openai.com, prompt caching. Cached tokens are part of the input,
//     in chat completions and in responses.
//   - Gemini: ai.google.dev, UsageMetadata. promptTokenCount includes the cached content;
//     the SDK for Python has the same names in snake case.
//   - Bedrock: docs.aws.amazon.com, TokenUsage of Converse. inputTokens is without what
//     was read from the cache or written to it. The Claude Agent SDK counts so too
//     (modelUsage, with cacheCreationInputTokens).
//   - AI SDK: github.com/vercel/ai, packages/provider language-model-v2-usage.ts (5) and
//     language-model-v3-usage.ts (6, nested), LanguageModelUsage of ai 6.0.62
//     (inputTokenDetails), convert-openai-chat-usage.ts of @ai-sdk/openai 3.0.37. Since
//     6 inputTokens is the total, cache reads and writes included; in 5 it is what the
//     provider gave.
//   - OpenAI Agents: github.com/openai/openai-agents-js packages/agents-core/src/usage.ts
//     and openai-agents-python src/agents/usage.py. Counts are summed over the calls of a
//     run; request usage entries list the calls.
//   - LangChain: reference.langchain.com, UsageMetadata: input_tokens is the sum of all.
//   - pi: github.com/badlogic/pi-mono packages/ai, Usage: input is without the cache.
func (e *envelope) usage() (u *Usage, problem string) {
	v, ok := e.take("usage")
	if !ok {
		return nil, ""
	}
	c := counts{field: "usage.", problem: &problem}
	if e.decoder != nil && v.Kind() == '{' {
		u, c.members = &e.decoder.usage, e.decoder.counts
	} else {
		var err error
		if c.members, err = codec.ReadObject(v); err != nil {
			return nil, "usage is no object"
		}
		u = new(Usage)
	}
	read, known := c.read()
	switch {
	case len(c.members) == 0:
		return nil, ""
	case problem != "":
		return nil, problem
	case !known:
		return nil, "usage has a shape of no known provider, with " + c.names()
	case read == Usage{}:
		return nil, ""
	}
	*u = read
	return u, ""
}

// ReadUsage reads a provider's count in its own shape; nil if the shape is unknown.
func ReadUsage(raw codec.Raw) *Usage {
	env := envelope{fields: []codec.Member{{Name: "usage", Value: raw}}}
	u, _ := env.usage()
	return u
}

// read is false for a shape of no known provider.
func (c counts) read() (u Usage, known bool) {
	switch {
	case c.any("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount"): // Gemini
		u = inclusive(c.count("promptTokenCount"), c.count("cachedContentTokenCount"), 0,
			c.count("candidatesTokenCount")+c.count("thoughtsTokenCount"))
	case c.any("prompt_token_count", "candidates_token_count"): // Gemini in Python
		u = inclusive(c.count("prompt_token_count"), c.count("cached_content_token_count"), 0,
			c.count("candidates_token_count")+c.count("thoughts_token_count"))
	case c.any("prompt_tokens", "completion_tokens"): // OpenAI chat completions
		u = inclusive(c.count("prompt_tokens"), c.detail("prompt_tokens_details").count("cached_tokens"), 0, c.count("completion_tokens"))
	case c.any("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
		u = c.snake()
	case c.any("inputTokens", "outputTokens", "inputTokenDetails"):
		u = c.camel()
	case c.any("promptTokens", "completionTokens"): // AI SDK up to 4
		u = inclusive(c.count("promptTokens"), 0, 0, c.count("completionTokens"))
	case c.any("input", "output") && c.any("cacheRead", "cacheWrite"): // pi
		u = Usage{Input: c.count("input"), CacheRead: c.count("cacheRead"), CacheCreate: c.count("cacheWrite"), Output: c.count("output")}
	default:
		return u, false
	}
	return u, true
}

// snake reads the shapes that have input_tokens.
func (c counts) snake() Usage {
	switch {
	case c.any("request_usage_entries", "requests"): // OpenAI Agents in Python
		if last, ok := c.lastCall("request_usage_entries"); ok {
			return last.snake()
		}
		fallthrough
	case c.any("input_tokens_details"): // OpenAI responses
		return inclusive(c.count("input_tokens"), c.detail("input_tokens_details").count("cached_tokens"), 0, c.count("output_tokens"))
	case c.any("input_token_details"): // LangChain
		d := c.detail("input_token_details")
		return inclusive(c.count("input_tokens"), d.count("cache_read"), d.count("cache_creation"), c.count("output_tokens"))
	}
	return Usage{ // Anthropic
		Input: c.count("input_tokens"), CacheRead: c.count("cache_read_input_tokens"),
		CacheCreate: c.count("cache_creation_input_tokens"), Output: c.count("output_tokens"),
	}
}

// camel reads the shapes that have inputTokens.
func (c counts) camel() Usage {
	switch {
	case c.isObject("inputTokens") || c.isObject("outputTokens"): // a provider of AI SDK 6
		in, out := c.detail("inputTokens"), c.detail("outputTokens")
		read, written := in.count("cacheRead"), in.count("cacheWrite")
		if !in.any("total") {
			return Usage{Input: in.count("noCache"), CacheRead: read, CacheCreate: written, Output: out.count("total")}
		}
		return inclusive(in.count("total"), read, written, out.count("total"))
	case c.any("requestUsageEntries", "requests"): // OpenAI Agents in JavaScript
		if last, ok := c.lastCall("requestUsageEntries"); ok {
			return last.camel()
		}
		fallthrough
	case c.any("inputTokensDetails"):
		return inclusive(c.count("inputTokens"), c.detail("inputTokensDetails").count("cached_tokens"), 0, c.count("outputTokens"))
	case c.any("inputTokenDetails"): // AI SDK 6
		d := c.detail("inputTokenDetails")
		return inclusive(c.count("inputTokens"), d.count("cacheReadTokens"), d.count("cacheWriteTokens"), c.count("outputTokens"))
	case c.any("cacheReadInputTokens", "cacheWriteInputTokens", "cacheCreationInputTokens"): // Bedrock, Claude Agent SDK
		return Usage{
			Input: c.count("inputTokens"), CacheRead: c.count("cacheReadInputTokens"),
			CacheCreate: c.count("cacheWriteInputTokens") + c.count("cacheCreationInputTokens"), Output: c.count("outputTokens"),
		}
	}
	return inclusive(c.count("inputTokens"), c.count("cachedInputTokens"), 0, c.count("outputTokens")) // AI SDK 5
}

// lastCall returns the last of the calls that a usage sums up; ok is false for the usage of one call, and
// with a problem if the calls are not listed.
func (c counts) lastCall(entries string) (last counts, ok bool) {
	if v := c.take(entries); v != nil {
		calls, err := codec.ReadArray(v)
		if err != nil {
			c.fail(entries, "must be an array")
			return last, false
		}
		if n := len(calls); n > 0 {
			last = counts{field: c.field + entries + ".", problem: c.problem}
			if last.members, err = codec.ReadObject(calls[n-1]); err != nil {
				c.fail(entries, "must be an array of objects")
			}
			return last, err == nil
		}
	}
	if c.count("requests") > 1 {
		c.fail("", "sums up several calls, and does not list them: the tokens of the last call are meant")
	}
	return last, false
}

// inclusive reads an input that includes the cached tokens. If more is cached than sent, they were counted
// apart.
func inclusive(input, read, written, output int64) Usage {
	if read+written <= input {
		input -= read + written
	}
	return Usage{Input: input, CacheRead: read, CacheCreate: written, Output: output}
}

// counts are the members of a usage, or of an object within it.
type counts struct {
	field   string // its name, with a dot behind it
	members []codec.Member
	problem *string // the first one
}

func (c counts) fail(name, text string) {
	if *c.problem == "" {
		*c.problem = strings.TrimSuffix(c.field+name, ".") + " " + text
	}
}

// any reports whether one of the names is there and not null.
func (c counts) any(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return codec.IsSet(codec.Lookup(c.members, name)) })
}

func (c counts) isObject(name string) bool { return codec.Lookup(c.members, name).Kind() == '{' }

// count returns a number of tokens, 0 when it is absent or null.
func (c counts) count(name string) int64 {
	v := c.take(name)
	if v == nil {
		return 0
	}
	n, ok := codec.Integer(v)
	switch {
	case !ok:
		c.fail(name, "must be a whole number")
		return 0
	case n < 0 || n > MaxTokens:
		c.fail(name, fmt.Sprintf("must be between 0 and %d", int64(MaxTokens)))
		return 0
	}
	return n
}

// detail returns the object of that name, the last one of an array; empty if it is absent or null.
func (c counts) detail(name string) counts {
	d := counts{field: c.field + name + ".", problem: c.problem}
	v := c.take(name)
	if v.Kind() == '[' {
		calls, _ := codec.ReadArray(v) // of JSON that was checked
		if v = nil; len(calls) > 0 {
			v = calls[len(calls)-1]
		}
	}
	if v == nil {
		return d
	}
	var err error
	if d.members, err = codec.ReadObject(v); err != nil {
		c.fail(name, "must be an object")
	}
	return d
}

func (c counts) take(name string) codec.Raw {
	v, n := codec.Raw(nil), 0
	for i := range c.members {
		if c.members[i].Name == name {
			v = c.members[i].Value
			n++
		}
	}
	if n > 1 {
		c.fail(name, "occurs twice")
	}
	if v.Kind() == 'n' {
		return nil
	}
	return v
}

// maxNamed bounds the named fields of a foreign usage.
const maxNamed = 8

// countWords are in the names of counts; a key without any of them may be content.
var countWords = []string{"token", "input", "output", "prompt", "completion", "cache", "count", "total", "usage", "cost", "request"}

// countName keeps a foreign key fit for a message to people.
func countName(s string) string {
	name := strings.ToLower(s)
	if !slices.ContainsFunc(countWords, func(w string) bool { return strings.Contains(name, w) }) {
		return "a key"
	}
	return fieldName(s)
}

// names lists the fields that are there.
func (c counts) names() string {
	out := make([]string, len(c.members))
	for i, m := range c.members {
		out[i] = countName(m.Name)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > maxNamed {
		out = append(out[:maxNamed], "…")
	}
	return strings.Join(out, ", ")
}
