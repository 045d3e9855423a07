package sanitize

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// All words in a text are found, by their ends and then from the longest.
func TestWordFinder(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		draw := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = "aab\xc3"[r.IntN(4)]
			}
			return string(b)
		}
		var words []string
		for range 1 + r.IntN(8) {
			if w := draw(1 + r.IntN(5)); !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
		text := draw(60) + "z" + draw(20)
		var want, got []string
		for end := range len(text) {
			for n := end + 1; n > 0; n-- {
				if i := slices.Index(words, text[end+1-n:end+1]); i >= 0 {
					want = append(want, fmt.Sprint(end, n, i))
				}
			}
		}
		f := newWordFinder(words)
		f.walk([]byte(text), func(last, n, word int) bool {
			got = append(got, fmt.Sprint(last, n, word))
			return true
		})
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q in %q: %v, want %v", seed, words, text, got, want)
		}
		calls := 0
		f.walk([]byte(text), func(int, int, int) bool { calls++; return false })
		if calls != min(len(want), 1) {
			t.Fatalf("seed %d: %d calls after the end", seed, calls)
		}
	}
}

// A worker keeps the words of the rules for ever: all of them take less than 2 MiB.
func TestWordFinderIsSmall(t *testing.T) {
	f := theMachine().finder
	if n := 2*len(f.next) + 6*len(f.ends); n > 2<<20 {
		t.Errorf("%d bytes for %d states of %d columns", n, len(f.ends), f.width)
	}
	newWordFinder(nil).walk([]byte(strings.Repeat("a", 10)), func(int, int, int) bool {
		t.Error("found a word of none")
		return true
	})
}
