package models

import "strings"

// makers are the families of models by the word that begins their names, with who made
// them. Of two words that a name contains the first in the name counts.
var makers = []struct{ word, maker string }{
	{"claude", "anthropic"},
	{"gpt", "openai"},
	{"chatgpt", "openai"},
	{"o1", "openai"},
	{"o3", "openai"},
	{"o4", "openai"},
	{"codex", "openai"},
	{"gemini", "google-ai"},
	{"gemma", "google-ai"},
	{"mistral", "mistral"},
	{"mixtral", "mistral"},
	{"codestral", "mistral"},
	{"devstral", "mistral"},
	{"magistral", "mistral"},
	{"ministral", "mistral"},
	{"grok", "xai"},
	{"deepseek", "deepseek"},
	{"llama", "meta"},
	{"nova", "amazon"},
	{"qwen", "qwen"},
	{"qwq", "qwen"},
	{"kimi", "moonshot"},
	{"glm", "zhipu"},
	{"minimax", "minimax"},
	{"command", "cohere"},
	{"nemotron", "nvidia"},
}

// Maker returns who made a model, not who hosts it, by the name of the maker's own provider; "" if the
// name of the model does not show it.
func Maker(model string) string {
	maker, _ := find(strings.ToLower(model))
	return maker
}

// Canonical returns the name that its maker gave a model: without the prefixes of gateways, regions and
// accounts, and with the punctuation of the maker. A model whose maker is unknown
// keeps its name.
func Canonical(model string) string {
	name := strings.ToLower(model)
	maker, at := find(name)
	if maker == "" {
		return model
	}
	if name = name[at:]; maker == "anthropic" { // gateways write claude-opus-4.5
		name = strings.ReplaceAll(name, ".", "-")
	}
	return name
}

// find returns the maker of a model and where its own name begins, behind the last slash.
func find(name string) (maker string, at int) {
	for at = strings.LastIndexByte(name, '/') + 1; at < len(name); at++ {
		if at > 0 && alphanumeric(name[at-1]) {
			continue
		}
		for _, m := range makers {
			if begins(name[at:], m.word) {
				return m.maker, at
			}
		}
	}
	return "", len(name)
}

// begins reports whether a word begins a name. A short word ends at a sign too.
func begins(name, word string) bool {
	return strings.HasPrefix(name, word) && (len(word) > 2 || len(name) == len(word) || !alphanumeric(name[len(word)]))
}

func alphanumeric(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }
