package summarize

import (
	"cmp"
	"context"

	"compactd/internal/events"
	"compactd/internal/summarize/sanitize"
)

// File is a file that is summarized before it enters a history (B15).
type File struct {
	Name, Type, Text string
	// MaxUnits bounds the summary, in UTF-16 units.
	MaxUnits int64
	Focus    string // as in [Input]
	Writer
	// Tenant and OnAttempt are as in [Input].
	Tenant    string
	OnAttempt func(Attempt)
}

// FileSummary is a text in place of a file.
type FileSummary struct {
	Text   string
	Model  string // what wrote it
	Prompt string // the version of the instructions
	Usage  events.SummaryUsage
}

// FileSummarizer summarizes files.
type FileSummarizer interface {
	// SummarizeFile returns [ErrNothing], [ErrNoRoom], [ErrTooMuch], the context's error,
	// or a summary that fits.
	SummarizeFile(ctx context.Context, f File) (*FileSummary, error)
}

// SanitizeFile returns a file in the form for summarizers; see [SanitizeInput].
func SanitizeFile(ctx context.Context, f File) (File, error) {
	c := &inputSanitizer{ctx: ctx, redactor: sanitize.Redactor{Work: jobWork}}
	f.Name, f.Type = c.sanitizeText(f.Name), c.sanitizeText(f.Type)
	f.Text, f.Focus = c.sanitizeText(f.Text), c.sanitizeText(f.Focus)
	return f, cmp.Or(c.err, ctx.Err())
}
