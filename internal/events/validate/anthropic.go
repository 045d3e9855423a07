package validate

import (
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

type anthropicMessage struct {
	Role    string                                      `json:"role"`
	Content codec.Content[codec.Strict[anthropicBlock]] `json:"content"`
}

type anthropicBlock struct {
	Kind      string                                         `json:"type"`
	Text      codec.Words                                    `json:"text"`
	ID        string                                         `json:"id"`
	Name      string                                         `json:"name"`
	Input     codec.Type                                     `json:"input"`
	ToolUseID string                                         `json:"tool_use_id"`
	Citations codec.Content[codec.Strict[anthropicCitation]] `json:"citations"`
}

type anthropicCitation struct {
	Index codec.Type `json:"encrypted_index"`
}

func isEncrypted(c codec.Strict[anthropicCitation]) bool { return c.Of.Index != 0 }

func isNoResult(b codec.Strict[anthropicBlock]) bool { return b.Of.Kind != "tool_result" }

// servedTools are calls of the provider's own tools.
type servedTools struct {
	open     openCalls
	searched bool // a result was seen
}

// serverBlock checks a block of an assistant: a call of the provider's own tools, the result of
// one, or a text that refers to one.
func (c *checker) serverBlock(i int, b *anthropicBlock, tools *servedTools) {
	switch {
	case b.Kind == "server_tool_use" || b.Kind == "mcp_tool_use":
		tools.open.add(openCall{b.ID, i})
	case strings.HasSuffix(b.Kind, "_tool_result"):
		tools.searched = true
		if !tools.open.answer(b.ToolUseID) {
			c.report("server_result", i, "a result of a server's tool has no server_tool_use before it")
		}
	case !tools.searched && slices.ContainsFunc(b.Citations.List, isEncrypted):
		c.report("citation", i, "a citation refers to a result that is not there")
	}
}

// served checks the calls of the provider's own tools, and their results, in a message.
func (c *checker) served(i int, m *anthropicMessage, tools *servedTools) {
	blocks := m.Content.List
	if m.Role == "assistant" {
		for k := range blocks {
			c.serverBlock(i, &blocks[k].Of, tools)
		}
	}
	results := len(blocks) > 0 && !slices.ContainsFunc(blocks, isNoResult)
	if m.Role != "assistant" && (m.Role != "user" || results) {
		return
	}
	open := tools.open.open()
	tools.open = openCalls{}
	for _, call := range open {
		if m.Role == "assistant" && call.index == i {
			tools.open.add(call)
			continue
		}
		c.report("server_result", call.index, "a server_tool_use has no result")
	}
}

// blockTools are the calls and results of one message, in a dialect of blocks.
type blockTools struct {
	role           string
	calls, results ids
	other          bool // a block that is no result was seen
}

func (c *checker) anthropic(messages []codec.Raw) {
	p := blockPairs{checker: c, call: "tool_use", dialect: anthropic, last: len(messages) - 1, seen: map[string]bool{}, answered: map[string]bool{}}
	read := make([]codec.Strict[anthropicMessage], len(messages))
	for i, raw := range messages {
		read[i] = codec.ReadStrict[anthropicMessage](raw)
	}
	var own servedTools
	for i := range read {
		m := &read[i].Of
		if !c.whole(i, read[i].Bad) {
			p.before = blockTools{}
			continue
		}
		if m.Role == "system" {
			c.anthropicSystem(i, read)
			continue
		}
		c.alternates(i, m.Role, p.before.role)
		now := blockTools{role: m.Role}
		c.anthropicContent(i, m, &now)
		c.served(i, m, &own)
		p.add(i, now)
	}
	p.end()
}

// alternates checks that users and assistants take turns, the user first.
func (c *checker) alternates(i int, role, before string) {
	switch {
	case role != "user" && role != "assistant":
		c.report("roles_alternate", i, "the role is neither user nor assistant")
	case i == 0 && role != "user":
		c.report("first_is_user", i, "the role is not user")
	case role == before:
		c.report("roles_alternate", i, "the message before has the same role")
	}
}

// anthropicSystem checks a message of the system, which some models take within a
// conversation.
func (c *checker) anthropicSystem(i int, read []codec.Strict[anthropicMessage]) {
	if i == 0 || read[i-1].Of.Role == "assistant" {
		c.report("system_place", i, "the message before a system message is no user's")
	}
	if i+1 < len(read) && read[i+1].Of.Role == "user" {
		c.report("system_place", i, "a user's message follows a system message")
	}
	c.anthropicContent(i, &read[i].Of, &blockTools{role: read[i].Of.Role})
}

func (c *checker) anthropicContent(i int, m *anthropicMessage, tools *blockTools) {
	switch m.Content.Type {
	case '"':
		if m.Content.Text == codec.Blank {
			c.report("empty_text", i, "the content is white space")
		}
	case '[':
		if m.Content.Empty() {
			c.report("empty_content", i, "the content has no blocks")
		}
		for b := range whole(c, i, m.Content.List) {
			c.anthropicBlock(i, b, tools)
		}
	default:
		c.report("bad_shape", i, "the content is neither string nor array")
	}
}

// anthropicBlock checks one block. The blocks within a tool_result are the
// tool's own and are not looked at.
func (c *checker) anthropicBlock(i int, b *anthropicBlock, tools *blockTools) {
	late := tools.other
	tools.other = late || b.Kind != "tool_result"
	switch b.Kind {
	case "":
		c.report("bad_shape", i, "a block has no type")
	case "text":
		switch b.Text {
		case codec.Absent, codec.Null:
			c.report("bad_shape", i, "a text block has no text")
		case codec.Blank:
			c.report("empty_text", i, "a text is white space")
		}
	case "tool_use":
		if b.ID == "" || b.Name == "" || b.Input != '{' || tools.role != "assistant" {
			c.report("bad_shape", i, "a tool_use lacks id, name or input, or is no assistant's")
			return
		}
		tools.calls.add(b.ID)
	case "tool_result":
		if b.ToolUseID == "" || tools.role != "user" {
			c.report("bad_shape", i, "a tool_result lacks tool_use_id, or is no user's")
			return
		}
		if late {
			c.report("results_first", i, "a tool_result follows another block")
		}
		tools.results.add(b.ToolUseID)
	}
}
