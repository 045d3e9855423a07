package events

import (
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// kin is a dialect or a library as the source of messages, with the signs by which it is recognised. A sign
// is something that another dialect would misread: text in the place common to all dialects is no sign.
type kin struct {
	what   string // one of its messages, for people
	format Format // to declare; "" if it has none
	advice string // what to do with its messages first, "" if they are of format

	message func(members) bool // of a message
	blocks  []sign             // of an element of its content
}

// sign is a sign of a block: its type, with a member.
type sign struct {
	types   []string   // of which it has one; one with "*" before it ends the type. Without any the block has no type
	members []string   // of which one is there, perhaps within another as in image.source; none for any block
	kind    codec.Kind // of that member; 0 is any
}

// with is a sign; see its fields.
func with(types, members string, kind codec.Kind) sign {
	return sign{strings.Fields(types), strings.Fields(members), kind}
}

// is reports whether a block has the sign.
func (s *sign) is(b members) bool {
	kind := b.text("type")
	typed := len(s.types) == 0 && b.kind("type") == 0 || slices.ContainsFunc(s.types, func(t string) bool {
		end, open := strings.CutPrefix(t, "*")
		return t == kind || open && strings.HasSuffix(kind, end)
	})
	return typed && (len(s.members) == 0 || slices.ContainsFunc(s.members, func(name string) bool {
		outer, inner, within := strings.Cut(name, ".")
		v := codec.Lookup(b, outer)
		if within {
			v = codec.Get(v, inner)
		}
		return v.Kind() != 0 && (s.kind == 0 || v.Kind() == s.kind)
	}))
}

// kindred is the table of recognised sources, including libraries whose messages this version does not read.
// The first sign that matches counts.
var kindred = []kin{
	{what: "a UIMessage of the AI SDK", format: "ai-sdk", advice: "send what convertToModelMessages makes of it", message: isUIMessage},
	{what: "a content of Gemini", format: "gemini", message: isGemini, blocks: []sign{
		with("", "functionCall functionResponse inlineData fileData executableCode codeExecutionResult "+
			"function_call function_response inline_data file_data executable_code code_execution_result", '{'),
	}},
	// The items of @openai/agents: openai-agents-js, packages/agents-core/src/types/protocol.ts and items.ts, 2026-11.
	{what: "an item of OpenAI's Agents SDK", format: Responses, advice: "send the items that its model sends to OpenAI, with call_id and function_call_output", message: isAgentsItem},
	{what: "an item of OpenAI's Responses", format: "openai-responses", message: isResponsesItem, blocks: []sign{
		with("input_text output_text summary_text reasoning_text", "text", '"'),
		with("input_image input_file", "", 0),
	}},
	{what: "a message of NeuroLink", format: NeuroLink, message: hasRole("tool_call tool_result")},
	{what: "a message of pi", advice: "convert it to one of the dialects, such as anthropic", message: hasRole("toolResult bashExecution"), blocks: []sign{
		with("toolCall", "", 0),
	}},
	{what: "a message of LangChain", advice: "convert_to_openai_messages makes one of openai of it", message: isLangChain, blocks: []sign{
		with("tool_call", "args", 0),
		with("reasoning", "reasoning", '"'),
	}},
	{what: "a ModelMessage of the AI SDK", format: "ai-sdk", blocks: []sign{
		with("tool-call tool-result tool-error tool-approval-request tool-approval-response", "", 0),
		with("reasoning", "text", '"'),
		with("file", "data", 0),
		with("file", "mediaType", '"'),
		with("image", "image", 0),
	}},
	{what: "a message of Bedrock's Converse", format: "bedrock", blocks: []sign{
		with("", "text", '"'),
		with("", "toolUse toolResult reasoningContent cachePoint guardContent citationsContent image.source document.source video.source", '{'),
	}},
	{what: "a message of Anthropic", format: Anthropic, blocks: []sign{
		with("image document", "source", '{'),
		with("thinking", "thinking", '"'),
		with("redacted_thinking", "data", '"'),
		with("*tool_use", "input", 0),
		with("*tool_use", "name", '"'),
		with("*tool_result", "tool_use_id", 0),
		with("tool_result", "", 0),
	}},
	{what: "a message of OpenAI's chat completions", format: OpenAI, message: isOpenAI, blocks: []sign{
		with("image_url", "image_url", 0),
		with("input_audio file", "input_audio file", '{'),
		with("refusal", "refusal", '"'),
	}},
}

// is reports whether its messages are those of f.
func (k *kin) is(f Format) bool { return k.format == f && k.advice == "" }

// describe states the source of a message that is not of f, and the format to declare.
func (k *kin) describe(f Format) string {
	text := "is " + k.what + ", not of " + string(f) + ": "
	if k.advice != "" {
		text += k.advice + "; "
	}
	if k.format == "" {
		return strings.TrimSuffix(text, "; ")
	}
	return text + "set format to " + string(k.format)
}

// kinOf returns the source of a message that is not of f, nil if it may be of f.
func (f Format) kinOf(raw codec.Raw) *kin {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		return nil
	}
	for i := range kindred {
		if k := &kindred[i]; !k.is(f) && k.message != nil && k.message(ms) {
			return k
		}
	}
	if members(ms).isResult() {
		return nil // a tool's answer is the tool's
	}
	return f.kinOfBlocks(codec.Lookup(ms, "content"))
}

// kinOfBlocks looks for a block of another dialect in a content.
func (f Format) kinOfBlocks(content codec.Raw) *kin {
	for _, b := range codec.Elements(content) {
		if k := f.kinOfBlock(b); k != nil {
			return k
		}
	}
	return nil
}

func (f Format) kinOfBlock(raw codec.Raw) *kin {
	ms, err := codec.ReadObject(raw)
	if err != nil || f == Responses && members(ms).objects("input_audio") { // as in chat completions
		return nil
	}
	for i := range kindred {
		if k := &kindred[i]; !k.is(f) && slices.ContainsFunc(k.blocks, func(s sign) bool { return s.is(ms) }) {
			return k
		}
	}
	return nil
}

// suspect reports whether a message that was read as one of f may be of another source, which kinOf then
// decides. It is cheap, and false for nearly all messages.
func (f Format) suspect(m *dialect.Message) bool {
	return m.Odd || slices.ContainsFunc(m.Parts, func(p dialect.Part) bool {
		switch p.Kind {
		case dialect.PartCall:
			return p.Tool == "" || p.Args == nil
		case dialect.PartImage, dialect.PartOther:
			return f.kinOfBlock(p.Raw) != nil || f.kinOfBlocks(p.Raw) != nil
		}
		return false
	})
}

// members are the members of a message or of a block.
type members []codec.Member

func (ms members) kind(name string) codec.Kind { return codec.Lookup(ms, name).Kind() }

// text is the value of a string, "" for anything else.
func (ms members) text(name string) string { return codec.String(codec.Lookup(ms, name)) }

// first is the first object of an array, nil without one.
func (ms members) first(name string) members { return firstOf(codec.Lookup(ms, name)) }

// isResult reports whether a message is the result of a tool.
func (ms members) isResult() bool {
	switch ms.text("role") {
	case "tool":
		return ms.text("tool_call_id") != ""
	case "function", "tool_result":
		return true
	}
	return false
}

// objects reports whether one of the names is an object.
func (ms members) objects(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return ms.kind(n) == '{' })
}

func isUIMessage(ms members) bool {
	return ms.first("parts").text("type") != "" || ms.first("toolInvocations") != nil
}

func isGemini(ms members) bool {
	return ms.kind("parts") == '[' && (ms.kind("content") == 0 || ms.first("parts") != nil) && !isUIMessage(ms)
}

// hasRole recognises messages by their roles.
func hasRole(roles string) func(members) bool {
	return func(ms members) bool { return slices.Contains(strings.Fields(roles), ms.text("role")) }
}

// isAgentsItem recognises items, and the items of a run that hold one.
func isAgentsItem(ms members) bool {
	kind := ms.text("type")
	return kind != "" && ms.objects("rawItem", "raw_item", "providerData") || kind != "" && ms.kind("callId") == '"' ||
		kind == "function_call_result" || kind == "hosted_tool_call" || kind == "computer_call_result"
}

// isResponsesItem recognises items without a role by the form of their type: there are more of
// them each year.
func isResponsesItem(ms members) bool {
	kind := ms.text("type")
	switch {
	case ms.kind("role") != 0:
		return false
	case kind == "reasoning":
		return ms.kind("summary") == '[' || ms.kind("encrypted_content") != 0
	case kind == "compaction":
		return ms.kind("encrypted_content") != 0
	case kind == "item_reference":
		return true
	}
	return strings.HasSuffix(kind, "_call") && kind != "tool_call" || strings.HasSuffix(kind, "_call_output") || strings.HasSuffix(kind, "_call_result") ||
		strings.HasPrefix(kind, "mcp_")
}

func isLangChain(ms members) bool {
	kind, role := ms.text("type"), ms.text("role")
	call := ms.first("tool_calls")
	return role == "" && slices.Contains([]string{"human", "ai", "tool", "system"}, kind) ||
		strings.EqualFold(role, "human") || strings.EqualFold(role, "ai") ||
		ms.kind("lc") != 0 && ms.kind("kwargs") == '{' ||
		call.kind("function") == 0 && call.kind("args") != 0 && call.kind("name") == '"'
}

func isOpenAI(ms members) bool {
	call := ms.first("tool_calls")
	role := ms.text("role")
	return role == "tool" && ms.kind("tool_call_id") == '"' || role == "function" || role == "developer" || call.objects("function", "custom") ||
		codec.Get(codec.Lookup(ms, "function_call"), "arguments") != nil
}
