package summarize

import (
	"context"
	"errors"
	"time"

	"compactd/internal/events"
	"compactd/internal/summarize/sanitize"
)

// Errors of summarizers.
var (
	// ErrNothing: the range holds neither text nor tool calls that a summary could tell of.
	ErrNothing = errors.New("nothing to summarize")
	// ErrNoRoom: MaxUnits does not hold the frame of a summary and one line.
	ErrNoRoom = errors.New("no room for a summary")
	// ErrTooMuch: the texts of the range take more work to redact than a job may have.
	ErrTooMuch = sanitize.ErrBudget
)

// Message is one message of a range, with its place in the session.
type Message struct {
	Turn, Index int64
	events.Message
}

// Input is what a summarizer reads: the messages of a range, oldest first, and
// the summary that covers what came before.
type Input struct {
	Format   events.Format
	Messages []Message
	Previous *events.Summary // nil for none
	// MaxUnits bounds the whole message, [events.Summary.Message], in UTF-16
	// units. More than 200,000 count as 200,000, so that a summary fits into its
	// event.
	MaxUnits int64
	// Focus is what the user asked to keep in mind: lines that share a word with
	// it are kept before others of their section.
	Focus string
	// Patience is how long the caller can wait for a model that is busy or away:
	// then there may be a [*Later]. With 0 there is a summary at once, by whoever
	// can make one.
	Patience time.Duration
	// Tenant is on whose account models are asked; "" is nobody's.
	Tenant string
	// Attempted is told of each model that is asked, from the goroutine of
	// Summarize; nil for nobody.
	Attempted func(Attempt)
}

// maxUnits keeps an encoded summary under [events.MaxSummaryBytes]: 3 bytes a
// unit, twice where every character is escaped, and the members of record lines.
const maxUnits = 200_000

func (in *Input) max() int { return int(min(max(in.MaxUnits, 0), maxUnits)) }

// Summarizer makes a summary of a range. Job and Header are the caller's to fill.
type Summarizer interface {
	Summarize(ctx context.Context, in Input) (*events.Summary, error)
}

// What summaries of [Extractive] say about their origin.
const (
	Model  = "embedded"
	Prompt = "extractive-1" // the version of what is extracted
)

// Extractive is the embedded summarizer: it picks sentences, paths, failures and
// tasks from the messages themselves, in one pass over the input.
type Extractive struct{}

// Embedded returns the summarizer that needs neither key nor network.
func Embedded() Extractive { return Extractive{} }

// Summarize returns [ErrNothing], [ErrNoRoom], the context's error, or a summary
// that fits.
func (Extractive) Summarize(ctx context.Context, in Input) (*events.Summary, error) {
	in, err := legible(ctx, in)
	if err != nil {
		return nil, err
	}
	s, err := extract(scan(&in), in.max())
	if err != nil {
		return nil, err
	}
	return sealed(s), nil
}

// extract makes a summary of a digest for a message of at most maxMessage units.
func extract(d *digest, maxMessage int) (*events.Summary, error) {
	all := d.sections()
	if d.empty() || all.empty() {
		return nil, ErrNothing
	}
	record := d.record(maxMessage)
	text := all.fit(Room(int64(maxMessage), record), d.focus)
	if text == "" {
		record = nil
		text = all.fit(Room(int64(maxMessage), nil), d.focus)
	}
	if text == "" {
		return nil, ErrNoRoom
	}
	return &events.Summary{Text: text, Record: record, Model: Model, Prompt: Prompt}, nil
}

// Record returns the facts of a range, merged with those of the previous
// summary, without secrets. It needs no model and takes at most half of MaxUnits,
// less where that would leave the text no room, and never more than about 2,500
// tokens, 4,000 where it continues another.
func Record(in Input) []events.RecordLine {
	in, err := legible(context.Background(), in)
	if err != nil {
		return nil // the context never ends
	}
	return sealed(&events.Summary{Record: scan(&in).record(in.max())}).Record
}

// Room returns how many UTF-16 units a text may have beside a record, 0 for none.
// A text that holds the tags of a summary costs 3 more for each: they are escaped.
func Room(maxMessage int64, record []events.RecordLine) int {
	left := int(min(max(maxMessage, 0), maxUnits)) - frame
	if len(record) > 0 {
		left -= recordFrame
	}
	for _, r := range record {
		left -= recordCost(r)
	}
	return max(0, left)
}

// The sizes of what stands around the text, and around a record, in a message.
var frame, recordFrame = func() (text, record int) {
	one := events.RecordLine{Kind: events.RecordUser, Text: "x"}
	s := &events.Summary{Text: "x"}
	text = events.Units(s.Message().Parts[0].Text) - 1
	s.Record = []events.RecordLine{one}
	return text, events.Units(s.Message().Parts[0].Text) - 1 - text - recordCost(one)
}()

func recordCost(r events.RecordLine) int { return events.Units("- " + r.String() + "\n") }
