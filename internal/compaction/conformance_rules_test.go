package compaction_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// deviation is a rule by which our answer differs from the recorded one: a row of
// the features decides otherwise.
type deviation struct {
	row, function, reason string
	// applies selects which cases the rule is about; check what is wrong with our
	// answer to one, "" if it is what the row requires.
	applies func(c *vectorCase, want, got any) bool
	check   func(c *vectorCase, want, got any) string
}

func (d *deviation) name() string { return d.row + " " + d.function + " " + d.reason }

// deviations is the one table of differences. The first rule that applies decides.
var deviations = []deviation{
	{"A4", "estimateMessagesTokens", "content that is no text counts as JSON, two characters a token", hasBlocks, countsMore},
	{"A8", "getContextWindowSize", "the longest known name that begins a model's wins, not the first", longerName, isLongestName},
	{"A8", "getContextWindowSize", "providers are known by more spellings of their name", otherSpelling, isWindowOfNamesake},
	{"A10", "checkContextBudget", "usage of no input at all is as high as it gets, not 1", nothingAvailable, onlyUsageDiffers},
	{"A11", "getEffectiveTokenThreshold", "the trigger is the first input that reaches its share: rounded up", always, isOneMore},
	{"A15", "truncateToTokenBudget", "the dots are counted, and runes stay whole", always, cutIsSound},
	{"B3", "pruneToolOutputs", "a result that is shorter than its placeholder stays", clearsShort, keepsShort},
	{"B5", "deduplicateFileReads", "only results are reads; words such as \"thread pool\" are no path; a second pass changes nothing", always, dedupeIsSound},
	{"B6", "SummarizationEngine.findSplitIndexByTokens", "the newest message stays, and a call with its results", always, splitIsSound},
	{"B7", "truncateWithSlidingWindow", "the smallest cut that fits; the first exchange is whole; a call stays with its results", isLong, historyIsSound},
	{"B8", "truncateWithSlidingWindow", "contents are cut in proportion and never grow; a small gain is kept", always, smallIsSound},
	{"B9", "emergencyContentTruncation", "cut at boundaries, the dots counted, never to nothing", always, emergencyIsSound},
	{"B10", "repairToolPairs", "parallel calls find their results; calls open at the end await theirs", always, repairIsSound},
	{"B8", "ContextCompactor.compact", "contents of four messages or less are cut in proportion", isShort, smallCompactIsSound},
	{"B8", "ContextCompactor.compact.summarize", "contents of four messages or less are cut in proportion", isShort, smallCompactIsSound},
	{"B10", "ContextCompactor.compact", "repair is part of a compaction: parallel calls stay, open calls at the end too", recordNeedsRepair, compactedIsSound},
	{"B5", "ContextCompactor.compact", "only results of tools are reads", used(events.StageDeduplicate), compactedIsSound},
	{"B7", "ContextCompactor.compact", "the smallest cut that fits; the first exchange is whole", used(events.StageTruncate), compactedIsSound},
	{"C2b", "ContextCompactor.compact.summarize", "framed as a condensed summary; the newest message stays; a call with its results", always, compactedIsSound},
	{"D2", "isContextOverflowError", "rate limits, quotas and bad keys are no overflow; input and output together are", isExcused, disagrees},
	{"D2", "getContextOverflowProvider", "rate limits, quotas and bad keys are no overflow; input and output together are", isExcused, disagrees},
	{"D1", "isContextOverflowError", "texts of today's providers, and a code without a message, are overflows too", always, namesProvider},
	{"D1", "getContextOverflowProvider", "the provider that writes these words today is named", always, namesProvider},
	{"D3", "parseProviderOverflowDetails", "counts are read in every form and from texts of any length", always, countsStated},
	{"B14", "truncateToolOutput", "limits are exact, also 0 bytes and bytes of characters that take several", always, outputIsSound},
	{"B14", "generateToolOutputPreview", "limits are exact, runes whole, and the tail has what the head leaves", always, outputIsSound},
}

func always(*vectorCase, any, any) bool { return true }

func isExcused(c *vectorCase, _, _ any) bool { return c.excused() }

func hasBlocks(c *vectorCase, _, _ any) bool {
	return slices.ContainsFunc(c.input().Messages, func(m events.Raw) bool {
		_, isText := at(parsed(m), "content").(string)
		return !isText
	})
}

func countsMore(_ *vectorCase, want, got any) string {
	if w, g := at(want, "tokens").(float64), at(got, "tokens").(float64); g <= w || g > 2*w {
		return fmt.Sprintf("%v tokens, %v in the record", g, w)
	}
	return ""
}

// longestName is the longest name in the table that begins the model's.
func longestName(c *vectorCase) (name string, tokens compaction.Tokens) {
	in := c.input()
	for n, t := range c.manner.windows[strings.ToLower(in.Provider)] {
		if strings.HasPrefix(in.Model, n) && len(n) > len(name) {
			name, tokens = n, t
		}
	}
	return name, tokens
}

func longerName(c *vectorCase, want, _ any) bool {
	name, tokens := longestName(c)
	return name != "" && float64(tokens) != at(want, "tokens")
}

func isLongestName(c *vectorCase, _, got any) string {
	if name, tokens := longestName(c); float64(tokens) != at(got, "tokens") {
		return fmt.Sprintf("%v tokens, %s has %d", at(got, "tokens"), name, tokens)
	}
	return ""
}

func otherSpelling(c *vectorCase, _, _ any) bool {
	return c.manner.windows[strings.ToLower(c.input().Provider)] == nil
}

// isWindowOfNamesake: the window that the model has with a provider of the table
// whose name begins the one that was given, signs left out.
func isWindowOfNamesake(c *vectorCase, _, got any) string {
	in := c.input()
	letters := strings.NewReplacer("-", "", "_", "", ".", "", " ", "")
	given := strings.ToLower(letters.Replace(in.Provider))
	for name := range c.manner.windows {
		if strings.HasPrefix(given, letters.Replace(name)) && at(got, "tokens") == float64(c.manner.windows.Window(name, in.Model)) {
			return ""
		}
	}
	return "no provider of that name has the window"
}

func nothingAvailable(_ *vectorCase, want, _ any) bool {
	return at(want, "availableInputTokens").(float64) <= 0
}

func onlyUsageDiffers(_ *vectorCase, want, got any) string {
	if usage := at(got, "usageRatio").(float64); usage < 1 {
		return fmt.Sprintf("usage is %v", usage)
	}
	same := maps.Clone(got.(map[string]any))
	same["usageRatio"] = at(want, "usageRatio")
	return mismatch(want, same)
}

func isOneMore(_ *vectorCase, want, got any) string {
	if at(got, "tokens") != at(want, "tokens").(float64)+1 {
		return fmt.Sprintf("%v, %v in the record", at(got, "tokens"), at(want, "tokens"))
	}
	return ""
}

// clearsShort reports whether the record made a result longer by clearing it.
func clearsShort(c *vectorCase, want, _ any) bool {
	var in stageInput
	c.into(&in)
	return slices.ContainsFunc(in.Messages, shortResult) && at(want, "pruned") == true
}

func shortResult(m events.Raw) bool {
	text, _ := at(parsed(m), "content").(string)
	return at(parsed(m), "role") == "tool_result" && len(text) <= len(compaction.ClearText)
}

func keepsShort(c *vectorCase, want, got any) string {
	var in stageInput
	c.into(&in)
	ours, record := listed(got), listed(want)
	for i, m := range in.Messages {
		if shortResult(m) {
			record[i] = parsed(m)
		}
	}
	if at(got, "tokensSaved").(float64) < at(want, "tokensSaved").(float64) {
		return "less is saved"
	}
	return mismatch(record, ours)
}

// isLong reports whether a history has more than the four messages that are never
// truncated.
func isLong(c *vectorCase, _, _ any) bool {
	var in stageInput
	c.into(&in)
	return len(in.Messages) > 4
}

func isShort(c *vectorCase, want, got any) bool { return !isLong(c, want, got) }

func recordNeedsRepair(_ *vectorCase, want, _ any) bool {
	return at(at(want, "repaired"), "repaired") == true
}

// used applies to a record that used a stage.
func used(stage events.Stage) func(*vectorCase, any, any) bool {
	return func(_ *vectorCase, want, _ any) bool {
		stages, _ := at(want, "stagesUsed").([]any)
		return slices.Contains(stages, any(string(stage)))
	}
}
