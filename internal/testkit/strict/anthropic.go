package strict

import "slices"

const (
	messagesAPI = "platform.claude.com/docs/en/api/messages, 2026-11"
	toolUse     = "platform.claude.com/docs/en/agents-and-tools/tool-use, 2026-11"
)

// anthropic are those with the rules of messages; Converse has them too.
var anthropic = []string{"anthropic", "bedrock"}

var anthropicRules = []Rule{
	{"roles", anthropic, messagesAPI, func(r *request) {
		for i, m := range r.messages {
			switch {
			case m.Role != "user" && m.Role != "assistant":
				r.refuse(i, "Input should be 'user' or 'assistant'")
			case i == 0 && m.Role != "user":
				r.refuse(i, "first message must use the \"user\" role")
			}
		}
	}},
	{"content", anthropic, messagesAPI, func(r *request) {
		for i, m := range r.messages {
			if len(m.blocks) == 0 || m.text && blank(m.blocks[0].Text) {
				r.refuse(i, "all messages must have non-empty content")
				continue
			}
			for _, b := range m.blocks {
				if b.Type == "" {
					r.refuse(i, "content.type: Field required")
				} else if b.Type == "text" && blank(b.Text) {
					r.refuse(i, "text content blocks must contain non-whitespace text")
				}
			}
		}
	}},
	{"tool_ids", anthropic, toolUse, func(r *request) {
		var seen []string
		for i, m := range r.messages {
			for _, id := range m.ids("tool_use") {
				if !only(id, names) {
					r.refuse(i, "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
				}
				if slices.Contains(seen, id) {
					r.refuse(i, "`tool_use` ids must be unique")
				}
				seen = append(seen, id)
			}
		}
	}},
	{"tool_results", anthropic, toolUse, func(r *request) {
		joined := r.joined()
		for i, m := range joined {
			calls, results := m.ids("tool_use"), m.ids("tool_result")
			if m.Role != "assistant" && calls != nil || m.Role != "user" && results != nil {
				r.refuse(m.index, "`tool_use` blocks are an assistant's, `tool_result` blocks a user's")
			}
			var answered, sought []string
			if i+1 < len(joined) {
				answered = joined[i+1].ids("tool_result")
			}
			if i > 0 {
				sought = joined[i-1].ids("tool_use")
			}
			for _, id := range calls {
				if i+1 < len(joined) && !slices.Contains(answered, id) {
					r.refuse(m.index, "`tool_use` ids were found without `tool_result` blocks immediately after: %s", id)
				}
			}
			for k, id := range results {
				if !slices.Contains(sought, id) {
					r.refuse(m.index, "unexpected `tool_use_id` found in `tool_result` blocks: %s", id)
				}
				if slices.Contains(results[:k], id) {
					r.refuse(m.index, "each tool_use must have a single result: %s", id)
				}
			}
			first := slices.IndexFunc(m.blocks, func(b block) bool { return b.Type != "tool_result" })
			last := len(m.blocks) - 1
			for ; last >= 0 && m.blocks[last].Type != "tool_result"; last-- {
			}
			if first >= 0 && last > first {
				r.refuse(m.index, "`tool_result` blocks must come first in their message")
			}
		}
	}},
	{"final_thinking", anthropic, "platform.claude.com/docs/en/build-with-claude/extended-thinking, 2026-11", func(r *request) {
		for i, m := range r.messages {
			if n := len(m.blocks); n > 0 && m.Role == "assistant" && m.blocks[n-1].thinks() {
				r.refuse(i, "The final block in an assistant message cannot be `thinking`.")
			}
		}
	}},
	{"cache_control", anthropic, "platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11", func(r *request) {
		n := 0
		for _, m := range r.messages {
			for _, b := range m.blocks {
				if len(b.CacheControl) > 0 {
					n++
				}
			}
		}
		if n > 4 {
			r.refuse(0, "A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
		}
	}},
	{"media", anthropic, "platform.claude.com/docs/en/build-with-claude/vision, General limits, 2026-11", checkMedia},
	{"bound_thinking", []string{"anthropic", "bedrock", "openrouter"}, preservedThinking, checkBound},
}

// joined are the messages with neighbours of one role as one, as the API reads them.
func (r *request) joined() (out []message) {
	for _, m := range r.messages {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].blocks = slices.Concat(out[n-1].blocks, m.blocks)
			continue
		}
		out = append(out, m)
	}
	return out
}

func (b *block) thinks() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }
