package worker

import "compactd/internal/worker/observe"

// Listener watches a worker; package observe describes each event.
type Listener = observe.Listener

type (
	// PartitionAcquired is [observe.PartitionAcquired].
	PartitionAcquired = observe.PartitionAcquired
	// ShareAcquired is [observe.ShareAcquired].
	ShareAcquired = observe.ShareAcquired
	// PartitionFailed is [observe.PartitionFailed].
	PartitionFailed = observe.PartitionFailed
	// PartitionReleased is [observe.PartitionReleased].
	PartitionReleased = observe.PartitionReleased
	// Applied is [observe.Applied].
	Applied = observe.Applied
	// Fetched is [observe.Fetched].
	Fetched = observe.Fetched
	// Committed is [observe.Committed].
	Committed = observe.Committed
	// Checkpointed is [observe.Checkpointed].
	Checkpointed = observe.Checkpointed
	// Snapshotted is [observe.Snapshotted].
	Snapshotted = observe.Snapshotted
	// Quarantined is [observe.Quarantined].
	Quarantined = observe.Quarantined
	// Foreign is [observe.Foreign].
	Foreign = observe.Foreign
	// Compacted is [observe.Compacted].
	Compacted = observe.Compacted
	// OutcomesLimited is [observe.OutcomesLimited].
	OutcomesLimited = observe.OutcomesLimited
	// Rejected is [observe.Rejected].
	Rejected = observe.Rejected
	// Noted is [observe.Noted].
	Noted = observe.Noted
	// SummaryStarted is [observe.SummaryStarted].
	SummaryStarted = observe.SummaryStarted
	// ModelCalled is [observe.ModelCalled].
	ModelCalled = observe.ModelCalled
	// OverQuota is [observe.OverQuota].
	OverQuota = observe.OverQuota
	// SummaryDelayed is [observe.SummaryDelayed].
	SummaryDelayed = observe.SummaryDelayed
	// SummaryDone is [observe.SummaryDone].
	SummaryDone = observe.SummaryDone
	// Retrying is [observe.Retrying].
	Retrying = observe.Retrying
)

var (
	// Tee joins listeners.
	Tee = observe.Tee
	// LogListener writes the log for operators.
	LogListener = observe.LogListener
)
