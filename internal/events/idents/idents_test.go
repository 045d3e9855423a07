package idents_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/events/idents"
)

func TestIn(t *testing.T) {
	for text, want := range map[string][]string{
		"see src/parse.go:12, then parseHeader.":        {"src/parse.go:12", "parseHeader"},
		"plain words Alone, and a_b":                    nil,
		`{"path":"/etc/hosts","text":"one\nnode_list"}`: {"etc/hosts", "node_list"},
		"v1.26.8 of 0ba4ee09":                           {"v1.26.8", "0ba4ee09"},
		strings.Repeat("a_", 101):                       nil,
		"":                                              nil,
	} {
		if d := cmp.Diff(want, slices.Collect(idents.In(text))); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

// Each identifier is a part of its text, and one that stands alone is found as it is.
func TestAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for w := range idents.In(text) {
			if !strings.Contains(text, w) {
				t.Fatalf("%q is not in the text", w)
			}
			if again := slices.Collect(idents.In(w)); len(again) != 1 || again[0] != w {
				t.Fatalf("%q alone is %q", w, again)
			}
		}
	})
}
