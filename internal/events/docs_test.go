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

// The list of codes in the docs is the table in the code, without its hints.
func TestCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format", "codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- codes:begin -->")
	list, _, found := strings.Cut(rest, "<!-- codes:end -->")
	if !found {
		t.Fatal("docs/format/codes.md has no list between its markers")
	}
	var got, want []string
	for item := range strings.SplitSeq(list, "\n- ") {
		if item = strings.Join(strings.Fields(item), " "); item != "" {
			got = append(got, item)
		}
	}
	for _, c := range slices.Sorted(maps.Keys(Codes)) {
		taken := "taken"
		if Codes[c].Rejects {
			taken = "not taken"
		}
		want = append(want, fmt.Sprintf("`%s` (%s): %s", c, taken, Codes[c].Meaning))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/format/codes.md differs from code.go (-code +docs):\n%s", diff)
	}
}
