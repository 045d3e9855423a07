package compaction_test

import (
	"bytes"
	"encoding/json"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// manner is how one release of the reference system behaves, as far as data say so
// (row A1): a profile with its customs.
type manner struct {
	release, profile string
	windows          measure.Table
	measure.Custom
}

func newManner(release, profile string) *manner {
	c := measure.CustomOf(profile)
	return &manner{release, profile, c.Windows().Table(), c}
}

var (
	mannerOfSeed    = newManner("v9.5.3", "seed")
	mannerOfCurrent = newManner("v9.80.2", "current")
	mannerOfDefault = newManner("default", "default")
)

func (m *manner) rate(provider string) measure.Rate {
	return measure.NewRate(measure.Profiles[m.profile], provider)
}

// fields is an answer, in the words of the record.
type fields map[string]any

// answers gives the product what the reference system was given. An answer only
// translates: its content comes from the product.
var answers = map[string]func(*vectorCase) any{
	"estimateTokens":             answerEstimate,
	"estimateMessagesTokens":     answerEstimateMessages,
	"truncateToTokenBudget":      answerCut,
	"getContextWindowSize":       answerWindow,
	"getAvailableInputTokens":    answerAvailable,
	"getOutputReserve":           answerReserve,
	"getEffectiveTokenThreshold": answerThreshold,
	"checkContextBudget":         answerBudget,
}

// withoutRow are functions of the reference that no row of the features requires.
var withoutRow = []string{"TokenUtils.estimateTokenCount", "TokenUtils.truncateToTokenLimit", "buildContextFromPointer"}

// input is what the functions of the estimator and the budget take.
type input struct {
	Text, Provider, Model string
	IsCode                bool
	MaxTokens             measure.Tokens
	ContextWindow         measure.Tokens

	Messages             []events.Raw
	ConversationMessages []events.Raw
	SystemPrompt         string
	CurrentPrompt        string
	ToolDefinitions      []json.RawMessage
	FileAttachments      []struct{ Content string }
	CompactionThreshold  *float64
	EnvOverride          measure.Tokens
	SessionOverride      measure.Tokens
}

func (c *vectorCase) input() (in input) {
	c.into(&in)
	return in
}

func (c *vectorCase) into(v any) {
	if err := json.Unmarshal(c.Input, v); err != nil {
		panic(err)
	}
}

func size(text string) int64 { return int64(events.Units(text)) }

func answerEstimate(c *vectorCase) any {
	in := c.input()
	r := c.manner.rate(in.Provider)
	if in.IsCode {
		r.TextUnits = 3 // row A1
	}
	return fields{"tokens": r.Text(size(in.Text))}
}

func answerEstimateMessages(c *vectorCase) any {
	in := c.input()
	return fields{"tokens": history(in.Messages, c.manner.rate(in.Provider))}
}

// history estimates messages, framing included; without any there is no framing.
func history(messages []events.Raw, r measure.Rate) measure.Tokens {
	if len(messages) == 0 {
		return 0
	}
	return r.PerConversation + compaction.NewDraft(entriesOf(messages), events.NeuroLink, r).Tokens()
}

// read returns messages of a record as the product reads them.
func read(messages []events.Raw) []events.Message {
	out, err := events.NeuroLink.ReadAll(messages)
	if err != nil {
		panic(err)
	}
	return out
}

// entriesOf measures messages of a record, as one turn.
func entriesOf(messages []events.Raw) []measure.Entry {
	var out []measure.Entry
	for i, m := range read(messages) {
		out = append(out, measure.Measure(m, measure.Entry{Seq: 1, Turn: 1, Index: uint32(i)})...)
	}
	return out
}

func answerCut(c *vectorCase) any {
	in := c.input()
	text, cut := measure.CutUnits(in.Text, c.manner.rate(in.Provider).Prose(in.MaxTokens))
	return fields{"text": text, "truncated": cut}
}

func answerWindow(c *vectorCase) any {
	in := c.input()
	return fields{"tokens": c.manner.windows.Window(in.Provider, in.Model)}
}

func answerReserve(c *vectorCase) any {
	in := c.input()
	return fields{"tokens": measure.OutputReserve(in.ContextWindow, in.MaxTokens)}
}

// available is the window of a model less its output reserve.
func (in *input) available(m *manner) measure.Tokens {
	window := m.windows.Window(in.Provider, in.Model)
	return window - measure.OutputReserve(window, in.MaxTokens)
}

func answerAvailable(c *vectorCase) any {
	in := c.input()
	return fields{"tokens": in.available(c.manner)}
}

// answerThreshold computes where compaction is triggered. A number of tokens overrides
// the ratio: the session's before the environment's.
func answerThreshold(c *vectorCase) any {
	in := c.input()
	p := policy.Default()
	if in.EnvOverride > 0 {
		p.TriggerMode, p.ThresholdTokens = "tokens", in.EnvOverride
	}
	if in.SessionOverride > 0 {
		p.TriggerMode, p.ThresholdTokens = "tokens", in.SessionOverride
	}
	window := c.manner.windows.Window(in.Provider, in.Model)
	return fields{"tokens": p.Thresholds(window, measure.OutputReserve(window, 0), 0).Trigger}
}

func answerBudget(c *vectorCase) any {
	in := c.input()
	r := c.manner.rate(in.Provider)
	var p measure.Prompt
	p.History = history(in.ConversationMessages, r)
	if in.SystemPrompt != "" {
		p.System = r.Text(size(in.SystemPrompt)) + r.PerMessage
	}
	if in.CurrentPrompt != "" {
		p.Current = r.Text(size(in.CurrentPrompt)) + r.PerMessage
	}
	for _, tool := range in.ToolDefinitions {
		p.Tools += c.manner.tool(r, tool)
	}
	for _, f := range in.FileAttachments {
		p.Files += r.Text(size(f.Content))
	}
	own := withoutSummaries()
	if in.CompactionThreshold != nil {
		own.Threshold = measure.PPM(*in.CompactionThreshold*1e6 + 0.5)
	}
	window := c.manner.windows.Window(in.Provider, in.Model)
	b := checkBudget(p, window, measure.OutputReserve(window, in.MaxTokens), &own)
	return fields{
		"withinBudget": b.WithinBudget, "shouldCompact": b.ShouldCompact, "usageRatio": float64(b.UsagePPM) / 1e6,
		"estimatedInputTokens": b.EstimatedInput, "availableInputTokens": b.AvailableInput,
		"breakdown": fields{
			"systemPrompt": b.Breakdown.SystemPrompt, "conversationHistory": b.Breakdown.History, "currentPrompt": b.Breakdown.CurrentPrompt,
			"toolDefinitions": b.Breakdown.ToolDefinitions, "fileAttachments": b.Breakdown.FileAttachments,
		},
	}
}

// tool estimates the definition of a tool.
func (m *manner) tool(r measure.Rate, definition json.RawMessage) measure.Tokens {
	var b bytes.Buffer
	if err := json.Compact(&b, definition); err != nil {
		panic(err)
	}
	return m.Tools(r, size(b.String()))
}
