package validate

import (
	"bytes"

	"compactd/internal/events/codec"
)

// The rules of Converse: docs.aws.amazon.com/bedrock/latest/APIReference and the texts of
// ValidationException, November 2026. Texts within a toolResult may be blank.

type bedrockShape struct {
	bad    bool
	role   string
	blocks []bedrockBlockShape
}

type bedrockBlockShape struct {
	bad         bool
	single      bool // it has one member
	text        words
	use, result bedrockUseShape
	document    bool
	empty       bool // it has reasoning of nothing
}

// bedrockUseShape is a call or a result; the zero one is absent.
type bedrockUseShape struct {
	is       bool
	id, name string
	kind     string // of a tool that the provider runs
	input    codec.Kind
	content  bool
}

func readBedrock(raw codec.Raw) (m bedrockShape) {
	m.bad = readMessage(raw, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "role":
			m.role = r.String()
		case "content":
			m.blocks = nil
			r.Array(func() { m.blocks = append(m.blocks, readBedrockBlock(r)) })
		default:
			r.Skip()
		}
	})
	return m
}

func readBedrockBlock(r *codec.Strict) (b bedrockBlockShape) {
	var first []byte
	b.bad = readObject(r, func(r *codec.Strict, key []byte) {
		if first == nil {
			first, b.single = append([]byte{}, key...), true
		}
		b.single = b.single && bytes.Equal(first, key)
		switch string(key) {
		case "text":
			b.text = readWords(r)
		case "toolUse":
			b.use = readBedrockUse(r)
		case "toolResult":
			b.result = readBedrockUse(r)
		case "document":
			b.document = true
			r.Skip()
		case "reasoningContent":
			some := false
			b.empty = r.Object(func(key []byte) {
				some = some || string(key) == "reasoningText" || string(key) == "redactedContent"
				r.Skip()
			}) && !some
		default:
			r.Skip()
		}
	})
	return b
}

func readBedrockUse(r *codec.Strict) (u bedrockUseShape) {
	u.is = r.Object(func(key []byte) {
		switch string(key) {
		case "toolUseId":
			u.id = r.String()
		case "name":
			u.name = r.String()
		case "type":
			u.kind = r.String()
		case "input":
			u.input = r.Skip()
		case "content":
			u.content = r.Array(func() { r.Skip() })
		default:
			r.Skip()
		}
	})
	return u
}

// bedrockMessage is what one message has.
type bedrockMessage struct {
	role           string
	calls, results ids
	other          bool // a block that is no result was seen
}

func (c *checker) bedrock(messages []codec.Raw) {
	var before bedrockMessage
	seen := map[string]bool{}
	for i, raw := range messages {
		m := readBedrock(raw)
		if !c.whole(i, m.bad) {
			before = bedrockMessage{}
			continue
		}
		switch {
		case m.role != "user" && m.role != "assistant":
			c.report("roles_alternate", i, "the role is neither user nor assistant")
		case i == 0 && m.role != "user":
			c.report("first_is_user", i, "the role is not user")
		case m.role == before.role:
			c.report("roles_alternate", i, "the message before has the same role")
		}
		now := c.bedrockContent(i, m)
		for _, id := range now.calls.list {
			if seen[id] {
				c.report("duplicate_call_id", i, "an earlier toolUse has the same id")
			}
			seen[id] = true
		}
		var shown ids
		for _, id := range now.results.list {
			switch {
			case shown.has(id):
				c.report("duplicate_result", i, "a toolUse has two results")
			case !before.calls.has(id):
				c.report("orphan_result", i, "the message before has no toolUse of this id")
			}
			shown.add(id)
		}
		awaiting := !c.sent && i == len(messages)-1 && len(now.results.list) > 0 && !now.other
		for _, id := range before.calls.list {
			answered := now.results.has(id)
			if !awaiting && !answered {
				c.report("call_answered", i-1, "the next message has no result of a toolUse")
			}
			if !awaiting || answered { // results of the others come under their ids still
				c.idTaken(i-1, bedrock, id)
			}
		}
		before = now
	}
	if c.sent && len(before.calls.list) > 0 {
		c.report("call_answered", len(messages)-1, "there is no result of a toolUse")
	}
}

func (c *checker) bedrockContent(i int, m bedrockShape) bedrockMessage {
	now := bedrockMessage{role: m.role}
	text, document := false, false
	if len(m.blocks) == 0 {
		c.report("empty_content", i, "the content has no blocks")
	}
	for _, b := range m.blocks {
		if !c.whole(i, b.bad) {
			continue
		}
		if !b.single {
			c.report("bad_shape", i, "a block has not just one member")
			continue
		}
		late := now.other
		now.other = late || !b.result.is
		switch {
		case b.text != noText:
			if text = true; b.text == blankText {
				c.report("empty_text", i, "a text is white space")
			}
		case b.use.is && b.use.kind == "":
			c.bedrockUse(i, b.use, &now)
		case b.result.is && b.result.kind == "":
			if b.result.id == "" || !b.result.content || m.role != "user" {
				c.report("bad_shape", i, "a toolResult lacks id or content, or is no user's")
				continue
			}
			if late {
				c.report("results_first", i, "a toolResult follows another block")
			}
			now.results.add(b.result.id)
		case b.document:
			document = true
		case b.empty:
			c.report("bad_shape", i, "a reasoningContent has neither text nor redacted content")
		}
	}
	if document && !text {
		c.report("document_text", i, "a document has no text beside it")
	}
	return now
}

func (c *checker) bedrockUse(i int, use bedrockUseShape, now *bedrockMessage) {
	switch {
	case use.id == "" || use.name == "" || use.input != '{' || now.role != "assistant":
		c.report("bad_shape", i, "a toolUse lacks id, name or input, or is no assistant's")
	case now.calls.has(use.id):
		c.report("duplicate_call_id", i, "two toolUse have the same id")
	default:
		now.calls.add(use.id)
	}
}
