package commit

// HeaderMarker carries the [Marker] on the last message of every commit.
const HeaderMarker = "Compactd-Marker"

// Headers of the server for atomic batches (ADR-50 of NATS).
const (
	headerBatchID     = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)
