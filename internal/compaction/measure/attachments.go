package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

// FileLimits bounds the files attached to a call, before they are in the history. Only compactd.attach and
// compactd.check use it, no compaction.
type FileLimits struct {
	// Share of the free tokens of a call is for files. Reserve of the available input stays free of files
	// when files are summarized.
	Share   PPM `json:"share"`
	Reserve PPM `json:"reserve"`
	// A file below FastPathBytes is not cut for its own size; a file above PreviewBytes is cut to its first
	// PreviewUnits UTF-16 units. The share holds for both.
	FastPathBytes int64 `json:"fast_path_bytes"`
	PreviewBytes  int64 `json:"preview_bytes"`
	PreviewUnits  int64 `json:"preview_units"`
	// Summarize summarizes files that do not fit, the largest first; else they are cut. A summary has at
	// least MinSummary, at most MaxSummary.
	Summarize  bool   `json:"summarize"`
	MinSummary Tokens `json:"summary_min_tokens"`
	MaxSummary Tokens `json:"summary_max_tokens"`
}

// DefaultFileLimits are the limits of the reference system.
func DefaultFileLimits() FileLimits {
	return FileLimits{
		Share: 600_000, Reserve: 150_000,
		FastPathBytes: 100 << 10, PreviewBytes: 5 << 20, PreviewUnits: 2_000,
		Summarize: true, MinSummary: 500, MaxSummary: 4_000,
	}
}

// FileRead is the part of a file that enters a history.
type FileRead struct {
	Cut     bool  // only the first Units UTF-16 units
	Units   int64 // 0 if the file is not cut
	Preview bool  // it is too large to be compared with the budget
}

// Read returns the part of a file that enters, given the tokens left for files. Its content is not read yet:
// four bytes count as a token.
func (l *FileLimits) Read(bytes int64, budget Tokens) FileRead {
	switch {
	case bytes > l.PreviewBytes:
		return FileRead{Cut: true, Units: l.PreviewUnits, Preview: true}
	case bytes < l.FastPathBytes || CeilDiv(bytes, 4) <= int64(budget):
		return FileRead{}
	default:
		return FileRead{Cut: true, Units: max(4*int64(budget), l.PreviewUnits)}
	}
}

// fileCost is the cost of a processed file: num tokens for per bytes, or flat whatever its size.
type fileCost struct {
	flat     Tokens
	num, per int64
}

// fileCosts by type. Most bytes of a document are not text; only a description of media enters. The figures
// are the reference system's.
var fileCosts = map[string]fileCost{
	"archive": {flat: 1_000},
	"audio":   {flat: 300},
	"docx":    {num: 3, per: 80},
	"image":   {flat: 1_500},
	"pdf":     {num: 1, per: 100},
	"pptx":    {num: 3, per: 80},
	"svg":     {num: 1, per: 4},
	"unknown": {flat: 500},
	"video":   {flat: 500},
	"xlsx":    {num: 3, per: 80},
}

// textCost is the cost of text, code, CSV, JSON and of files without a type: four bytes a token, and a third
// more for the framing.
var textCost = fileCost{num: 133, per: 400}

// FileTokens estimates a file in a history by its type (pdf, docx, image and so on, in any case; "" and
// others are text) and its size.
func FileTokens(kind string, bytes int64) Tokens {
	c, ok := fileCosts[strings.ToLower(kind)]
	switch {
	case !ok:
		c = textCost
	case c.flat > 0:
		return c.flat
	}
	return Tokens(CeilDiv(bytes*c.num, c.per))
}

// File is a file by its type and size.
type File struct {
	Name  string
	Kind  string
	Bytes int64
}

// Notice is the text for the user whose attached file did not enter.
func (f *File) Notice() string {
	return fmt.Sprintf("Skipped %q (%d KB) — exceeds context budget", f.Name, (f.Bytes+512)/1024)
}

// Choose lists files by size, the smallest first, and which of them enter, given the available tokens: they
// fit into the share for files. A file that does not fit has no effect on those after it.
func (l *FileLimits) Choose(files []File, available Tokens) (bySize []int, fits []bool) {
	return choose(files, l.Share.Share(max(available, 0)))
}

func choose(files []File, left Tokens) (bySize []int, fits []bool) {
	bySize, fits = make([]int, len(files)), make([]bool, len(files))
	for i := range bySize {
		bySize[i] = i
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(files[a].Bytes, files[b].Bytes) })
	for k, i := range bySize {
		if t := FileTokens(files[i].Kind, files[i].Bytes); t <= left {
			left, fits[k] = left-t, true
		}
	}
	return bySize, fits
}

// CutTo returns text if it costs at most budget tokens, in any script, else its head followed by "..."; see
// [CutUnits].
func (by Meter) CutTo(r Rate, text string, budget Tokens) string {
	out := text
	for units := int64(codec.Units(text)); ; {
		cost := r.Sized(by.Text(out))
		if cost <= budget || out == "" {
			return out
		}
		units = min(units-1, units*int64(max(budget, 0))/int64(cost))
		out, _ = CutUnits(text, units)
	}
}

// fewWords is the smallest part of a file that is worth having, in tokens.
const fewWords Tokens = 16

// FileSummary is the plan for one file before it enters a history.
type FileSummary struct {
	File   int    // index among the files
	Target Tokens // of its summary; 0 keeps the whole file
}

// Available is the room for files beside the rest of a prompt, given the available input, without the
// reserve.
func (l *FileLimits) Available(p Prompt, available Tokens) Tokens {
	reserve := Tokens(CeilDiv(int64(max(available, 0))*int64(l.Reserve), Million))
	return max(available-reserve-(p.Total()-p.Files), 0)
}

// SummaryTokens is the size of a file's summary if n files share room.
func (l *FileLimits) SummaryTokens(room Tokens, n int) Tokens {
	return min(max(room/Tokens(max(n, 1)), l.MinSummary), l.MaxSummary)
}

// Summaries plans which files, given with their tokens, are summarized before they enter: the largest first,
// until the files fit into their room. A file no larger than a summary stays whole.
func (l *FileLimits) Summaries(files []Tokens, room Tokens) []FileSummary {
	plan := make([]FileSummary, len(files))
	var total Tokens
	for i := range files {
		plan[i].File = i
		total += files[i]
	}
	slices.SortStableFunc(plan, func(a, b FileSummary) int { return -cmp.Compare(files[a.File], files[b.File]) })
	target := l.SummaryTokens(room, len(files))
	for i := range plan {
		if size := files[plan[i].File]; total > room && size > target {
			plan[i].Target = target
			total -= size - target
		}
	}
	return plan
}
