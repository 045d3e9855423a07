package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/reference"
)

// Our answers, compared with what the reference system answered (docs/comparison.md).
func TestConformance(t *testing.T) { suite.Run(t) }

var suite = reference.Suite{
	Answers: map[string]func(*reference.Case) any{
		"getEffectiveTokenThreshold": answerThreshold,
		"checkContextBudget":         answerBudget,
	},
	Rules: []reference.Rule{
		reference.Namesakes,
		reference.NewRule("A10", "checkContextBudget", "usage of no input at all is as high as it gets, not 1", nothingAvailable, onlyUsageDiffers),
		reference.NewRule("A11", "getEffectiveTokenThreshold", "a stated trigger is never above what the model can read", statesMore, isAvailable),
		reference.NewRule("A11", "getEffectiveTokenThreshold", "the trigger is the first input that reaches its share: rounded up", reference.Always, isOneMore),
	},
}

// input is what the functions of the budget take.
type input struct {
	Provider, Model      string
	MaxTokens            measure.Tokens
	ConversationMessages []codec.Raw
	SystemPrompt         string
	CurrentPrompt        string
	ToolDefinitions      []json.RawMessage
	FileAttachments      []struct{ Content string }
	CompactionThreshold  *float64
	EnvOverride          measure.Tokens
	SessionOverride      measure.Tokens
}

func inputOf(c *reference.Case) (in input) {
	c.Into(&in)
	return in
}

// answerThreshold computes where compaction is triggered. A number of tokens overrides
// the ratio: the session's before the environment's.
func answerThreshold(c *reference.Case) any {
	in := inputOf(c)
	p := policy.Default()
	if in.EnvOverride > 0 {
		p.TriggerMode, p.ThresholdTokens = "tokens", in.EnvOverride
	}
	if in.SessionOverride > 0 {
		p.TriggerMode, p.ThresholdTokens = "tokens", in.SessionOverride
	}
	window := c.Release.Table.Window(in.Provider, in.Model)
	return reference.Fields{"tokens": p.Thresholds(window, measure.OutputReserve(window, 0), 0, window).Trigger}
}

func answerBudget(c *reference.Case) any {
	in := inputOf(c)
	r := c.Release.Rate(in.Provider)
	var p measure.Prompt
	p.History = reference.History(in.ConversationMessages, r)
	if in.SystemPrompt != "" {
		p.System = r.Text(reference.Size(in.SystemPrompt)) + r.PerMessage
	}
	if in.CurrentPrompt != "" {
		p.Current = r.Text(reference.Size(in.CurrentPrompt)) + r.PerMessage
	}
	for _, tool := range in.ToolDefinitions {
		p.Tools += toolTokens(c.Release, r, tool)
	}
	for _, f := range in.FileAttachments {
		p.Files += r.Text(reference.Size(f.Content))
	}
	own := policy.Default()
	own.Summarize.Enabled = false
	if in.CompactionThreshold != nil {
		own.Threshold = measure.PPM(*in.CompactionThreshold*1e6 + 0.5)
	}
	window := c.Release.Table.Window(in.Provider, in.Model)
	b := checkBudget(p, window, measure.OutputReserve(window, in.MaxTokens), &own)
	return reference.Fields{
		"withinBudget": b.WithinBudget, "shouldCompact": b.ShouldCompact, "usageRatio": float64(b.UsagePPM) / 1e6,
		"estimatedInputTokens": b.EstimatedInput, "availableInputTokens": b.AvailableInput,
		"breakdown": reference.Fields{
			"systemPrompt": b.Breakdown.SystemPrompt, "conversationHistory": b.Breakdown.History, "currentPrompt": b.Breakdown.CurrentPrompt,
			"toolDefinitions": b.Breakdown.ToolDefinitions, "fileAttachments": b.Breakdown.FileAttachments,
		},
	}
}

// toolTokens estimates the definition of a tool.
func toolTokens(m *reference.Release, r measure.Rate, definition json.RawMessage) measure.Tokens {
	var b bytes.Buffer
	if err := json.Compact(&b, definition); err != nil {
		panic(err)
	}
	return m.Tools(r, reference.Size(b.String()))
}

func nothingAvailable(_ *reference.Case, want, _ any) bool {
	return reference.At(want, "availableInputTokens").(float64) <= 0
}

func onlyUsageDiffers(_ *reference.Case, want, got any) string {
	if usage := reference.At(got, "usageRatio").(float64); usage < 1 {
		return fmt.Sprintf("usage is %v", usage)
	}
	same := maps.Clone(got.(map[string]any))
	same["usageRatio"] = reference.At(want, "usageRatio")
	return reference.Mismatch(want, same)
}

// statesMore: a number of tokens was stated for the trigger that is above the available
// input of the model.
func statesMore(c *reference.Case, want, _ any) bool {
	in := inputOf(c)
	return reference.At(want, "tokens").(float64) > float64(c.Release.Available(in.Provider, in.Model, in.MaxTokens)) && reference.At(want, "tokens") == float64(max(in.SessionOverride, in.EnvOverride))
}

func isAvailable(c *reference.Case, _, got any) string {
	in := inputOf(c)
	if available := c.Release.Available(in.Provider, in.Model, in.MaxTokens); reference.At(got, "tokens") != float64(available) {
		return fmt.Sprintf("%v tokens of %d available", reference.At(got, "tokens"), available)
	}
	return ""
}

func isOneMore(_ *reference.Case, want, got any) string {
	if reference.At(got, "tokens") != reference.At(want, "tokens").(float64)+1 {
		return fmt.Sprintf("%v, %v in the record", reference.At(got, "tokens"), reference.At(want, "tokens"))
	}
	return ""
}
