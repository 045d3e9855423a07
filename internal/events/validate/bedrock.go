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
	m.role, m.blocks, m.bad = readRoled(raw, "content", readBedrockBlock)
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

func (c *checker) bedrock(messages []codec.Raw) {
	p := blockPairs{checker: c, call: "toolUse", dialect: bedrock, last: len(messages) - 1, seen: map[string]bool{}}
	for i, raw := range messages {
		m := readBedrock(raw)
		if !c.whole(i, m.bad) {
			p.before = blockTools{}
			continue
		}
		c.alternates(i, m.role, p.before.role)
		now := c.bedrockContent(i, m)
		p.answered = map[string]bool{} // an id may come again
		p.add(i, now)
	}
	p.end()
}

func (c *checker) bedrockContent(i int, m bedrockShape) blockTools {
	now := blockTools{role: m.role}
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

func (c *checker) bedrockUse(i int, use bedrockUseShape, now *blockTools) {
	switch {
	case use.id == "" || use.name == "" || use.input != '{' || now.role != "assistant":
		c.report("bad_shape", i, "a toolUse lacks id, name or input, or is no assistant's")
	case now.calls.has(use.id):
		c.report("duplicate_call_id", i, "two toolUse have the same id")
	default:
		now.calls.add(use.id)
	}
}
