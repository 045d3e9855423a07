package strict

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

const preservedThinking = "platform.claude.com/docs/en/build-with-claude/preserved-thinking and prefix-checks, 2026-11"

// boundModels are those whose thinking is bound to what precedes it.
var boundModels = []string{
	"claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2",
	"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5",
}

// signed is how a signature begins that this package made. It goes on with the hash of what
// precedes the block, and that of the thinking block before it.
const signed = "strict"

// Think returns a block of thinking as the model returns it for a call.
func Think(c Call, text string) json.RawMessage {
	return c.thinking(text, signatureFor(c), "")
}

// thinking is a block in the format of the call's provider.
func (c *Call) thinking(text, signature, data string) json.RawMessage {
	type object = map[string]any
	var block object
	switch {
	case c.Provider == "bedrock" && data != "":
		block = object{"reasoningContent": object{"redactedContent": data}}
	case c.Provider == "bedrock":
		block = object{"reasoningContent": object{"reasoningText": object{"text": text, "signature": signature}}}
	case c.Provider == "openrouter" && data != "":
		block = object{"type": "reasoning.encrypted", "data": data, "format": "anthropic-claude-v1"}
	case c.Provider == "openrouter":
		block = object{"type": "reasoning.text", "text": text, "signature": signature, "format": "anthropic-claude-v1"}
	case data != "":
		block = object{"type": "redacted_thinking", "data": data}
	default:
		block = object{"type": "thinking", "thinking": text, "signature": signature}
	}
	raw, _ := json.Marshal(block) // of strings alone
	return raw
}

// Redacted is [Think] for reasoning without its text.
func Redacted(c Call) json.RawMessage { return c.thinking("", "", signatureFor(c)) }

// signatureFor is that of the first block of the answer.
func signatureFor(c Call) string {
	p := prefixOf(c)
	for _, m := range c.Messages {
		p.message(m)
	}
	p.begin("assistant")
	return p.signature()
}

// prefix is what precedes a block.
type prefix struct {
	hashed bytes.Buffer // all but thinking
	role   string
	last   string // the thinking block before, "" for none
}

func prefixOf(c Call) *prefix {
	p := &prefix{}
	for _, raw := range []json.RawMessage{c.System, c.Tools} {
		p.hashed.Write(canonical(raw))
		p.hashed.WriteByte(0)
	}
	return p
}

func (p *prefix) message(raw json.RawMessage) {
	var m message
	_ = json.Unmarshal(raw, &m) // checked by the caller
	m.read()
	p.begin(m.Role)
	for _, b := range m.sequence() {
		p.block(&b)
	}
}

// sequence is what a message consists of, in order: its blocks, and in chat completions the
// members that are blocks elsewhere.
func (m *message) sequence() []block {
	var out []block
	for _, raw := range m.Details {
		b := block{raw: raw}
		_ = json.Unmarshal(raw, &b)
		if b.Type = "thinking"; b.Data != "" {
			b.Type = "redacted_thinking"
		}
		out = append(out, b)
	}
	out = append(out, m.blocks...)
	if m.ToolCalls != nil || m.ToolCallID != "" {
		raw, _ := json.Marshal([]any{m.ToolCalls, m.ToolCallID})
		out = append(out, block{Type: "call", raw: raw})
	}
	return out
}

// begin begins a message; neighbours of one role are one.
func (p *prefix) begin(role string) {
	if role != p.role {
		p.role = role
		p.hashed.WriteString("\x00" + role)
	}
}

func (p *prefix) block(b *block) {
	if b.thinks() {
		p.last = hashOf(b.canonical())
		return
	}
	p.hashed.WriteByte(0)
	p.hashed.Write(b.canonical())
}

func (p *prefix) signature() string {
	return signed + " " + hashOf(p.hashed.Bytes()) + " " + p.last
}

// checkBound refuses thinking that follows a changed history. A client may omit the oldest thinking;
// if it omits later thinking, all that follows is invalid.
func checkBound(r *request) {
	if !slices.Contains(boundModels, r.call.Model) {
		return
	}
	p := prefixOf(r.call)
	for i, m := range r.messages {
		p.begin(m.Role)
		for k, b := range m.sequence() {
			if b.thinks() {
				r.bound(i, k, p, &b)
			}
			p.block(&b)
		}
	}
}

func (r *request) bound(i, k int, p *prefix, b *block) {
	signature := b.Signature + b.Data
	fields := strings.Split(signature, " ")
	switch {
	case len(fields) != 3 || fields[0] != signed:
		r.refuse(i, "content.%d: Invalid `signature` in `%s` block", k, b.Type)
	case fields[1] != hashOf(p.hashed.Bytes()) || p.last != "" && p.last != fields[2]:
		r.refuse(i, "content.%d: Invalid `signature` in `%s` block. The block is bound to a different conversation. "+
			"Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".", k, b.Type)
	}
}

// canonical is a block without marks for caches.
func (b *block) canonical() []byte {
	if b.Type == "text" {
		return []byte(b.Text)
	}
	return canonical(b.raw)
}

// canonical is a value without marks for caches, its members in one order.
func canonical(raw json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	delete(m, "cache_control")
	out, _ := json.Marshal(m) // of JSON
	return out
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
