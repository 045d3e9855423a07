package measure_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// measureText is the entry of a message with one text.
func measureText(s string) measure.Entry {
	m := dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: s}}}
	return measure.Measure(m, measure.Entry{})[0]
}

// A6: one pass computes all sizes of a text: its UTF-16 units, its bytes, and tokens
// that are neither under a token for each 8 bytes nor over the densest class.
func TestMeasureSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.ToValidUTF8(rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9+/]{0,60}`)).Draw(t, "s"), "?")
		e := measureText(s)
		if want := codec.Units(s); int(e.Text) != want || int(e.Bytes) != len(s) {
			t.Fatalf("%d units and %d bytes, want %d and %d", e.Text, e.Bytes, want, len(s))
		}
		if floor := (len(s) + 7) / 8; int(e.Base) < floor {
			t.Fatalf("%d tokens of %d bytes", e.Base, len(s))
		}
		r := measure.NewRate(measure.Profiles["default"], "openai")
		if n := r.Count(s); n > r.Ceiling(int64(e.Text)) {
			t.Fatalf("%d tokens, over the ceiling of %d units", n, e.Text)
		}
	})
}

// A6: what a table of OpenAI's makes of a text, for each class of contents.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       float64 // tokens of o200k_base
	}{
		{"prose", strings.Repeat("It was a bright cold day in April, and the clocks were striking thirteen. ", 20), 321},
		{"code", strings.Repeat("\tfor i, e := range list {\n\t\tif e.Kind == KindCall {\n\t\t\tout[i] = append(out[i], e.Name)\n\t\t}\n\t}\n", 20), 660},
		{"json", strings.Repeat(`{"id":"a81","name":"server","port":8080,"tags":["x","prod"]},`, 20), 421},
		{"log", strings.Repeat("2026-11-20T20:44:07.123Z INFO request done status=200 path=/v1/items took=31ms\n", 20), 620},
		{"chinese", strings.Repeat("我们需要检查这个文件的内容，然后再决定下一步该怎么做。", 20), 321},
		{"base64", strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4", 20), 620},
	} {
		if got := float64(measureText(c.text).Base); got < 0.8*c.want || got > 1.35*c.want {
			t.Errorf("%s: %.0f tokens, want about %.0f", c.name, got, c.want)
		}
	}
}

// A4, A6: arguments count as what a model reads: a line in a JSON string is a
// line, not a backslash and an n.
func TestEscapes(t *testing.T) {
	of := func(args string) uint32 {
		m := dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{{Kind: dialect.PartCall, Args: codec.Raw(args)}}}
		return measure.Measure(m, measure.Entry{})[0].Base
	}
	code := "\tif a {\n\t\treturn \"b\"\n\t}\n"
	raw, err := codec.Marshal(map[string]string{"code": strings.Repeat(code, 40)})
	if err != nil {
		t.Fatal(err)
	}
	plain := measureText(strings.Repeat(code, 40)).Base
	if got := of(string(raw)); got < plain || got > plain+20 {
		t.Errorf("%d tokens in JSON, %d as text", got, plain)
	}
}
