package compaction_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
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
	{"A2", "*", "providers are known by more spellings of their name", isNamesake, isAnswerOfNamesake},
	{"A4", "estimateMessagesTokens", "content that is no text counts as JSON, two characters a token", hasBlocks, countsMore},
	{"A8", "getContextWindowSize", "the longest known name that begins a model's wins, not the first", longerName, isLongestName},
	{"A10", "checkContextBudget", "usage of no input at all is as high as it gets, not 1", nothingAvailable, onlyUsageDiffers},
	{"A11", "getEffectiveTokenThreshold", "a stated trigger is never above what the model can read", statesMore, isAvailable},
	{"A11", "getEffectiveTokenThreshold", "the trigger is the first input that reaches its share: rounded up", always, isOneMore},
	{"A15", "truncateToTokenBudget", "the dots are counted, and runes stay whole", always, cutIsSound},
	{"B3", "pruneToolOutputs", "a result that is shorter than its placeholder stays", clearsShort, keepsShort},
	{"B5", "deduplicateFileReads", "only results are reads; words such as \"thread pool\" are no path; a second pass changes nothing", always, dedupeIsSound},
	{"B6", "SummarizationEngine.findSplitIndexByTokens", "the newest message stays, and a call with its results", always, splitIsSound},
	{"B7", "truncateWithSlidingWindow", "the smallest cut that fits; the first exchange is whole; a call stays with its results", isLong, historyIsSound},
	{"B8", "truncateWithSlidingWindow", "contents are cut in proportion and never grow; a small gain is kept", always, smallIsSound},
	{"B9", "emergencyContentTruncation", "cut at boundaries, the dots counted, never to nothing", always, emergencyIsSound},
	{"B10", "repairToolPairs", "parallel calls find their results; calls open at the end await theirs", always, repairIsSound},
	{"B10", "ContextCompactor.compact", "messages without words are left out", lacksBlanks, compactedIsSound},
	{"B10", "ContextCompactor.compact.summarize", "messages without words are left out", lacksBlanks, compactedIsSound},
	{"B8", "ContextCompactor.compact", "contents of four messages or less are cut in proportion", isShort, smallCompactIsSound},
	{"B8", "ContextCompactor.compact.summarize", "contents of four messages or less are cut in proportion", isShort, smallCompactIsSound},
	{"B10", "ContextCompactor.compact", "repair is part of a compaction: parallel calls stay, open calls at the end too", recordNeedsRepair, compactedIsSound},
	{"B5", "ContextCompactor.compact", "only results of tools are reads", used(events.StageDeduplicate), compactedIsSound},
	{"B7", "ContextCompactor.compact", "the smallest cut that fits; the first exchange is whole", used(events.StageTruncate), compactedIsSound},
	{"C2b", "ContextCompactor.compact.summarize", "framed as a condensed summary; the newest message stays; a call with its results", always, compactedIsSound},
	{"B15", "planFileSummarization", "the budget is shared by the files that are there", statesFileCount, sharesByStated},
	{"B15", "planFileSummarization", "a file no larger than its summary stays", always, keepsOnlySmall},
	{"D1", "extractErrorMessage", "an empty message is none", hasEmptyMessage, isWithoutEmpty},
	{"D1", "extractErrorMessage", "a cause is read of any error, also of one that is a plain object", hasCause, addsCause},
	{"D2", "isContextOverflowError", "a maximum output that fills the window is no overflow", isOutput, outputFills},
	{"D2", "getContextOverflowProvider", "a maximum output that fills the window is no overflow", isOutput, outputFills},
	{"D2", "parseProviderOverflowDetails", "a maximum output that fills the window is no overflow", isOutput, outputFills},
	{"D2", "isContextOverflowError", "rate limits, quotas and bad keys are no overflow; input and output together are", isExcused, disagrees},
	{"D2", "getContextOverflowProvider", "rate limits, quotas and bad keys are no overflow; input and output together are", isExcused, disagrees},
	{"D2", "parseProviderOverflowDetails", "what is recognised as another failure has no counts of a window", isOtherFailure, statesNothing},
	{"D1", "isContextOverflowError", "texts of today's providers, and a code without a message, are overflows too", always, speaksOfLength},
	{"D1", "getContextOverflowProvider", "the provider that writes these words today is named", always, speaksOfLength},
	{"D3", "parseProviderOverflowDetails", "a count has digits", lacksDigits, countsHaveDigits},
	{"D3", "parseProviderOverflowDetails", "a limit below 64 tokens is no window, and a number beyond 2^40 no count", statesOddLimit, statesNothing},
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
func longestName(c *vectorCase) (name string, tokens measure.Tokens) {
	in := c.input()
	for n, t := range c.manner.Windows()[strings.ToLower(in.Provider)] {
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

// renamed is the case with its provider under another name.
func (c *vectorCase) renamed(name func(provider string) string) *vectorCase {
	var in map[string]any
	c.into(&in)
	for _, object := range []any{in, in["config"], in["params"]} {
		if m, ok := object.(map[string]any); ok {
			if provider, ok := m["provider"].(string); ok {
				m["provider"] = name(provider)
			}
		}
	}
	raw, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	out := *c
	out.Input = raw
	return &out
}

// unknownProvider has no multiplier and no table.
func unknownProvider(string) string { return "unknown" }

// isNamesake: a provider that the reference does not know by the name it has here, and the
// record is what an unknown provider has.
func isNamesake(c *vectorCase, want, _ any) bool {
	known := true
	stranger := c.renamed(func(provider string) string {
		known = provider == "" || c.manner.Windows()[strings.ToLower(provider)] != nil
		return unknownProvider(provider)
	})
	return !known && mismatch(want, plain(answers[c.function](stranger))) == ""
}

// isAnswerOfNamesake: what the provider has under the name by which both know it.
func isAnswerOfNamesake(c *vectorCase, _, got any) string {
	return mismatch(plain(answers[c.function](c.renamed(measure.Provider))), got)
}

// statesMore: a number of tokens was stated for the trigger that is above the available
// input of the model.
func statesMore(c *vectorCase, want, _ any) bool {
	in := c.input()
	return at(want, "tokens").(float64) > float64(in.available(c.manner)) && at(want, "tokens") == float64(max(in.SessionOverride, in.EnvOverride))
}

func isAvailable(c *vectorCase, _, got any) string {
	in := c.input()
	if available := in.available(c.manner); at(got, "tokens") != float64(available) {
		return fmt.Sprintf("%v tokens of %d available", at(got, "tokens"), available)
	}
	return ""
}

// keepsOnlySmall: the same plan, but for files that their summaries would not make smaller.
func keepsOnlySmall(c *vectorCase, want, got any) string {
	sizes := map[any]any{}
	var in struct{ Files []map[string]any }
	c.into(&in)
	for _, f := range in.Files {
		sizes[f["fileName"]] = f["estimatedTokens"]
	}
	recorded, _ := at(want, "plan").([]any)
	ours, _ := at(got, "plan").([]any)
	if len(ours) != len(recorded) {
		return fmt.Sprintf("%d files of %d", len(ours), len(recorded))
	}
	for i, r := range recorded {
		target, summarized := at(r, "targetTokens").(float64)
		if summarized && at(ours[i], "action") == "keep" && sizes[at(r, "fileName")].(float64) <= target {
			continue
		}
		if bad := mismatch(r, ours[i]); bad != "" {
			return bad
		}
	}
	return ""
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
	return at(parsed(m), "role") == "tool_result" && len(text) <= len(measure.ClearText)
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

// lacksBlanks: the same messages as in the record, but for blank ones.
func lacksBlanks(_ *vectorCase, want, got any) bool {
	record, ours := listed(want), listed(got)
	return slices.ContainsFunc(record, isBlank) &&
		mismatch(slices.DeleteFunc(slices.Clone(record), isBlank), slices.DeleteFunc(slices.Clone(ours), isBlank)) == ""
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
