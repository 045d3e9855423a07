package model

import (
	"context"

	"compactd/internal/events"
)

// Model completes one prompt at a time. Implementations are safe for concurrent use.
type Model interface {
	// Name is "provider/model", for summaries and metrics.
	Name() string
	// Limits bound a request.
	Limits() Limits
	// Complete makes one request, retries inside, and returns a [Reply], an [*Error], or
	// the error of ctx. With an error, Usage is that of an answer without use. The caller checks Finish and an unwanted text itself.
	Complete(ctx context.Context, r Request) (Reply, error)
}

type idle struct{}

// WithIdle returns a context of work that is idle while a model answers: [Complete] has idle call the
// model.
func WithIdle(ctx context.Context, call func(answer func())) context.Context {
	return context.WithValue(ctx, idle{}, call)
}

// Complete is m.Complete. The work of ctx is idle meanwhile.
func Complete(ctx context.Context, m Model, r Request) (out Reply, err error) {
	call, ok := ctx.Value(idle{}).(func(func()))
	if !ok {
		return m.Complete(ctx, r)
	}
	call(func() { out, err = m.Complete(ctx, r) })
	return out, err
}

// Limits bound input and output of a model, in tokens of its own counting.
type Limits struct {
	Window    int64 // input and output together
	MaxOutput int64 // at most, whatever a request requests
}

// Request is one prompt. There are no tools, ever.
type Request struct {
	// Tenant is the tenant that pays for the request, "" for none. It is never sent.
	Tenant string
	System string // instructions; "" for none
	User   string // never empty
	// MaxOutputTokens bounds the answer; 0, or more than the model gives, is
	// [Limits].MaxOutput.
	MaxOutputTokens int64
}

// Reply is the answer of a model. Its Text is whole and not empty with [FinishStop] and [FinishOther], and
// may be cut, empty or beside the point with the others.
type Reply struct {
	Text   string
	Model  string              // as the provider names it, which may be more exact than what was requested
	Usage  events.SummaryUsage // zero when the provider did not say
	Finish Finish
}

// Finish is the reason why a model stopped.
type Finish string

// The reasons to stop.
const (
	FinishStop    Finish = "stop"    // the answer is complete
	FinishLength  Finish = "length"  // the output limit or the window cut the answer
	FinishTool    Finish = "tool"    // the model called a tool, though none was offered
	FinishRefusal Finish = "refusal" // the model or a filter of its provider declined
	FinishOther   Finish = "other"   // any other reason
)
