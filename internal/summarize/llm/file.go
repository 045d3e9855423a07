package llm

import (
	"context"
	_ "embed"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/snippet"
)

//go:embed prompt_file_system.md
var fileSystemPrompt string

//go:embed prompt_file_task.md
var fileTaskPrompt string

// FilePromptVersion is the version of the instructions for files, with a hash of their
// text.
var FilePromptVersion = "file-1-" + hash(fileSystemPrompt, fileTaskPrompt)[:12]

const (
	// leastFileRoom is the least room for which a model is called for a file, in units.
	leastFileRoom = 400
	// leastFileWords is the least length that a prompt requests.
	leastFileWords = 50
)

// SummarizeFile returns a summary of the first model whose answer is usable, else the
// outline of the embedded summarizer.
func (n *Summarizer) SummarizeFile(ctx context.Context, f summarize.File) (*summarize.FileSummary, error) {
	f, err := summarize.SanitizeFile(ctx, f)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(f.Text) == "" {
		return nil, summarize.ErrNothing
	}
	models := n.models
	if f.MaxUnits < leastFileRoom {
		models = nil
	}
	var s *summarize.FileSummary
	spent, wrote, err := try(ctx, models, f.Writer, f.OnAttempt, func(m model.Model) (usage events.SummaryUsage, err error) {
		s, usage, err = completeFile(ctx, m, f)
		return usage, err
	})
	if err == nil && !wrote {
		s, err = extract.Outline(ctx, f)
	}
	if err != nil {
		return nil, err
	}
	s.Usage = spent
	return s, nil
}

// completeFile lets one model write, with a shorter file after each refusal as too long.
func completeFile(ctx context.Context, m model.Model, f summarize.File) (*summarize.FileSummary, events.SummaryUsage, error) {
	room, output := bounds(m)
	budget := room - tokens(fileSystemPrompt+filePrompt(f, "", output))
	if budget <= 0 {
		return nil, events.SummaryUsage{}, errSmall
	}
	shorter := func() bool { budget -= budget * dropPercent / 100; return true }
	r, prompt, spent, err := ask(ctx, m, model.Request{Tenant: f.Tenant, System: fileSystemPrompt, MaxOutputTokens: output}, func() string { return filePrompt(f, cutTokens(f.Text, budget), output) }, shorter)
	if err != nil {
		return nil, spent, err
	}
	text, err := acceptFile(&r, f, prompt)
	if err != nil {
		return nil, spent, err
	}
	return &summarize.FileSummary{Text: text, Model: m.Name(), Prompt: FilePromptVersion}, spent, nil
}

// cutTokens cuts the middle of a text that has more tokens than the budget.
func cutTokens(text string, budget int64) string {
	have := tokens(text)
	if have <= budget {
		return text
	}
	return snippet.CutMiddle(text, int(int64(len(text))*budget/have))
}

func filePrompt(f summarize.File, text string, output int64) string {
	name := strings.TrimSpace(f.Name + " " + f.Type)
	words := min(max(leastFileWords, int(f.MaxUnits)/unitsPerWord), int(output*answerPercent/100))
	return fenced(fileSystemPrompt, fileTaskPrompt, words, []block{
		{"name", name, indentedOrNone(snippet.Clip(name, focusUnits))},
		{"file", text, indentedOrNone(stripped(text))},
		{"focus", f.Focus, indentedOrNone(snippet.Clip(f.Focus, focusUnits))},
	})
}

// acceptFile makes a summary of the answer of a model, or returns why the answer is
// unusable. Names and links that the file does not have are replaced, and no line has
// the form of a message, a call or a tag.
func acceptFile(r *model.Reply, f summarize.File, prompt string) (string, error) {
	if err := checkFinish(r); err != nil {
		return "", err
	}
	text := snippet.WithoutData(snippet.StripInvisible(r.Text))
	if i := strings.LastIndex(text, "<summary>"); i >= 0 {
		text = text[i+len("<summary>"):]
	} else if strings.Contains(text, "<analysis>") {
		return "", &Unusable{ReasonForm}
	}
	text, _, _ = strings.Cut(text, "</summary>")
	from, left := newSource(prompt), int(f.MaxUnits)
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line = snippet.Neutral(from.grounded(from.verified(line))); line == "" {
			continue
		}
		if left -= codec.Units(line) + 1; left < 0 {
			break // far more than was requested: its beginning counts
		}
		b.WriteString(line + "\n")
	}
	out := sanitize.Redact(strings.TrimSpace(b.String()))
	switch {
	case out == "":
		return "", &Unusable{ReasonEmpty}
	case codec.Units(out) >= codec.Units(f.Text):
		return "", &Unusable{ReasonNotSmaller}
	}
	return out, nil
}
