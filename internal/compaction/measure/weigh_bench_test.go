package measure_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/dialect"
)

// How fast contents are measured, in bytes per second.
func BenchmarkMeasure(b *testing.B) {
	for name, piece := range map[string]string{
		"prose": "The quick brown fox jumps over the lazy dog. ",
		"code":  "\tif err := f(x, y[i]); err != nil {\n\t\treturn 0, err\n\t}\n",
		"cjk":   "日本語のテキスト、",
	} {
		text := strings.Repeat(piece, (1<<20)/len(piece))
		m := dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				measure.Measure(m, measure.Entry{})
			}
		})
	}
}
