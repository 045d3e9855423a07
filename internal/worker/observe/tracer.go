package observe

import (
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Tracer records the steps from an event to its outcomes. It is called from the goroutines of
// partitions and jobs, and must not block.
type Tracer interface {
	// Received records the time that an event was in the log, and returns the trace of what
	// follows from it: that of the event, or a new one where it has none.
	Received(Step) events.Trace
	// Did records a step that has ended.
	Did(Step)
}

// Step is one step of an event. It has no content of messages.
type Step struct {
	Trace   events.Trace
	Name    string // one of the constants below
	Address events.Address
	Seq     compaction.Seq // of the event that the step follows from
	Kind    events.Kind    // of that event, or of the outcome
	Began   time.Time
	Ended   time.Time
	Err     error

	// Job, Model and Usage are those of a summary.
	Job   string
	Model string // provider/model
	Usage events.SummaryUsage
}

// Names of steps.
const (
	StepQueue     = "queue"     // in the log, until a worker began to decide
	StepDecide    = "decide"    // with the wait for memory and a processor
	StepRender    = "render"    // of one outcome
	StepCommit    = "commit"    // of the batch that an outcome is in
	StepSummarize = "summarize" // one try of a job
	StepChat      = "chat"      // one call of a model
)
