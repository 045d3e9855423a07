package measure_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"

	"pgregory.net/rapid"
)

// A4: name and arguments of a call count; in the reference a call is free, so that
// an agent that writes files overflows unseen.
func TestArgumentsCount(t *testing.T) {
	m := dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{
		{Kind: dialect.PartCall, Tool: "write_file", Args: codec.Raw(`{"content":"` + strings.Repeat("func f() {} ", 4_000) + `"}`)},
	}}
	cost := func(profile string) measure.Tokens {
		r := measure.NewRate(measure.Profiles[profile], "openai")
		return r.Entry(&measure.Measure(m, measure.Entry{})[0])
	}
	if seed := cost("seed"); seed > 10 {
		t.Errorf("the profile of the reference counts %d", seed)
	}
	if ours := cost("default"); ours < 10_000 {
		t.Errorf("48,000 characters of arguments count as %d tokens", ours)
	}
}

// A15, B14: no limit on bytes leaves half a rune, whatever is kept.
func TestLimitOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "é", "日", "🚀", "\n", "word ", "\r\n"})).Draw(t, "text"), "")
		l := measure.OutputLimits{
			MaxBytes: rapid.Int64Range(0, 60).Draw(t, "bytes"), MaxLines: rapid.Int64Range(0, 8).Draw(t, "lines"),
			Keep:      rapid.SampledFrom([]measure.Direction{measure.KeepTail, measure.KeepHead, measure.KeepBoth, measure.KeepLines}).Draw(t, "keep"),
			HeadShare: measure.PPM(rapid.Int64Range(0, 1_000_000).Draw(t, "share")),
		}
		got, cut := measure.LimitOutput(text, l)
		within := int64(len(text)) <= l.MaxBytes && int64(strings.Count(text, "\n")) < l.MaxLines
		if cut == within || !cut && got != text {
			t.Fatalf("%q of %+v: %q", text, l, got)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("half a rune: %q", got)
		}
		notice := int64(len("\n\n[Output truncated from 1000 bytes to 1000 bytes]\n\n"))
		if cut && int64(len(got)) > l.MaxBytes+notice {
			t.Fatalf("%d bytes of %d: %q", len(got), l.MaxBytes, got)
		}
	})
}
