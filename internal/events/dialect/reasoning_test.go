package dialect_test

import (
	"testing"

	"compactd/internal/events/codec"
)

// A5: reasoning beside calls counts, since it goes back with them. Some providers drop it, so no
// usage is held to its bytes.
func TestReasoningCounts(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"role":"assistant","reasoning_content":"look at the file first","content":"reading"}`: true,
		`{"role":"assistant","reasoning_content":"","content":"reading"}`:                       false,
		`{"role":"assistant","reasoning_content":null,"content":"reading"}`:                     false,
	} {
		m, err := OpenAI.Read(codec.Raw(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Extra.Base > 0; got != want || m.Extra.Bytes != 0 {
			t.Errorf("%s: %+v", raw, m.Extra)
		}
	}
}
