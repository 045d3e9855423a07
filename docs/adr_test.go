package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Comments name records that exist, as docs/adr/0013, and the code that a record explains
// names it.
func TestDecisions(t *testing.T) {
	files, err := filepath.Glob("adr/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]bool{} // by number, whether a comment names it
	for _, f := range files {
		if number := filepath.Base(f)[:4]; number != "0000" {
			records[number] = false
		}
	}
	for place, text := range comments(t) {
		for _, m := range record.FindAllStringSubmatch(text, -1) {
			if _, found := records[m[1]]; !found {
				t.Errorf("%s names docs/adr/%s, which does not exist", place, m[1])
			}
			if !strings.HasPrefix(place, "docs/") {
				records[m[1]] = true
			}
		}
	}
	var unnamed []string
	for number, named := range records {
		if !named {
			unnamed = append(unnamed, number)
		}
	}
	if slices.Sort(unnamed); len(unnamed) > 0 {
		t.Errorf("no comment of the code names the records %v", unnamed)
	}
}

var record = regexp.MustCompile(`docs/adr/(\d{4})`)
