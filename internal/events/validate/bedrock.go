package validate

import "compactd/internal/events/codec"

// The rules of Converse: docs.aws.amazon.com/bedrock/latest/APIReference and the texts of
// ValidationException, November 2026. Texts within a toolResult may be blank.

type bedrockMessage struct {
	Role   string                       `json:"role"`
	Blocks []codec.Strict[bedrockBlock] `json:"content"`
}

// bedrockBlock has one member.
type bedrockBlock struct {
	Text      codec.Words                   `json:"text"`
	Use       codec.Inner[bedrockUse]       `json:"toolUse"`
	Result    codec.Inner[bedrockUse]       `json:"toolResult"`
	Document  codec.Type                    `json:"document"`
	Reasoning codec.Inner[bedrockReasoning] `json:"reasoningContent"`
	Other     map[string]codec.Type         `json:",embed"`
}

// bedrockUse is a call or a result.
type bedrockUse struct {
	ID      string       `json:"toolUseId"`
	Name    string       `json:"name"`
	Kind    string       `json:"type"` // of a tool that the provider runs
	Input   codec.Type   `json:"input"`
	Content []codec.Type `json:"content"`
}

type bedrockReasoning struct {
	Text     codec.Type `json:"reasoningText"`
	Redacted codec.Type `json:"redactedContent"`
}

func (b *bedrockBlock) members() (n int) {
	for _, there := range []bool{b.Text != codec.Absent, b.Use.Type != 0, b.Result.Type != 0, b.Document != 0, b.Reasoning.Type != 0} {
		if there {
			n++
		}
	}
	return n + len(b.Other)
}

func (c *checker) bedrock(messages []codec.Raw) {
	p := blockPairs{checker: c, call: "toolUse", dialect: bedrock, last: len(messages) - 1, seen: map[string]bool{}}
	for i, raw := range messages {
		m := codec.ReadStrict[bedrockMessage](raw)
		if !c.whole(i, m.Bad) {
			p.before = blockTools{}
			continue
		}
		c.alternates(i, m.Of.Role, p.before.role)
		now := c.bedrockContent(i, &m.Of)
		p.answered = map[string]bool{} // an id may come again
		p.add(i, now)
	}
	p.end()
}

func (c *checker) bedrockContent(i int, m *bedrockMessage) blockTools {
	now := blockTools{role: m.Role}
	text, document := false, false
	if len(m.Blocks) == 0 {
		c.report("empty_content", i, "the content has no blocks")
	}
	for b := range whole(c, i, m.Blocks) {
		if b.members() != 1 {
			c.report("bad_shape", i, "a block has not just one member")
			continue
		}
		late := now.other
		now.other = late || !b.Result.Is()
		switch {
		case b.Text > codec.Null:
			if text = true; b.Text == codec.Blank {
				c.report("empty_text", i, "a text is white space")
			}
		case b.Use.Is() && b.Use.Of.Kind == "":
			c.bedrockUse(i, &b.Use.Of, &now)
		case b.Result.Is() && b.Result.Of.Kind == "":
			if b.Result.Of.ID == "" || b.Result.Of.Content == nil || m.Role != "user" {
				c.report("bad_shape", i, "a toolResult lacks id or content, or is no user's")
				continue
			}
			if late {
				c.report("results_first", i, "a toolResult follows another block")
			}
			now.results.add(b.Result.Of.ID)
		case b.Document != 0:
			document = true
		case b.Reasoning.Is() && b.Reasoning.Of == (bedrockReasoning{}):
			c.report("bad_shape", i, "a reasoningContent has neither text nor redacted content")
		}
	}
	if document && !text {
		c.report("document_text", i, "a document has no text beside it")
	}
	return now
}

func (c *checker) bedrockUse(i int, use *bedrockUse, now *blockTools) {
	switch {
	case use.ID == "" || use.Name == "" || use.Input != '{' || now.role != "assistant":
		c.report("bad_shape", i, "a toolUse lacks id, name or input, or is no assistant's")
	case now.calls.has(use.ID):
		c.report("duplicate_call_id", i, "two toolUse have the same id")
	default:
		now.calls.add(use.ID)
	}
}
