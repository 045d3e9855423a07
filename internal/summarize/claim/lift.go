package claim

import (
	"strings"

	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/snippet"
)

// Lifts reports a line that permits something, or states that a ban or a duty has no force: "may be
// edited", "is no longer off limits", "can wait". A negated permission does not count.
func Lifts(line string) bool {
	lower := snippet.Lowered(sanitize.Normalize(snippet.StripInvisible(line)).S)
	if snippet.Matches(lower, lifts) || abilities().MatchString(lower) || clearances().MatchString(lower) {
		return true
	}
	for from, to := range snippet.Each(lower, permits) {
		behind := lower[to:min(len(lower), to+clauseBytes)]
		if i := strings.IndexAny(behind, ".;:!?,"); i >= 0 {
			behind = behind[:i]
		}
		if !denials().MatchString(behind) && !denials().MatchString(clause(lower[:from])) {
			return true
		}
	}
	return false
}
