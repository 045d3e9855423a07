package events

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table of codes in the docs is the table in the code.
func TestCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format", "wire.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- codes:begin -->")
	table, _, found := strings.Cut(rest, "<!-- codes:end -->")
	if !found {
		t.Fatal("docs/format/wire.md has no table between its markers")
	}
	var got, want []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(Codes)) {
		taken := "yes"
		if Codes[c].Denies {
			taken = "no"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", c, taken, Codes[c].Meaning, Codes[c].Hint))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/format/wire.md does not say what code.go says (-code +docs):\n%s", diff)
	}
}
