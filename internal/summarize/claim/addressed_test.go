package claim_test

import (
	_ "embed"
	"strings"
	"testing"

	"compactd/internal/summarize/claim"
)

//go:embed testdata/addressed.txt
var addressed string

// Words that an agent puts into the mouth of the user whom it speaks to are claims, and so are
// passive ones without a person (+). A line about what a user can do, or has, is no claim (-).
func TestAddressed(t *testing.T) {
	for line := range strings.Lines(addressed) {
		sign, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind, _ := claim.Of(text); (kind != 0) != (sign == "+") {
			t.Errorf("%s: kind %d", line, kind)
		}
	}
}
