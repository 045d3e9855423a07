package measure_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"compactd/internal/compaction/measure"
	"compactd/internal/testkit/reference"
)

type outputInput struct {
	Output  string
	Options struct {
		MaxBytes, MaxLines   *int64
		HeadRatio, TailRatio *float64
		Direction            measure.Direction
	}
}

func outputOf(c *reference.Case) (in outputInput, l measure.OutputLimits) {
	c.Into(&in)
	l = measure.DefaultOutputLimits()
	l.MaxBytes, l.MaxLines = reference.Or(in.Options.MaxBytes, l.MaxBytes), reference.Or(in.Options.MaxLines, l.MaxLines)
	l.Keep = in.Options.Direction
	return in, l
}

func answerOutput(c *reference.Case) any {
	in, l := outputOf(c)
	text, cut := measure.LimitOutput(in.Output, l)
	return reference.Fields{"content": text, "truncated": cut, "originalSize": len(in.Output)}
}

func answerPreview(c *reference.Case) any {
	in, l := outputOf(c)
	l.Keep, l.Whole = measure.KeepBoth, "Use retrieve_context tool to access full output"
	if r := in.Options.HeadRatio; r != nil {
		l.HeadShare = measure.PPM(min(max(*r, 0), 1)*1e6 + 0.5)
	}
	text, cut := measure.LimitOutput(in.Output, l)
	return reference.Fields{"preview": text, "truncated": cut, "originalSize": len(in.Output)}
}

// outputIsSound: one or both ends of the output, whole runes, within both limits.
func outputIsSound(c *reference.Case, _, got any) string {
	in, l := outputOf(c)
	text, _ := reference.At(got, "content").(string)
	if preview, ok := reference.At(got, "preview").(string); ok {
		text = preview
	}
	before, rest, ok := strings.Cut(text, "\n\n[")
	_, after, closed := strings.Cut(rest, "]\n")
	if !closed {
		after = ""
	}
	after = strings.TrimPrefix(after, "\n")
	switch lines := int64(strings.Count(before, "\n") + strings.Count(after, "\n")); {
	case !ok:
		return "there is no notice"
	case int64(len(before)+len(after)) > l.MaxBytes:
		return fmt.Sprintf("%d bytes of %d", len(before)+len(after), l.MaxBytes)
	case lines >= max(l.MaxLines, 1):
		return fmt.Sprintf("%d lines of %d", lines+1, l.MaxLines)
	case !utf8.ValidString(text):
		return "a rune is broken"
	case !strings.HasPrefix(in.Output, before) || !strings.HasSuffix(in.Output, after):
		return "what is kept is no end of the output"
	}
	return ""
}

func answerFileBudget(c *reference.Case) any {
	var in struct{ ContextWindow, CurrentTokens, MaxOutputTokens measure.Tokens }
	c.Into(&in)
	l := measure.DefaultFileLimits()
	return reference.Fields{"tokens": l.Share.Share(max(in.ContextWindow-in.CurrentTokens-in.MaxOutputTokens, 0))}
}

func answerFileRead(c *reference.Case) any {
	var in struct {
		FileSize int64
		Budget   measure.Tokens
	}
	c.Into(&in)
	l := measure.DefaultFileLimits()
	r := l.Read(in.FileSize, in.Budget)
	if !r.Cut {
		return reference.Fields{"shouldTruncate": false}
	}
	return reference.Fields{"shouldTruncate": true, "maxChars": r.Units, "previewMode": r.Preview}
}

func answerFileTokens(c *reference.Case) any {
	var in recordedFile
	c.Into(&in)
	return reference.Fields{"tokens": measure.FileTokens(in.FileType, in.SizeBytes)}
}

// recordedFile is a file of which the record has no content.
type recordedFile struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	FileType  string `json:"fileType,omitempty"`
}

func answerFiles(c *reference.Case) any {
	var in struct {
		Files           []recordedFile
		AvailableTokens measure.Tokens
	}
	c.Into(&in)
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
	return reference.Fields{"included": included, "excluded": excluded, "notices": notices}
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

func (in *filesInput) ask(r *reference.Release) (l measure.FileLimits, p measure.Prompt, available measure.Tokens, trigger measure.PPM) {
	l = measure.DefaultFileLimits()
	l.MinSummary, l.MaxSummary = reference.Or(in.MinTokensPerFile, l.MinSummary), reference.Or(in.MaxTokensPerFile, l.MaxSummary)
	p = measure.Prompt{
		System: in.SystemPromptTokens, History: in.ConversationHistoryTokens, Current: in.CurrentPromptTokens,
		Tools: in.ToolDefinitionTokens, Files: in.FileTokens,
	}
	return l, p, r.Available(in.Provider, in.Model, in.MaxTokens), measure.PPM(reference.Or(in.Threshold, 0.8)*1e6 + 0.5)
}

func answerNeedSummaries(c *reference.Case) any {
	var in filesInput
	c.Into(&in)
	l, p, available, trigger := in.ask(c.Release)
	room := l.Available(p, available)
	out := reference.Fields{
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

func answerSummaries(c *reference.Case) any {
	var in struct {
		Files []struct {
			FileName        string
			EstimatedTokens measure.Tokens
		}
		Params filesInput
	}
	c.Into(&in)
	l, p, available, trigger := in.Params.ask(c.Release)
	var sizes []measure.Tokens
	for _, f := range in.Files {
		sizes = append(sizes, f.EstimatedTokens)
	}
	plan := []reference.Fields{}
	if !needSummaries(p, available, trigger) { // all stay, in their order
		for _, f := range in.Files {
			plan = append(plan, reference.Fields{"fileName": f.FileName, "action": "keep"})
		}
		return reference.Fields{"plan": plan}
	}
	for _, s := range l.Summaries(sizes, l.Available(p, available)) {
		step := reference.Fields{"fileName": in.Files[s.File].FileName, "action": "keep"}
		if s.Target > 0 {
			step["action"], step["targetTokens"] = "summarize", s.Target
		}
		plan = append(plan, step)
	}
	return reference.Fields{"plan": plan}
}

// statesFileCount: for another number of files than there are.
func statesFileCount(c *reference.Case, _, _ any) bool {
	var in struct {
		Files  []any
		Params filesInput
	}
	c.Into(&in)
	return in.Params.FileCount > 0 && in.Params.FileCount != len(in.Files)
}

// sharesByStated: the recorded targets are shares by the stated number, and ours by that of the
// files; the files are the same.
func sharesByStated(c *reference.Case, want, got any) string {
	var in struct {
		Files  []any
		Params filesInput
	}
	c.Into(&in)
	l, p, available, _ := in.Params.ask(c.Release)
	stated, ours := l.SummaryTokens(l.Available(p, available), in.Params.FileCount), l.SummaryTokens(l.Available(p, available), len(in.Files))
	for _, side := range []struct {
		plan   any
		target measure.Tokens
	}{{want, stated}, {got, ours}} {
		steps, _ := reference.At(side.plan, "plan").([]any)
		if len(steps) != len(in.Files) {
			return fmt.Sprintf("%d files of %d", len(steps), len(in.Files))
		}
		for _, step := range steps {
			if t, ok := reference.At(step, "targetTokens").(float64); ok && t != float64(side.target) {
				return fmt.Sprintf("a target of %v, want %d", t, side.target)
			}
		}
	}
	return ""
}

// keepsOnlySmall: the same plan, but for files that their summaries would not make smaller.
func keepsOnlySmall(c *reference.Case, want, got any) string {
	sizes := map[any]any{}
	var in struct{ Files []map[string]any }
	c.Into(&in)
	for _, f := range in.Files {
		sizes[f["fileName"]] = f["estimatedTokens"]
	}
	recorded, _ := reference.At(want, "plan").([]any)
	ours, _ := reference.At(got, "plan").([]any)
	if len(ours) != len(recorded) {
		return fmt.Sprintf("%d files of %d", len(ours), len(recorded))
	}
	for i, r := range recorded {
		target, summarized := reference.At(r, "targetTokens").(float64)
		if summarized && reference.At(ours[i], "action") == "keep" && sizes[reference.At(r, "fileName")].(float64) <= target {
			continue
		}
		if bad := reference.Mismatch(r, ours[i]); bad != "" {
			return bad
		}
	}
	return ""
}

// B15: a class of answers that no record of ours has.
func TestOtherRecords(t *testing.T) {
	file := func(name string, tokens int) any {
		return map[string]any{"fileName": name, "fileType": "Text File", "content": "", "estimatedTokens": tokens}
	}
	step := func(name string, target int) any {
		if target == 0 {
			return map[string]any{"fileName": name, "action": "keep"}
		}
		return map[string]any{"fileName": name, "action": "summarize", "targetTokens": target}
	}
	c := reference.NewCase("planFileSummarization", map[string]any{
		"files":  []any{file("a", 30_000), file("b", 20_000), file("c", 40)},
		"params": map[string]any{"provider": "ollama", "conversationHistoryTokens": 60_000, "fileTokens": 50_040, "fileCount": 6},
	}, map[string]any{"plan": []any{step("a", 1_786), step("b", 1_786), step("c", 0)}})
	if v, rule, diff := suite.Compare(c); v == reference.Failed {
		t.Errorf("%s: %s %s", c.Input, rule, diff)
	}
}
