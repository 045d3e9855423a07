package observe

import (
	"time"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Listener receives the events of a worker. Every func may be nil. The goroutines of partitions, jobs and
// requests call them; they must not block.
type Listener struct {
	// PartitionAcquired: the partition is caught up and takes turns.
	PartitionAcquired func(PartitionAcquired)
	// ShareAcquired: all partitions of this worker's share are served for the first time. It
	// is called once, after PartitionAcquired of each of them.
	ShareAcquired func(ShareAcquired)
	// PartitionFailed: the partition ended with an error, and this worker opens it again.
	PartitionFailed func(PartitionFailed)
	// PartitionReleased: the partition is no longer served by this worker.
	PartitionReleased func(PartitionReleased)
	// Applied: an event was decided, and applied to its ledger in memory.
	Applied func(Applied)
	// Fetched: an event that two reads in a row did not deliver was read by its sequence.
	Fetched func(Fetched)
	// Committed: outcomes and their marker are stored.
	Committed func(Committed)
	// Checkpointed: the changed ledgers of a partition are in its file.
	Checkpointed func(Checkpointed)
	// Snapshotted: a copy of a partition's file is in the object store.
	Snapshotted func(Snapshotted)
	// Quarantined: the file of a partition failed its checks; it was renamed, and a new one is built.
	Quarantined func(Quarantined)
	// Foreign: messages of a partition in OUTCOMES belong to no commit, and were skipped.
	Foreign func(Foreign)
	// Compacted: a session.compacted is stored.
	Compacted func(Compacted)
	// OutcomesLimited: compactions of a tenant are published without their messages, since the
	// tenant is over a limit. It is called at most once in ten minutes for each tenant.
	OutcomesLimited func(OutcomesLimited)
	// Rejected: a session.rejected is stored.
	Rejected func(Rejected)
	// Noted: an outcome with a note about an accepted event is stored.
	Noted func(Noted)
	// Recalled: originals of a session were requested, by place or by text.
	Recalled func(Recalled)
	// SummaryStarted: a summarizer of this worker took a job.
	SummaryStarted func(SummaryStarted)
	// ModelCalled: a call of a model for a summary has ended.
	ModelCalled func(ModelCalled)
	// OverQuota: a model was not called, since the tenant has used up its share.
	OverQuota func(OverQuota)
	// SummaryDelayed: all models are busy or unreachable, and the job waits for them.
	SummaryDelayed func(SummaryDelayed)
	// SummaryDone: the result of a job is stored in the log.
	SummaryDone func(SummaryDone)
	// Retrying: a step failed and is tried again.
	Retrying func(Retrying)
}

// PartitionAcquired describes the recovery of a partition.
type PartitionAcquired struct {
	Partition int
	Epoch     uint64
	Cursor    measure.Seq // of the marker that was found
	Snapshot  measure.Seq // cursor of the restored snapshot; 0 without one
	Replayed  int         // events up to the marker
	Sessions  int         // ledgers in memory
	Took      time.Duration
}

// ShareAcquired describes a worker's share after its start.
type ShareAcquired struct {
	Partitions int // may be 0 with more workers than partitions
}

// PartitionFailed is the failure of a partition that this worker opens again.
type PartitionFailed struct {
	Partition int
	Err       error
	Pause     time.Duration // before it is opened again
}

// PartitionReleased is the end of a partition on this worker. After a stop, a hand-over or the loss
// of its lease Err is nil and Reason names the cause. After an error Reason may be "".
type PartitionReleased struct {
	Partition int
	Err       error
	Reason    string
}

// Applied describes a decided event.
type Applied struct {
	Partition int
	Seq       measure.Seq
	Kind      events.Kind
	Outcomes  int
	Pending   uint64 // later events of the partition at its delivery
	Repeated  measure.Repeated
}

// Fetched describes an event that was read by its sequence. It is then processed like any other.
type Fetched struct {
	Partition int
	Seq       measure.Seq
	Err       error // of the last read
}

// Committed is one commit.
type Committed struct {
	Partition int
	Cursor    measure.Seq
	Outcomes  int // 0 for a marker alone
	Bytes     int
	Took      time.Duration
}

// Checkpointed is one checkpoint.
type Checkpointed struct {
	Partition int
	Cursor    measure.Seq
	Ledgers   int // ledgers written
	Evicted   int // ledgers evicted from memory
	Kept      int // ledgers in memory afterwards
	Took      time.Duration
}

// Snapshotted is one snapshot.
type Snapshotted struct {
	Partition int
	Cursor    measure.Seq // position of its ledgers
	Bytes     int64
	Took      time.Duration
}

// Quarantined is a file that failed its checks, with the reason and its new path.
type Quarantined struct {
	Partition int
	Reason    error
	Moved     string
}

// Foreign describes messages among the outcomes of a partition that no worker committed.
type Foreign struct {
	Partition   int
	Messages    int
	First, Last uint64 // sequences in OUTCOMES
}

// Compacted is one session.compacted; Body has no messages.
type Compacted struct {
	Partition int
	Address   events.Address
	Body      *events.Compacted
	// Omitted is the reason why its messages are missing: size, no_text, tenant_hour,
	// tenant_burst, tenant_share or invalid; "" if they are present.
	Omitted string
	// Invalid describes invalid messages, without their content; nil if they are valid.
	Invalid error
}

// Reasons of [Compacted.Omitted].
const (
	OmittedSize  = "size"         // larger than events.MaxOutputBytes or the server's limit
	OmittedText  = "no_text"      // the log no longer holds the text
	OmittedHour  = "tenant_hour"  // the tenant has used up its bytes of the hour
	OmittedBurst = "tenant_burst" // the tenant has used up its bytes of ten minutes
	OmittedShare = "tenant_share" // the tenant holds its share of OUTCOMES

	OmittedInvalid = "invalid" // not valid for its provider: a defect
)

// OutcomesLimited describes a tenant over a limit.
type OutcomesLimited struct {
	Tenant string
	Reason string // tenant_hour, tenant_burst or tenant_share
	// Bytes is the tenant's use: in the last hour, in the last ten minutes, or of OUTCOMES. Bound is
	// the limit.
	Bytes, Bound int64
}

// Rejected is one session.rejected.
type Rejected struct {
	Partition int
	Address   events.Address
	Body      *events.Rejected
}

// Noted is one note of an outcome.
type Noted struct {
	Partition int
	Address   events.Address
	Note      events.Note
}

// SummaryStarted is one delivery of a job.
type SummaryStarted struct {
	Address events.Address
	Lane    events.Lane
	Job     string
	Attempt uint64 // from 1; beyond the limit only to report that every worker crashed
}

// ModelCalled is the result of one call of a model.
type ModelCalled struct {
	Address events.Address
	Lane    events.Lane
	Job     string
	Model   string              // provider/model
	Usage   events.SummaryUsage // zero if the provider did not report it
	Err     error               // nil for a summary
}

// Recalled names the session whose originals were requested.
type Recalled struct {
	Address events.Address
	Search  bool // for a text
}

// OverQuota names a model that was not called. The embedded summarizer writes the summary at
// once.
type OverQuota struct {
	Address events.Address
	Lane    events.Lane
	Job     string
	Model   string
}

// SummaryDelayed is a job that was given back because its models are busy or unreachable.
type SummaryDelayed struct {
	Address events.Address
	Lane    events.Lane
	Job     string
	Attempt uint64
	Pause   time.Duration
	Err     error // of the last model
}

// SummaryDone is the result of a job. Failure is "" for a summary.
type SummaryDone struct {
	Address events.Address
	Lane    events.Lane
	Job     string
	Failure string
	Took    time.Duration // of this attempt
	Attempt uint64
	Model   string              // the writer; "" for a failure
	Usage   events.SummaryUsage // of all models called in this attempt
}

// Retrying is a failure of a step that is tried again.
type Retrying struct {
	Partition int // -1 without a partition
	Step      string
	Err       error
}

// Retry reports to Retrying that a step of a partition failed and is tried again; -1 is no partition.
func (l *Listener) Retry(partition int, step string, err error) {
	Call(l.Retrying, Retrying{Partition: partition, Step: step, Err: err})
}

// Tee returns a listener that calls all of ls, in order.
func Tee(ls ...Listener) Listener {
	var t Listener
	for _, l := range ls {
		t.PartitionAcquired = both(t.PartitionAcquired, l.PartitionAcquired)
		t.ShareAcquired = both(t.ShareAcquired, l.ShareAcquired)
		t.PartitionFailed = both(t.PartitionFailed, l.PartitionFailed)
		t.PartitionReleased = both(t.PartitionReleased, l.PartitionReleased)
		t.Applied = both(t.Applied, l.Applied)
		t.Fetched = both(t.Fetched, l.Fetched)
		t.Committed = both(t.Committed, l.Committed)
		t.Checkpointed = both(t.Checkpointed, l.Checkpointed)
		t.Snapshotted = both(t.Snapshotted, l.Snapshotted)
		t.Quarantined = both(t.Quarantined, l.Quarantined)
		t.Foreign = both(t.Foreign, l.Foreign)
		t.Compacted = both(t.Compacted, l.Compacted)
		t.OutcomesLimited = both(t.OutcomesLimited, l.OutcomesLimited)
		t.Rejected = both(t.Rejected, l.Rejected)
		t.Noted = both(t.Noted, l.Noted)
		t.Recalled = both(t.Recalled, l.Recalled)
		t.SummaryStarted = both(t.SummaryStarted, l.SummaryStarted)
		t.ModelCalled = both(t.ModelCalled, l.ModelCalled)
		t.OverQuota = both(t.OverQuota, l.OverQuota)
		t.SummaryDelayed = both(t.SummaryDelayed, l.SummaryDelayed)
		t.SummaryDone = both(t.SummaryDone, l.SummaryDone)
		t.Retrying = both(t.Retrying, l.Retrying)
	}
	return t
}

func both[T any](a, b func(T)) func(T) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(v T) { a(v); b(v) }
}

// Call calls a func of a listener, if it is set.
func Call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}
