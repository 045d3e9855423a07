package compaction

import (
	"cmp"
	"slices"
)

// FileSummary says what becomes of one file before it enters a history.
type FileSummary struct {
	File   int    // index among the files
	Target Tokens // of its summary; 0 keeps the file as it is
}

// Room is what files may take beside the rest of a prompt, given the available
// input: the reserve for what is no file stays free.
func (l *FileLimits) Available(p Prompt, available Tokens) Tokens {
	reserve := Tokens(ceilDiv(int64(max(available, 0))*int64(l.Reserve), million))
	return max(available-reserve-(p.Total()-p.Files), 0)
}

// SummaryTokens is the size of the summary of one of n files that share room.
func (l *FileLimits) SummaryTokens(room Tokens, n int) Tokens {
	return min(max(room/Tokens(max(n, 1)), l.MinSummary), l.MaxSummary)
}

// NeedSummaries reports whether a prompt with its files takes more than the share
// trigger of the available input.
func (l *FileLimits) NeedSummaries(p Prompt, available Tokens, trigger PPM) bool {
	return int64(p.Total())*million > int64(available)*int64(trigger)
}

// Summaries plans which files, given with their tokens, are summarized before they
// enter: the largest first, until the files fit into their room. A file that is no
// larger than a summary stays. Without need the files stay in their order.
func (l *FileLimits) Summaries(files []Tokens, p Prompt, available Tokens, trigger PPM) []FileSummary {
	plan := make([]FileSummary, len(files))
	var total Tokens
	for i := range files {
		plan[i].File = i
		total += files[i]
	}
	if !l.NeedSummaries(p, available, trigger) {
		return plan
	}
	slices.SortStableFunc(plan, func(a, b FileSummary) int { return -cmp.Compare(files[a.File], files[b.File]) })
	room := l.Available(p, available)
	target := l.SummaryTokens(room, len(files))
	for i := range plan {
		if size := files[plan[i].File]; total > room && size > target {
			plan[i].Target = target
			total -= size - target
		}
	}
	return plan
}
