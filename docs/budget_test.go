package docs

import (
	"strings"
	"testing"
)

// Pages that have a budget of words; "" is all pages together, without the texts of others.
var budgets = map[string]int{"": 55_000, "README.md": 900, "docs/format/wire.md": 8_000, "docs/operations.md": 6_000}

// Pages have at most as many words as their budget, counted as wc -w does.
func TestBudgets(t *testing.T) {
	words := map[string]int{}
	for _, p := range pages(t) {
		if p.path == "THIRD_PARTY_NOTICES.md" || !strings.HasSuffix(p.path, ".md") {
			continue
		}
		n := len(strings.Fields(p.text))
		words[p.path] = n
		words[""] += n
	}
	for name, most := range budgets {
		switch n := words[name]; {
		case n == 0:
			t.Errorf("there is no page %q", name)
		case n > most:
			t.Errorf("%q has %d words, at most %d (\"\" is all pages)", name, n, most)
		}
	}
}
