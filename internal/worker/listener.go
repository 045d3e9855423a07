package worker

import "compactd/internal/worker/observe"

// Listener watches a worker; package observe describes each event.
type (
	Listener          = observe.Listener
	PartitionAcquired = observe.PartitionAcquired
	ShareAcquired     = observe.ShareAcquired
	PartitionFailed   = observe.PartitionFailed
	PartitionReleased = observe.PartitionReleased
	Applied           = observe.Applied
	Fetched           = observe.Fetched
	Committed         = observe.Committed
	Checkpointed      = observe.Checkpointed
	Snapshotted       = observe.Snapshotted
	Quarantined       = observe.Quarantined
	Compacted         = observe.Compacted
	OutcomesLimited   = observe.OutcomesLimited
	Rejected          = observe.Rejected
	Noted             = observe.Noted
	SummaryStarted    = observe.SummaryStarted
	ModelCalled       = observe.ModelCalled
	OverQuota         = observe.OverQuota
	SummaryDelayed    = observe.SummaryDelayed
	SummaryDone       = observe.SummaryDone
	Retrying          = observe.Retrying
)

var (
	// Tee joins listeners.
	Tee = observe.Tee
	// LogListener writes the log for operators.
	LogListener = observe.LogListener
)
