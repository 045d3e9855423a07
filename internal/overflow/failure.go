package overflow

import (
	"cmp"
	"fmt"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Failure is a provider's refusal of a call. The zero Failure is not valid.
type Failure struct {
	Class Class
	// Provider wrote the error, as far as its words show; "" when they are of no provider in particular.
	// Servers that borrow the words of another are named after that other: DeepSeek and others answer as
	// OpenAI does.
	Provider string

	// Actual is the input the provider counted, without the maximum output where
	// the text distinguishes them . Limit is what it allows: of input, of input and
	// output for ClassSum, of output for ClassOutput, of a minute for
	// ClassAllowance, of images and pages for ClassMedia. Output is the maximum output that was requested. 0 is not
	// stated.
	Actual, Limit, Output measure.Tokens
}

// minRoom is the share of a window, as one part in so many, that a maximum output
// must leave to the input for a compaction to make sense. Some agents ask for as
// many tokens as the window has; compacting for them would never end.
const minRoom = 10

// Detect classifies an error. err is one JSON value as the agent got it: a string, which may contain a body
// in JSON, an object, or an array of objects. status is the HTTP status, 0 if unknown.
func Detect(err codec.Raw, status int64) Failure {
	ev := collect(err)
	if status >= 400 {
		ev.status = status
	}
	f := ev.classify()
	if f.Class == ClassUnknown || f.Class == ClassInput && f.Actual == 0 && f.Limit == 0 {
		f.Actual, f.Limit = ev.counts(f.Overflow())
	}
	return f.byCounts()
}

// byCounts decides the class of a failure from its counts together.
func (f Failure) byCounts() Failure {
	if f.Class != ClassSum {
		return f
	}
	switch {
	case f.Output == 0:
		f.Class = ClassInput
	case f.filledByOutput() && f.Actual < f.Limit:
		f.Class = ClassOutput
	}
	return f
}

// filledByOutput reports whether the maximum output leaves next to no room.
func (f Failure) filledByOutput() bool { return f.Limit > 0 && f.Limit-f.Output < f.Limit/minRoom }

// Overflow reports whether a shorter input repairs the failure.
func (f Failure) Overflow() bool { return classes[f.Class].overflow }

// Refuse returns nil for an overflow. Any other failure is an [*events.Invalid]
// with [events.CodeNotOverflow], or the code of its class, whose text names the class and what
// to do.
func (f Failure) Refuse() error {
	if f.Overflow() {
		return nil
	}
	info := classes[f.Class]
	return events.NewInvalid(cmp.Or(info.code, events.CodeNotOverflow), "error", fmt.Sprintf("is %s, not an overflow: %s", f.Class, info.advice))
}
