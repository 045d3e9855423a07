package extract

import (
	"cmp"
	"context"

	"compactd/internal/events"
	"compactd/internal/summarize"
)

// Origin of the summaries of [Extractive].
const (
	Model  = "embedded"
	Prompt = "extractive-1" // the version of the extraction
)

// Summarizer is the embedded summarizer: it picks sentences, paths, failures and
// tasks from the messages themselves, in one pass over the input.
// See docs/adr/0017.
type Summarizer struct{}

// New returns the summarizer that needs neither key nor network.
func New() Summarizer { return Summarizer{} }

// Summarize returns [ErrNothing], [ErrNoRoom], the context's error, or a summary
// that fits.
func (Summarizer) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	in, err := summarize.SanitizeInput(ctx, in)
	if err != nil {
		return nil, err
	}
	s, err := FromDigest(ScanUntil(ctx, &in), in.Limit())
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	return summarize.RedactSummary(s), nil
}

// FromDigest makes a summary of a digest for a message of at most maxMessage units.
func FromDigest(d *Digest, maxMessage int) (*events.Summary, error) {
	all := d.Sections()
	if d.Empty() || all.empty() {
		return nil, summarize.ErrNothing
	}
	record := d.Record(maxMessage)
	room := summarize.Room(int64(maxMessage), record)
	text := all.Fit(room-NoticeRoom(room), d.Focus)
	if text == "" || record == nil {
		return nil, summarize.ErrNoRoom
	}
	return &events.Summary{Text: Noticed(text, room), Record: record, Model: Model, Prompt: Prompt}, nil
}
