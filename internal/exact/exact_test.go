package exact_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/exact"
	"compactd/internal/stored"
)

func counter(t testing.TB, name string) *exact.Counter {
	t.Helper()
	c, err := exact.New(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A7: the counts are those that the tables' owner publishes.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       int64
	}{
		{"o200k", "", 0},
		{"o200k", "hello world", 2},
		{"cl100k", "hello world", 2},
		{"cl100k", "tiktoken is great!", 6},
		{"cl100k", "お誕生日おめでとう", 9},
		{"o200k", "お誕生日おめでとう", 8},
		{"cl100k", "antidisestablishmentarianism", 6},
	} {
		if got := counter(t, c.name).Count(c.text); got != c.want {
			t.Errorf("%s %q: %d tokens, want %d", c.name, c.text, got, c.want)
		}
	}
}

// A7: what another name would count is not made up.
func TestUnknown(t *testing.T) {
	if _, err := exact.New("p50k"); err == nil {
		t.Error("no error")
	}
}

// A7: a counter is part of what a decision depends on: a config is read back with
// its counter, and not without.
func TestConfig(t *testing.T) {
	by := counter(t, "o200k")
	plain, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	c, err := plain.WithCounter(by)
	if err != nil {
		t.Fatal(err)
	}
	if c.Hash() == plain.Hash() {
		t.Error("the counter is not in the hash")
	}
	if _, err := stored.ReadConfig(c.Text()); err == nil {
		t.Error("a config whose counter is not at hand was read")
	}
	back, err := stored.ReadConfig(c.Text(), counter(t, "cl100k"), by)
	if err != nil || back.Hash() != c.Hash() {
		t.Errorf("read back as %v, %v", back, err)
	}
}

// A7: no text takes a worker's time: what would cost the square of its length is
// cut, and is still counted within a token a piece.
func TestHostile(t *testing.T) {
	c := counter(t, "o200k")
	for _, piece := range []string{"a", " ", "日", "!", "aB", "\n"} {
		text := strings.Repeat(piece, (256<<10)/len(piece))
		begin := time.Now()
		n := c.Count(text)
		t.Logf("%q: %d tokens in %v", piece, n, time.Since(begin))
		if n <= 0 || n > int64(len(text)) {
			t.Errorf("%q: %d tokens of %d bytes", piece, n, len(text))
		}
	}
}

// A7: a text of ordinary runs is counted whole: cutting it at white space by hand
// gives never less.
func TestWhole(t *testing.T) {
	c := counter(t, "o200k")
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9.,/_-]{1,12}`), 1, 40).Draw(t, "words")
		var sum int64
		for i, w := range words {
			if i > 0 {
				w = " " + w
			}
			sum += c.Count(w)
		}
		if n := c.Count(strings.Join(words, " ")); n > sum {
			t.Fatalf("%d tokens whole, %d in pieces", n, sum)
		}
	})
}

// The speed of exact counting, in bytes per second.
func BenchmarkCount(b *testing.B) {
	c := counter(b, "o200k")
	text := strings.Repeat("\tif err := f(x, y[i]); err != nil { // The quick brown fox jumps.\n", 1_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Count(text)
	}
}

// A7: the ceilings of what compactd writes itself hold for exact counts too: a
// token for each 3 units at least.
func TestCeilings(t *testing.T) {
	for _, name := range []string{"o200k", "cl100k"} {
		c := counter(t, name)
		for _, text := range []string{measure.ClearText, measure.ClearOldText, measure.AnswerText, measure.TruncateText} {
			if n, most := c.Count(text), int64(len(text)+2)/3; n > most {
				t.Errorf("%s: %q takes %d tokens, counted as %d", name, text, n, most)
			}
		}
	}
}
