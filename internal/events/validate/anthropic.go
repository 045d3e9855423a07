package validate

import (
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

type anthropicShape struct {
	bad     bool
	role    string
	content content
	text    words // of a content that is a string
	blocks  []anthropicBlockShape
}

type anthropicBlockShape struct {
	bad       bool
	kind      string
	text      words
	id, name  string
	input     codec.Kind
	toolUseID string
	cites     bool // by an encrypted_index
}

func readAnthropic(raw codec.Raw) (m anthropicShape) {
	m.bad = readMessage(raw, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "role":
			m.role = r.String()
		case "content":
			if m.blocks, m.content.kind = nil, r.Kind(); m.content.kind == '"' {
				m.text = readWords(r)
				return
			}
			m.content = readContent(r, func() { m.blocks = append(m.blocks, readAnthropicBlock(r)) })
		default:
			r.Skip()
		}
	})
	return m
}

func readAnthropicBlock(r *codec.Strict) (b anthropicBlockShape) {
	b.bad = readObject(r, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "type":
			b.kind = r.String()
		case "text":
			b.text = readWords(r)
		case "id":
			b.id = r.String()
		case "name":
			b.name = r.String()
		case "input":
			b.input = r.Skip()
		case "tool_use_id":
			b.toolUseID = r.String()
		case "citations":
			b.cites = readCitations(r) || b.cites
		default:
			r.Skip()
		}
	})
	return b
}

// readCitations reports whether one of the citations of a text is by an encrypted_index.
func readCitations(r *codec.Strict) (by bool) {
	readContent(r, func() {
		if r.Kind() != '{' {
			r.Skip()
			return
		}
		r.Object(func(key []byte) {
			by = by || string(key) == "encrypted_index"
			r.Skip()
		})
	})
	return by
}

// servedTools are calls of the provider's own tools.
type servedTools struct {
	open     openCalls
	searched bool // a result was seen
}

// serverBlock checks a block of an assistant: a call of the provider's own tools, the result of
// one, or a text that refers to one.
func (c *checker) serverBlock(i int, b anthropicBlockShape, tools *servedTools) {
	switch {
	case b.kind == "server_tool_use" || b.kind == "mcp_tool_use":
		tools.open.add(openCall{b.id, i})
	case strings.HasSuffix(b.kind, "_tool_result"):
		tools.searched = true
		if !tools.open.answer(b.toolUseID) {
			c.report("server_result", i, "a result of a server's tool has no server_tool_use before it")
		}
	case b.cites && !tools.searched:
		c.report("citation", i, "a citation refers to a result that is not there")
	}
}

// served checks the calls of the provider's own tools, and their results, in a message.
func (c *checker) served(i int, m anthropicShape, tools *servedTools) {
	if m.role == "assistant" {
		for _, b := range m.blocks {
			c.serverBlock(i, b, tools)
		}
	}
	results := len(m.blocks) > 0 && !slices.ContainsFunc(m.blocks, func(b anthropicBlockShape) bool { return b.kind != "tool_result" })
	if m.role != "assistant" && (m.role != "user" || results) {
		return
	}
	open := tools.open.open()
	tools.open = openCalls{}
	for _, call := range open {
		if m.role == "assistant" && call.index == i {
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
	shapes := make([]anthropicShape, len(messages))
	for i, raw := range messages {
		shapes[i] = readAnthropic(raw)
	}
	var own servedTools
	for i, m := range shapes {
		if !c.whole(i, m.bad) {
			p.before = blockTools{}
			continue
		}
		if m.role == "system" {
			c.anthropicSystem(i, shapes)
			continue
		}
		c.alternates(i, m.role, p.before.role)
		now := blockTools{role: m.role}
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
func (c *checker) anthropicSystem(i int, shapes []anthropicShape) {
	if i == 0 || shapes[i-1].role == "assistant" {
		c.report("system_place", i, "the message before a system message is no user's")
	}
	if i+1 < len(shapes) && shapes[i+1].role == "user" {
		c.report("system_place", i, "a user's message follows a system message")
	}
	c.anthropicContent(i, shapes[i], &blockTools{role: shapes[i].role})
}

func (c *checker) anthropicContent(i int, m anthropicShape, tools *blockTools) {
	switch m.content.kind {
	case '"':
		if m.text == blankText {
			c.report("empty_text", i, "the content is white space")
		}
	case '[':
		if m.content.empty {
			c.report("empty_content", i, "the content has no blocks")
		}
		for _, b := range m.blocks {
			c.anthropicBlock(i, b, tools)
		}
	default:
		c.report("bad_shape", i, "the content is neither string nor array")
	}
}

// anthropicBlock checks one block. The blocks within a tool_result are the
// tool's own and are not looked at.
func (c *checker) anthropicBlock(i int, b anthropicBlockShape, tools *blockTools) {
	if !c.whole(i, b.bad) {
		return
	}
	late := tools.other
	tools.other = late || b.kind != "tool_result"
	switch b.kind {
	case "":
		c.report("bad_shape", i, "a block has no type")
	case "text":
		switch b.text {
		case noText:
			c.report("bad_shape", i, "a text block has no text")
		case blankText:
			c.report("empty_text", i, "a text is white space")
		}
	case "tool_use":
		if b.id == "" || b.name == "" || b.input != '{' || tools.role != "assistant" {
			c.report("bad_shape", i, "a tool_use lacks id, name or input, or is no assistant's")
			return
		}
		tools.calls.add(b.id)
	case "tool_result":
		if b.toolUseID == "" || tools.role != "user" {
			c.report("bad_shape", i, "a tool_result lacks tool_use_id, or is no user's")
			return
		}
		if late {
			c.report("results_first", i, "a tool_result follows another block")
		}
		tools.results.add(b.toolUseID)
	}
}
