package observe

import (
	"time"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Tracer records the steps from an event to its outcomes. The goroutines of partitions and jobs
// call it; it must not block.
type Tracer interface {
	// Received records the time that an event waited in the log. It returns the trace for its
	// outcomes: the event's trace, or a new one.
	Received(Step) events.Trace
	// Did records a step that has ended.
	Did(Step)
}

// Step is one step of an event. It has no content of messages.
type Step struct {
	Trace   events.Trace
	Name    string // one of the constants below
	Address events.Address
	Seq     measure.Seq // of the event that caused the step
	Kind    events.Kind // of that event, or of the outcome
	Began   time.Time
	Ended   time.Time
	Err     error

	// Job, Model and Usage are set for steps of a summary.
	Job   string
	Model string // provider/model
	Usage events.SummaryUsage
}

// Names of steps.
const (
	StepQueue     = "queue"     // in the log, until a worker began to decide
	StepDecide    = "decide"    // including the wait for memory and a processor
	StepRender    = "render"    // of one outcome
	StepCommit    = "commit"    // of the outcome's batch
	StepSummarize = "summarize" // one attempt of a job
	StepChat      = "chat"      // one call of a model
)
