package measure_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
)

// B15: what enters fits into the share for files, every file is reported once, and
// none that would have fit at its turn is left out.
func TestChooseFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []measure.File
		for i := range rapid.IntRange(0, 8).Draw(t, "files") {
			files = append(files, measure.File{
				Name: string(rune('a' + i)), Bytes: rapid.Int64Range(0, 100_000).Draw(t, "bytes"),
				Kind: rapid.SampledFrom([]string{"", "pdf", "image", "CSV", "svg"}).Draw(t, "kind"),
			})
		}
		available := measure.Tokens(rapid.Int64Range(-10, 60_000).Draw(t, "available"))
		l := measure.DefaultFileLimits()
		bySize, fits := l.Choose(files, available)
		left := max(available, 0) * 6 / 10
		var out []measure.File
		for k, i := range bySize {
			if f := files[i]; fits[k] {
				left -= measure.FileTokens(f.Kind, f.Bytes)
			} else {
				out = append(out, f)
			}
		}
		if slices.Sort(bySize); left < 0 || len(slices.Compact(bySize)) != len(files) {
			t.Fatalf("%d tokens over; %v of %d files", -left, bySize, len(files))
		}
		for _, f := range out {
			if measure.FileTokens(f.Kind, f.Bytes) <= left {
				t.Fatalf("%s would have fit into %d", f.Name, left)
			}
		}
	})
}

// B15: files are summarized, the largest first, until they fit into their room.
func TestFileSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []measure.Tokens
		p := measure.Prompt{History: measure.Tokens(rapid.Int64Range(0, 30_000).Draw(t, "history"))}
		for range rapid.IntRange(1, 8).Draw(t, "files") {
			n := measure.Tokens(rapid.Int64Range(0, 30_000).Draw(t, "tokens"))
			files, p.Files = append(files, n), p.Files+n
		}
		l := measure.DefaultFileLimits()
		room := l.Available(p, 60_000)
		total, largest, kept := measure.Tokens(0), measure.Tokens(0), false
		for _, s := range l.Summaries(files, room) {
			if size := files[s.File]; s.Target == 0 {
				total, largest, kept = total+size, max(largest, size), true
			} else if total += s.Target; kept || s.Target >= size {
				t.Fatalf("%+v of %v", s, files)
			}
		}
		if total > room && largest > l.SummaryTokens(room, len(files)) {
			t.Fatalf("%d tokens in a room of %d, and one of %d stays", total, room, largest)
		}
	})
}

// B14: the notice states how to get the whole.
func TestLimitOutputNotice(t *testing.T) {
	text := strings.Repeat("line\n", 10)
	for keep, want := range map[measure.Direction]string{
		measure.KeepHead: "line\nline\n\n[Output truncated from 50 bytes to 9 bytes]\n[Ask for turn 7]",
		measure.KeepTail: "\n\n[Output truncated from 50 bytes to 5 bytes]\n[Ask for turn 7]\nline\n",
		measure.KeepBoth: "line\n\n[... 46 bytes omitted. Ask for turn 7 ...]\n\n",
	} {
		l := measure.OutputLimits{MaxBytes: 40, MaxLines: 2, Keep: keep, HeadShare: 500_000, Whole: "Ask for turn 7"}
		if got, _ := measure.LimitOutput(text, l); got != want {
			t.Errorf("%s: %q, want %q", keep, got, want)
		}
	}
}
