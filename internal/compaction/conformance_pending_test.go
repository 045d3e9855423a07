package compaction_test

import "slices"

// awaited reports whether a case asks for what is not plugged in: an answer to one
// of these functions, once it is in the table answers, ends the wait. Truncation of
// at most four messages is B8's.
func awaited(c *vectorCase) bool {
	if c.function == "truncateWithSlidingWindow" {
		return !truncatesSmall && !isLong(c, nil, nil)
	}
	return answers[c.function] == nil && slices.Contains([]string{
		"isContextOverflowError", "getContextOverflowProvider", "parseProviderOverflowDetails", "extractErrorMessage",
		"emergencyContentTruncation",
	}, c.function)
}

// truncatesSmall says whether answerTruncate cuts the contents of a history that is
// too short to lose messages.
const truncatesSmall = false
