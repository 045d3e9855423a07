package extract

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/idents"
	"compactd/internal/summarize"
	"compactd/internal/summarize/snippet"
)

// Origin of the summaries of [Summarizer].
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

// Summarize returns [summarize.ErrNothing], [summarize.ErrNoRoom], the context's error, or a
// summary that fits.
func (Summarizer) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	in, err := summarize.SanitizeInput(ctx, in)
	if err != nil {
		return nil, err
	}
	s, err := FromDigest(ScanUntil(ctx, &in), in.Limit())
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	return summarize.RedactSummary(AddSpare(&in, s)), nil
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

// spareUnits bounds a spare line in UTF-16 units, and spareLead the bytes before its identifier if it is cut.
const (
	spareUnits = 160
	spareLead  = 60
)

// AddSpare adds the spare lines of a summary: the newest lines of its range with identifiers that the summary
// does not have, followed by those of the summary before.
func AddSpare(in *summarize.Input, s *events.Summary) *events.Summary {
	c := spareLines{has: map[string]bool{}}
	for w := range idents.In(s.Message().Parts[0].Text) {
		c.has[w] = true
	}
	for _, m := range slices.Backward(in.Messages) {
		for k, p := range slices.Backward(m.Parts) {
			c.part(events.Position{Turn: m.Turn, Index: m.Index, Part: int64(k)}, &p)
		}
	}
	if in.Previous != nil {
		for _, l := range in.Previous.Spare {
			c.line(l.Position, l.Text)
		}
	}
	s.Spare = c.out
	return s
}

// spareLines collects spare lines.
type spareLines struct {
	has map[string]bool // identifiers
	out []events.SpareLine
}

// part takes lines of a part, the last first.
func (c *spareLines) part(at events.Position, p *dialect.Part) {
	switch p.Kind {
	case dialect.PartCall:
		for _, v := range codec.Members(p.Args) {
			if text, ok := codec.Text(v); ok {
				c.text(at, text)
			}
		}
	case dialect.PartText, dialect.PartResult:
		c.text(at, p.Text)
	}
}

func (c *spareLines) text(at events.Position, text string) {
	for len(text) > 0 && len(c.out) < events.MaxSpare {
		cut := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
		c.line(at, text[cut:])
		text = text[:cut]
	}
}

// line takes a line with an identifier that no earlier one has.
func (c *spareLines) line(at events.Position, line string) {
	if len(c.out) == events.MaxSpare {
		return
	}
	for w := range idents.In(line) {
		if c.has[w] {
			continue
		}
		if from := strings.Index(line, w) - spareLead; len(line) > spareUnits && from > 0 {
			line = line[from:]
		}
		if line = snippet.ClipNeutral(line, spareUnits); strings.Contains(line, w) {
			for w := range idents.In(line) {
				c.has[w] = true
			}
			c.out = append(c.out, events.SpareLine{Position: at, Text: line})
		}
		return
	}
}
