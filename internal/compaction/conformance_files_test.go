package compaction_test

import (
	"fmt"
	"maps"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/testkit/tags"
)

func init() {
	maps.Copy(answers, map[string]func(*vectorCase) any{
		"truncateToolOutput":           answerOutput,
		"generateToolOutputPreview":    answerPreview,
		"calculateFileTokenBudget":     answerFileBudget,
		"shouldTruncateFile":           answerFileRead,
		"estimatePostProcessingTokens": answerFileTokens,
		"enforceAggregateFileBudget":   answerFiles,
		"shouldSummarizeFiles":         answerNeedSummaries,
		"planFileSummarization":        answerSummaries,
		"getEffectiveHistory":          answerEffective,
		"tagForCondensation":           answerHide(tags.Condensed),
		"tagForTruncation":             answerHide(tags.Truncated),
		"removeCondensationTags":       answerShow(tags.Condensed),
		"removeTruncationTags":         answerShow(tags.Truncated),
	})
}

type outputInput struct {
	Output  string
	Options struct {
		MaxBytes, MaxLines   *int64
		HeadRatio, TailRatio *float64
		Direction            measure.Direction
	}
}

func (c *vectorCase) output() (in outputInput, l measure.OutputLimits) {
	c.into(&in)
	l = measure.DefaultOutputLimits()
	l.MaxBytes, l.MaxLines = or(in.Options.MaxBytes, l.MaxBytes), or(in.Options.MaxLines, l.MaxLines)
	l.Keep = in.Options.Direction
	return in, l
}

func answerOutput(c *vectorCase) any {
	in, l := c.output()
	text, cut := measure.LimitOutput(in.Output, l)
	return fields{"content": text, "truncated": cut, "originalSize": len(in.Output)}
}

func answerPreview(c *vectorCase) any {
	in, l := c.output()
	l.Keep, l.Whole = measure.KeepBoth, "Use retrieve_context tool to access full output"
	if r := in.Options.HeadRatio; r != nil {
		l.HeadShare = measure.PPM(min(max(*r, 0), 1)*1e6 + 0.5)
	}
	text, cut := measure.LimitOutput(in.Output, l)
	return fields{"preview": text, "truncated": cut, "originalSize": len(in.Output)}
}

func answerFileBudget(c *vectorCase) any {
	var in struct{ ContextWindow, CurrentTokens, MaxOutputTokens measure.Tokens }
	c.into(&in)
	l := measure.DefaultFileLimits()
	return fields{"tokens": l.Share.Share(max(in.ContextWindow-in.CurrentTokens-in.MaxOutputTokens, 0))}
}

func answerFileRead(c *vectorCase) any {
	var in struct {
		FileSize int64
		Budget   measure.Tokens
	}
	c.into(&in)
	l := measure.DefaultFileLimits()
	r := l.Read(in.FileSize, in.Budget)
	if !r.Cut {
		return fields{"shouldTruncate": false}
	}
	return fields{"shouldTruncate": true, "maxChars": r.Units, "previewMode": r.Preview}
}

func answerFileTokens(c *vectorCase) any {
	var in recordedFile
	c.into(&in)
	return fields{"tokens": measure.FileTokens(in.FileType, in.SizeBytes)}
}

// recordedFile is a file of which the record has no content.
type recordedFile struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	FileType  string `json:"fileType,omitempty"`
}

func answerFiles(c *vectorCase) any {
	var in struct {
		Files           []recordedFile
		AvailableTokens measure.Tokens
	}
	c.into(&in)
	var files []measure.File
	for _, f := range in.Files {
		files = append(files, measure.File{Name: f.Name, Kind: f.FileType, Bytes: f.SizeBytes})
	}
	l := measure.DefaultFileLimits()
	included, excluded, notices := []recordedFile{}, []recordedFile{}, []string{}
	bySize, fits := l.Choose(files, in.AvailableTokens)
	for k, i := range bySize {
		if fits[k] {
			included = append(included, in.Files[i])
		} else {
			excluded, notices = append(excluded, in.Files[i]), append(notices, files[i].Notice())
		}
	}
	return fields{"included": included, "excluded": excluded, "notices": notices}
}

// filesInput is what the plan for summarizing files takes.
type filesInput struct {
	Provider, Model                                                                          string
	MaxTokens                                                                                measure.Tokens
	SystemPromptTokens, ConversationHistoryTokens, CurrentPromptTokens, ToolDefinitionTokens measure.Tokens
	FileTokens                                                                               measure.Tokens
	FileCount                                                                                int
	Threshold                                                                                *float64
	MinTokensPerFile, MaxTokensPerFile                                                       *measure.Tokens
}

func (in *filesInput) ask(m *manner) (l measure.FileLimits, p measure.Prompt, available measure.Tokens, trigger measure.PPM) {
	l = measure.DefaultFileLimits()
	l.MinSummary, l.MaxSummary = or(in.MinTokensPerFile, l.MinSummary), or(in.MaxTokensPerFile, l.MaxSummary)
	p = measure.Prompt{
		System: in.SystemPromptTokens, History: in.ConversationHistoryTokens, Current: in.CurrentPromptTokens,
		Tools: in.ToolDefinitionTokens, Files: in.FileTokens,
	}
	model := input{Provider: in.Provider, Model: in.Model, MaxTokens: in.MaxTokens}
	return l, p, model.available(m), measure.PPM(or(in.Threshold, 0.8)*1e6 + 0.5)
}

func answerNeedSummaries(c *vectorCase) any {
	var in filesInput
	c.into(&in)
	l, p, available, trigger := in.ask(c.manner)
	room := l.Available(p, available)
	out := fields{
		"needsSummarization": needSummaries(p, available, trigger), "totalEstimatedTokens": p.Total(),
		"availableInputTokens": available, "availableBudgetForFiles": room,
	}
	if needSummaries(p, available, trigger) {
		out["perFileBudget"] = l.SummaryTokens(room, in.FileCount)
	}
	return out
}

// needSummaries reports a prompt that takes more than the share trigger of the available input.
func needSummaries(p measure.Prompt, available measure.Tokens, trigger measure.PPM) bool {
	return int64(p.Total())*measure.Million > int64(available)*int64(trigger)
}

func answerSummaries(c *vectorCase) any {
	var in struct {
		Files []struct {
			FileName        string
			EstimatedTokens measure.Tokens
		}
		Params filesInput
	}
	c.into(&in)
	l, p, available, trigger := in.Params.ask(c.manner)
	var sizes []measure.Tokens
	for _, f := range in.Files {
		sizes = append(sizes, f.EstimatedTokens)
	}
	plan := []fields{}
	if !needSummaries(p, available, trigger) { // all stay, in their order
		for _, f := range in.Files {
			plan = append(plan, fields{"fileName": f.FileName, "action": "keep"})
		}
		return fields{"plan": plan}
	}
	for _, s := range l.Summaries(sizes, l.Available(p, available)) {
		step := fields{"fileName": in.Files[s.File].FileName, "action": "keep"}
		if s.Target > 0 {
			step["action"], step["targetTokens"] = "summarize", s.Target
		}
		plan = append(plan, step)
	}
	return fields{"plan": plan}
}

// statesFileCount: for another number of files than there are.
func statesFileCount(c *vectorCase, _, _ any) bool {
	var in struct {
		Files  []any
		Params filesInput
	}
	c.into(&in)
	return in.Params.FileCount > 0 && in.Params.FileCount != len(in.Files)
}

// sharesByStated: the recorded targets are shares by the stated number, and ours by that of the
// files; the files are the same.
func sharesByStated(c *vectorCase, want, got any) string {
	var in struct {
		Files  []any
		Params filesInput
	}
	c.into(&in)
	l, p, available, _ := in.Params.ask(c.manner)
	stated, ours := l.SummaryTokens(l.Available(p, available), in.Params.FileCount), l.SummaryTokens(l.Available(p, available), len(in.Files))
	for _, side := range []struct {
		plan   any
		target measure.Tokens
	}{{want, stated}, {got, ours}} {
		steps, _ := at(side.plan, "plan").([]any)
		if len(steps) != len(in.Files) {
			return fmt.Sprintf("%d files of %d", len(steps), len(in.Files))
		}
		for _, step := range steps {
			if t, ok := at(step, "targetTokens").(float64); ok && t != float64(side.target) {
				return fmt.Sprintf("a target of %v, want %d", t, side.target)
			}
		}
	}
	return ""
}

// tagInput is what the functions on tags take.
type tagInput struct {
	Messages           []events.Raw
	FromIndex, ToIndex int
	ID                 string
}

func answerEffective(c *vectorCase) any {
	var in tagInput
	c.into(&in)
	return fields{"messages": asJSON(tags.Effective(in.Messages))}
}

func answerHide(tag tags.Tag) func(*vectorCase) any {
	return func(c *vectorCase) any {
		var in tagInput
		c.into(&in)
		return fields{"messages": asJSON(tag.Hide(in.Messages, in.FromIndex, in.ToIndex, in.ID))}
	}
}

func answerShow(tag tags.Tag) func(*vectorCase) any {
	return func(c *vectorCase) any {
		var in tagInput
		c.into(&in)
		return fields{"messages": asJSON(tag.Show(in.Messages, in.ID))}
	}
}
