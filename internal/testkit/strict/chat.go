package strict

import "slices"

const chatAPI = "developers.openai.com/api/reference/resources/chat, 2026-11"

var (
	// chat are the providers of chat completions that the rules name.
	chat = []string{"openai", "mistral", "perplexity", "vllm", "ollama", "deepseek", "groq", "xai", "openrouter", "moonshotai"}
	// alternating want user and assistant in turns.
	alternating = []string{"mistral", "perplexity", "vllm", "ollama"}
)

var openaiRules = []Rule{
	{"roles", chat, chatAPI, func(r *request) {
		for i, m := range r.messages {
			if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", "function"}, m.Role) {
				r.refuse(i, "Invalid value: '%s'", m.Role)
			}
		}
	}},
	{"content", chat, chatAPI, func(r *request) {
		for i, m := range r.messages {
			filled := m.has() && (m.text || len(m.blocks) > 0)
			if m.Role == "assistant" {
				filled = filled || m.ToolCalls != nil || m.Refusal != nil || m.Audio != nil
			}
			if !filled {
				r.refuse(i, "Invalid value for 'content': expected a string, got null.")
			}
		}
	}},
	{"tool_calls", chat, chatAPI, func(r *request) {
		var open []string
		for i, m := range r.messages {
			if m.Role == "tool" {
				at := slices.Index(open, m.ToolCallID)
				if at < 0 {
					r.refuse(i, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
				} else {
					open = slices.Delete(open, at, at+1)
				}
				continue
			}
			if len(open) > 0 {
				r.refuse(i, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
					"The following tool_call_ids did not have response messages: %v", open)
			}
			open = nil
			if m.ToolCalls == nil {
				continue
			}
			if m.Role != "assistant" {
				r.refuse(i, "Additional properties are not allowed ('tool_calls' was unexpected)")
			}
			if len(*m.ToolCalls) == 0 {
				r.refuse(i, "Invalid 'tool_calls': empty array. Expected an array with minimum length 1")
			}
			for _, c := range *m.ToolCalls {
				if c.ID == "" || slices.Contains(open, c.ID) || c.Function == nil && c.Custom == nil {
					r.refuse(i, "Duplicate or missing value for 'tool_call_id'")
				}
				open = append(open, c.ID)
			}
		}
	}},
}

var chatRules = []Rule{
	{
		"alternate", alternating,
		"docs.perplexity.ai: \"user or tool message(s) should alternate with assistant message(s)\"; " +
			"Jinja templates of Mistral, Gemma and Llama: \"conversation roles must alternate user/assistant\"; 2026-11",
		func(r *request) {
			before := ""
			for i, m := range r.messages {
				if m.Role == before && (m.Role == "user" || m.Role == "assistant") {
					r.refuse(i, "conversation roles must alternate user/assistant/user/assistant/...")
				}
				before = m.Role
			}
		},
	},
	{"reasoning_content", []string{"deepseek", "moonshotai"}, "api-docs.deepseek.com/guides/thinking_mode, \"the API will return a 400 error\"; 2026-11", func(r *request) {
		for i, m := range r.messages {
			if m.ToolCalls != nil && m.ReasoningContent == nil {
				r.refuse(i, "The `reasoning_content` in the thinking mode must be passed back to the API.")
			}
		}
	}},
	{"nine_characters", []string{"mistral"}, "github.com/mistralai/mistral-common, validator.py, 2026-11", func(r *request) {
		for i, m := range r.messages {
			ids := []string{}
			if m.Role == "tool" {
				ids = append(ids, m.ToolCallID)
			}
			if m.ToolCalls != nil {
				for _, c := range *m.ToolCalls {
					ids = append(ids, c.ID)
				}
			}
			for _, id := range ids {
				if len(id) != 9 || !only(id, letters) {
					r.refuse(i, "Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", id)
				}
			}
		}
	}},
}
