package reference

import (
	"strings"

	"compactd/internal/events/models"
)

// Namesakes is the rule of functions that take a provider: the reference does not know a provider by the
// name that it has here, and the record is the answer for an unknown one. Ours is the answer under the
// name by which both know it.
var Namesakes = Rule{"A2", "*", "providers are known by more spellings of their name", isNamesake, isAnswerOfNamesake}

func isNamesake(c *Case, want, _ any) bool {
	known := true
	stranger := c.renamed(func(provider string) string {
		known = provider == "" || c.Release.Windows()[strings.ToLower(provider)] != nil
		return "unknown" // without a multiplier and a table
	})
	return !known && Mismatch(want, Plain(c.answer(stranger))) == ""
}

func isAnswerOfNamesake(c *Case, _, got any) string {
	return Mismatch(Plain(c.answer(c.renamed(models.Provider))), got)
}

// renamed is the case with its provider under another name.
func (c *Case) renamed(name func(provider string) string) *Case {
	var in map[string]any
	c.Into(&in)
	for _, object := range []any{in, in["config"], in["params"]} {
		if m, ok := object.(map[string]any); ok {
			if provider, ok := m["provider"].(string); ok {
				m["provider"] = name(provider)
			}
		}
	}
	out := *c
	out.Input = encoded(in)
	return &out
}
