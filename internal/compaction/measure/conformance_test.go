package measure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/reference"
)

// Our answers, compared with what the reference system answered (docs/comparison.md).
func TestConformance(t *testing.T) { suite.Run(t) }

var suite = reference.Suite{
	Answers: map[string]func(*reference.Case) any{
		"estimateTokens":               answerEstimate,
		"estimateMessagesTokens":       answerEstimateMessages,
		"truncateToTokenBudget":        answerCut,
		"getContextWindowSize":         answerWindow,
		"getAvailableInputTokens":      answerAvailable,
		"getOutputReserve":             answerReserve,
		"truncateToolOutput":           answerOutput,
		"generateToolOutputPreview":    answerPreview,
		"calculateFileTokenBudget":     answerFileBudget,
		"shouldTruncateFile":           answerFileRead,
		"estimatePostProcessingTokens": answerFileTokens,
		"enforceAggregateFileBudget":   answerFiles,
		"shouldSummarizeFiles":         answerNeedSummaries,
		"planFileSummarization":        answerSummaries,
	},
	NotApplicable: []string{"TokenUtils.estimateTokenCount", "TokenUtils.truncateToTokenLimit", "buildContextFromPointer"},
	Rules: []reference.Rule{
		reference.Namesakes,
		reference.NewRule("A4", "estimateMessagesTokens", "content that is no text counts as JSON, two characters a token", hasBlocks, countsMore),
		reference.NewRule("A8", "getContextWindowSize", "the longest known name that begins a model's wins, not the first", longerName, isLongestName),
		reference.NewRule("A15", "truncateToTokenBudget", "the dots are counted, and runes stay whole", reference.Always, cutIsSound),
		reference.NewRule("B15", "planFileSummarization", "the budget is shared by the files that are there", statesFileCount, sharesByStated),
		reference.NewRule("B15", "planFileSummarization", "a file no larger than its summary stays", reference.Always, keepsOnlySmall),
		reference.NewRule("B14", "truncateToolOutput", "limits are exact, also 0 bytes and bytes of characters that take several", reference.Always, outputIsSound),
		reference.NewRule("B14", "generateToolOutputPreview", "limits are exact, runes whole, and the tail has what the head leaves", reference.Always, outputIsSound),
	},
}

// input is what the functions of the estimator take.
type input struct {
	Text, Provider, Model string
	IsCode                bool
	MaxTokens             measure.Tokens
	ContextWindow         measure.Tokens
	Messages              []codec.Raw
}

func inputOf(c *reference.Case) (in input) {
	c.Into(&in)
	return in
}

func answerEstimate(c *reference.Case) any {
	in := inputOf(c)
	r := c.Release.Rate(in.Provider)
	if in.IsCode {
		r.TextUnits = 3 // row A1
	}
	return reference.Fields{"tokens": r.Text(reference.Size(in.Text))}
}

func answerEstimateMessages(c *reference.Case) any {
	in := inputOf(c)
	return reference.Fields{"tokens": reference.History(in.Messages, c.Release.Rate(in.Provider))}
}

func answerCut(c *reference.Case) any {
	in := inputOf(c)
	text, cut := measure.CutUnits(in.Text, c.Release.Rate(in.Provider).Prose(in.MaxTokens))
	return reference.Fields{"text": text, "truncated": cut}
}

func answerWindow(c *reference.Case) any {
	in := inputOf(c)
	return reference.Fields{"tokens": c.Release.Table.Window(in.Provider, in.Model)}
}

func answerReserve(c *reference.Case) any {
	in := inputOf(c)
	return reference.Fields{"tokens": measure.OutputReserve(in.ContextWindow, in.MaxTokens)}
}

func answerAvailable(c *reference.Case) any {
	in := inputOf(c)
	return reference.Fields{"tokens": c.Release.Available(in.Provider, in.Model, in.MaxTokens)}
}

func hasBlocks(c *reference.Case, _, _ any) bool {
	return slices.ContainsFunc(inputOf(c).Messages, func(m codec.Raw) bool {
		_, isText := reference.At(reference.Parsed(m), "content").(string)
		return !isText
	})
}

func countsMore(_ *reference.Case, want, got any) string {
	if w, g := reference.At(want, "tokens").(float64), reference.At(got, "tokens").(float64); g <= w || g > 2*w {
		return fmt.Sprintf("%v tokens, %v in the record", g, w)
	}
	return ""
}

// longestName is the longest name in the table that begins the model's.
func longestName(c *reference.Case) (name string, tokens measure.Tokens) {
	in := inputOf(c)
	for n, t := range c.Release.Windows()[strings.ToLower(in.Provider)] {
		if strings.HasPrefix(in.Model, n) && len(n) > len(name) {
			name, tokens = n, t
		}
	}
	return name, tokens
}

func longerName(c *reference.Case, want, _ any) bool {
	name, tokens := longestName(c)
	return name != "" && float64(tokens) != reference.At(want, "tokens")
}

func isLongestName(c *reference.Case, _, got any) string {
	if name, tokens := longestName(c); float64(tokens) != reference.At(got, "tokens") {
		return fmt.Sprintf("%v tokens, %s has %d", reference.At(got, "tokens"), name, tokens)
	}
	return ""
}

// cutIsSound: a head of the text with "..." behind, whole runes, within the budget.
func cutIsSound(c *reference.Case, _, got any) string {
	in := inputOf(c)
	text := reference.At(got, "text").(string)
	head, dots := strings.CutSuffix(text, "...")
	switch cost := c.Release.Rate(in.Provider).Text(reference.Size(text)); {
	case text == in.Text:
		return "it was not cut"
	case cost > max(in.MaxTokens, 0):
		return fmt.Sprintf("it costs %d of %d tokens", cost, in.MaxTokens)
	case !utf8.ValidString(text):
		return "a rune is broken"
	case !dots && strings.Trim(text, ".") != "" || !strings.HasPrefix(in.Text, head) && strings.Trim(head, ".") != "":
		return "it is no head with dots"
	}
	return ""
}
