package traits

// alternating are the providers of chat completions that refuse two messages of the user, or
// of the assistant, one after the other.
//
// Source, read 2026-11: docs.perplexity.ai, "user or tool message(s) should alternate with
// assistant message(s)"; github.com/mistralai/mistral-common, validator.py; and the chat
// templates of Mistral, Gemma and Llama, which vLLM and Ollama apply: "conversation roles must
// alternate user/assistant/user/assistant/...". Templates of other models behind these two
// take joined messages too.
var alternating = []string{"mistral", "mistralai", "perplexity", "vllm", "ollama"}
