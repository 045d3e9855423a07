package validate

import (
	"bytes"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/traits"
)

// demandedRule is one that only some providers of a dialect have, or that is of a call as a
// whole. The table of package traits has these providers, and since when.
type demandedRule struct {
	name     string
	dialects []string
	of       func(*Call) bool
	check    func(*checker, *Call, []outline)
}

// chat are the dialects that many providers take.
var chat = []string{openai, aiSDK, neurolink}

// demanded lists these rules.
var demanded = []demandedRule{
	// no two messages of the user, or of the assistant, in a row
	{
		"roles_alternate", append([]string{responses}, chat...),
		func(c *Call) bool { return c.Demands.Alternates }, (*checker).alternating,
	},
	// a message of the assistant is between a tool's and a user's
	{
		"user_after_tool", chat,
		func(c *Call) bool { return c.Demands.Bridges }, (*checker).bridged,
	},
	// an id of a call has the length and signs that the provider takes
	{
		"call_id", chat,
		func(c *Call) bool { return c.Demands.IDs != traits.IDs{} }, (*checker).formed,
	},
	// no two calls of a history share an id
	{
		"duplicate_call_id",
		[]string{aiSDK, neurolink},
		func(c *Call) bool { return c.Demands.UniqueIDs }, (*checker).unique,
	},
	// a call has the reasoning_content that it came with
	{
		"reasoning_absent",
		[]string{openai},
		func(c *Call) bool { return c.Demands.Reasons }, (*checker).reasoned,
	},
	// an assistant's message has no member of reasoning that the provider does not know
	{
		"reasoning_refused",
		[]string{openai},
		func(c *Call) bool { return len(c.Demands.Drops) > 0 }, (*checker).unreasoned,
	},
	// at most four marks for the provider's cache, with those of system prompt and tools
	{
		"cache_marks",
		[]string{anthropic, bedrock, openai, aiSDK},
		func(c *Call) bool { return true }, (*checker).marks,
	},
	// thinking is not the last block of a message
	{
		"final_thinking",
		[]string{anthropic, bedrock},
		func(c *Call) bool { return c.Sent }, (*checker).finalThinking,
	},
	// a call does not end with words of the assistant
	{
		"prefill",
		[]string{anthropic, bedrock, openai, aiSDK, neurolink, gemini},
		func(c *Call) bool { return c.Sent && c.Demands.NoPrefill }, (*checker).prefill,
	},
	// tools are defined while there are calls of tools
	{
		"tools_absent",
		[]string{bedrock},
		func(c *Call) bool { return c.Sent }, (*checker).tools,
	},
}

// demanded checks the rules of the provider.
func (c *checker) demanded(call *Call) {
	var read []outline
	for i := range demanded {
		r := &demanded[i]
		if !slices.Contains(r.dialects, call.Format) || !r.of(call) {
			continue
		}
		if read == nil && r.name != "cache_marks" {
			read = make([]outline, len(call.Messages))
			for i, raw := range call.Messages {
				read[i] = outlineOf(call.Format, raw)
			}
		}
		r.check(c, call, read)
	}
}

// outline is what these rules need of a message.
type outline struct {
	role      string // user, assistant, or another
	calls     []string
	results   []string
	reasoning []string // members of it
	thinks    bool     // its last block is thinking
	paused    int      // calls of the provider's own tools without a result
}

func outlineOf(format string, raw codec.Raw) (o outline) {
	members, err := codec.ReadObject(raw)
	if err != nil {
		return o
	}
	o.role = codec.String(codec.Lookup(members, "role"))
	switch format {
	case openai:
		o.openai(members)
	case neurolink:
		m := codec.ReadStrict[neurolinkMessage](raw)
		switch id := m.Of.id(); o.role {
		case "tool_call":
			o.role, o.calls = "assistant", append(o.calls, id)
		case "tool_result":
			o.results = append(o.results, id)
		}
	case gemini:
		if o.role == "model" {
			o.role = "assistant"
		}
		for _, part := range codec.Elements(codec.Lookup(members, "parts")) {
			if x := codec.Get(part, "functionCall"); x != nil {
				o.calls = append(o.calls, codec.String(codec.Get(x, "id")))
			}
		}
	default:
		for _, block := range codec.Elements(codec.Lookup(members, "content")) {
			o.block(format, block)
		}
	}
	return o
}

func (o *outline) openai(members []codec.Member) {
	for _, m := range members {
		switch m.Name {
		case "tool_calls":
			for _, call := range codec.Elements(m.Value) {
				o.calls = append(o.calls, codec.String(codec.Get(call, "id")))
			}
		case "tool_call_id":
			o.results = append(o.results, codec.String(m.Value))
		case "reasoning_content", "reasoning", "reasoning_details":
			o.reasoning = append(o.reasoning, m.Name)
		}
	}
}

func (o *outline) block(format string, raw codec.Raw) {
	kind := codec.String(codec.Get(raw, "type"))
	o.thinks = kind == "thinking" || kind == "redacted_thinking"
	switch {
	case format == bedrock:
		o.thinks = codec.Get(raw, "reasoningContent") != nil
		if use := codec.Get(raw, "toolUse"); use != nil {
			o.calls = append(o.calls, codec.String(codec.Get(use, "toolUseId")))
		}
	case format == anthropic && (kind == "server_tool_use" || kind == "mcp_tool_use"):
		o.paused++
	case format == anthropic && strings.HasSuffix(kind, "_tool_result"):
		o.paused--
	case format == anthropic && kind == "tool_use":
		o.calls = append(o.calls, codec.String(codec.Get(raw, "id")))
	case kind == "tool-result" && o.role == "tool":
		o.results = append(o.results, codec.String(codec.Get(raw, "toolCallId")))
	case kind == "tool-call" && codec.Get(raw, "providerExecuted").Kind() != 't':
		o.calls = append(o.calls, codec.String(codec.Get(raw, "toolCallId")))
	}
}

func (c *checker) alternating(call *Call, messages []outline) {
	before := ""
	for i, m := range messages {
		alone := call.Format == responses || call.Format == neurolink && len(m.calls) > 0 // an item, a call is one of several messages
		if m.role == before && (m.role == "user" || m.role == "assistant" && !alone) {
			c.report("roles_alternate", i, "the message before has the same role")
		}
		before = m.role
	}
}

func (c *checker) bridged(_ *Call, messages []outline) {
	tool := false
	for i, m := range messages {
		if tool && m.role == "user" {
			c.report("user_after_tool", i, "a tool's message is before a user's")
		}
		tool = len(m.results) > 0 || tool && m.role == "system"
	}
}

func (c *checker) formed(call *Call, messages []outline) {
	open := openIn(messages)
	for i, m := range messages {
		for _, id := range m.calls {
			if !call.Sent && open(i, id) { // its result comes under this id still
				continue
			}
			if id != "" && !call.Demands.IDs.Takes(traits.ClassOf(id)) {
				c.report("call_id", i, "the provider takes no such id of a call")
			}
		}
	}
}

// openIn returns what reports whether a call of a message awaits its result: nothing but other
// calls and results are behind it.
func openIn(messages []outline) func(message int, id string) bool {
	from := len(messages)
	answered := map[string]int{} // the last message with a result of the id
	for ; from > 0; from-- {
		m := &messages[from-1]
		if len(m.results) == 0 && len(m.calls) == 0 {
			break
		}
		for _, id := range m.results {
			if _, ok := answered[id]; !ok {
				answered[id] = from - 1
			}
		}
	}
	return func(message int, id string) bool {
		last, ok := answered[id]
		return message+1 >= from && (!ok || last <= message)
	}
}

func (c *checker) unique(_ *Call, messages []outline) {
	seen := map[string]int{}
	for i, m := range messages {
		for _, id := range m.calls {
			if before, ok := seen[id]; ok && id != "" && before < i { // in one message it is a rule of the dialect
				c.report("duplicate_call_id", i, "an earlier call has the same id")
			}
			seen[id] = i
		}
	}
}

func (c *checker) reasoned(_ *Call, messages []outline) {
	for i, m := range messages {
		if len(m.calls) > 0 && !slices.Contains(m.reasoning, "reasoning_content") {
			c.report("reasoning_absent", i, "a call has no reasoning_content")
		}
	}
}

func (c *checker) unreasoned(call *Call, messages []outline) {
	for i, m := range messages {
		if m.role == "assistant" && slices.ContainsFunc(m.reasoning, func(name string) bool { return slices.Contains(call.Demands.Drops, name) }) {
			c.report("reasoning_refused", i, "the provider has no such member of reasoning")
		}
	}
}

func (c *checker) finalThinking(_ *Call, messages []outline) {
	for i, m := range messages {
		if m.role == "assistant" && m.thinks {
			c.report("final_thinking", i, "the last block is thinking")
		}
	}
}

func (c *checker) prefill(_ *Call, messages []outline) {
	last := len(messages) - 1
	for last >= 0 && messages[last].role == "system" {
		last--
	}
	if last >= 0 && messages[last].role == "assistant" && len(messages[last].calls) == 0 && messages[last].paused <= 0 {
		c.report("prefill", last, "the last message is the assistant's")
	}
}

func (c *checker) tools(call *Call, messages []outline) {
	if len(codec.Elements(call.Tools)) > 0 || call.Tools.Kind() == '{' {
		return
	}
	for i, m := range messages {
		if len(m.calls) > 0 {
			c.report("tools_absent", i, "a call of a tool, and no tools")
			return
		}
	}
}

func (c *checker) marks(call *Call, _ []outline) {
	n := marksIn(call.System) + marksIn(call.Tools)
	for i, raw := range call.Messages {
		if n += marksIn(raw); n > traits.MaxMarks {
			c.report("cache_marks", i, "a fifth mark for the provider's cache")
			return
		}
	}
}

// markNames are how the dialects call a mark.
var markNames = []string{"cache_control", "cacheControl", "cachePoint"}

// marksIn counts the marks of a message, of a system prompt or of tools. A tool's arguments and
// answers are not looked at, but for the blocks of an answer.
func marksIn(raw codec.Raw) (n int) {
	if !slices.ContainsFunc(markNames, func(name string) bool { return bytes.Contains(raw, []byte(name)) }) {
		return 0
	}
	for _, x := range codec.Elements(raw) {
		n += marksIn(x)
	}
	if raw.Kind() != '{' {
		return n
	}
	for name, value := range codec.Members(raw) {
		switch {
		case slices.Contains(markNames, name) && value.Kind() == '{':
			n++
		case slices.Contains([]string{"content", "tool_calls", "tools", "toolResult", "providerOptions", "anthropic", "bedrock", "openrouter", "openaiCompatible"}, name):
			n += marksIn(value)
		}
	}
	return n
}
