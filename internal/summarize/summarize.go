package summarize

import (
	"context"
	"errors"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize/sanitize"
)

// Errors of summarizers.
var (
	// ErrNothing: the range holds neither text nor tool calls that a summary could cover.
	ErrNothing = errors.New("nothing to summarize")
	// ErrNoRoom: MaxUnits does not hold the frame of a summary and one line.
	ErrNoRoom = errors.New("no room for a summary")
	// ErrTooMuch: the texts of the range take more work to redact than a job may have.
	ErrTooMuch = sanitize.ErrBudget
)

// Message is one message of a range, with its place in the session.
type Message struct {
	Turn, Index int64
	dialect.Message
}

// Input is what a summarizer reads: the messages of a range, oldest first, and
// the summary that covers what came before.
type Input struct {
	Messages []Message
	Previous *events.Summary // nil for none
	// MaxUnits bounds the whole message, [events.Summary.Message], in UTF-16
	// units. More than 200,000 count as 200,000, so that a summary fits into its
	// event.
	MaxUnits int64
	// Focus describes what the user wants kept: lines that share a word with
	// it are kept before others of their section.
	Focus string
	// MaxWait is how long the caller can wait for a model that is busy or unreachable: if it is above 0,
	// Summarize may return a [*RetryAfterError]. With 0 the first summarizer that can makes one at once.
	MaxWait time.Duration
	// Tenant is the tenant whose quota the calls of models count for; "" is none.
	Tenant string
	Writer
	// OnAttempt is called after each call of a model, from the goroutine of
	// Summarize; it may be nil.
	OnAttempt func(Attempt)
}

// maxUnits keeps an encoded summary under [events.MaxSummaryBytes]: 3 bytes a
// unit, twice where every character is escaped, the members of record lines, and spare lines.
const maxUnits = 200_000

// Limit returns the longest text that a summary may have, in UTF-16 units.
func (in *Input) Limit() int { return int(min(max(in.MaxUnits, 0), maxUnits)) }

// Writer limits the models that may be called for a summary; "" allows any.
type Writer struct{ Provider, Model string }

// NoModel allows none: the embedded summarizer writes.
var NoModel = Writer{Provider: "embedded"}

// Allows reports whether the model named provider/model may write the summary.
func (w Writer) Allows(name string) bool {
	provider, model, _ := strings.Cut(name, "/")
	return (w.Provider == "" || w.Provider == provider) && (w.Model == "" || w.Model == model)
}

// Summarizer makes a summary of a range. Job and Header are the caller's to fill.
type Summarizer interface {
	Summarize(ctx context.Context, in Input) (*events.Summary, error)
}

// Attempt is the result of one call of a model.
type Attempt struct {
	Model string // [model.Model.Name]
	Usage events.SummaryUsage
	Took  time.Duration
	Err   error // an unusable answer, a [*model.Error], or that of the context; nil for a summary
}

// RetryAfterError reports that models are busy or unreachable for now, that no other gave an answer that
// its provider counted, and that the caller can wait ([Input.MaxWait]). It holds the error of the last attempt.
type RetryAfterError struct {
	After time.Duration // as a provider requested; 0 when none did
	Err   error
}

func (e *RetryAfterError) Error() string { return "retry later: " + e.Err.Error() }

// Unwrap returns the error of the last attempt.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// Room returns how many UTF-16 units a text may have beside a record, 0 for none.
// A text that holds the tags of a summary costs 3 more for each: they are escaped.
func Room(maxMessage int64, record []events.RecordLine) int {
	left := int(min(max(maxMessage, 0), maxUnits)) - Frame
	if len(record) > 0 {
		left -= RecordFrame
	}
	for _, r := range record {
		left -= RecordCost(r)
	}
	return max(0, left)
}

// Frame is the size of what a message has around the text, in UTF-16 units.
var Frame = frameOf(nil)

// RecordFrame is the size of what a message has around a record, in UTF-16 units.
var RecordFrame = func() int {
	one := events.RecordLine{Kind: events.RecordUser, Text: "x"}
	return frameOf([]events.RecordLine{one}) - Frame - RecordCost(one)
}()

// frameOf returns the size of a message of one unit and a record, without that unit.
func frameOf(record []events.RecordLine) int {
	s := &events.Summary{Text: "x", Record: record}
	return codec.Units(s.Message().Parts[0].Text) - 1
}

// RecordCost returns how many UTF-16 units a line of the record takes in a message.
func RecordCost(r events.RecordLine) int { return codec.Units("- " + r.String() + "\n") }
