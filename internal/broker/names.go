package broker

// Streams.
const (
	// LogStream holds what agents publish, by partition.
	LogStream = "SESSIONS"
	// OutcomesStream holds what workers decided, the jobs and the markers.
	OutcomesStream = "OUTCOMES"
)

// HeaderMarker carries the [Marker] on the last message of every commit.
const HeaderMarker = "Compactd-Marker"

// Headers of the server: optimistic concurrency, and atomic batches (ADR-50).
const (
	headerFence        = "Nats-Expected-Last-Subject-Sequence"
	headerFenceSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerBatchID      = "Nats-Batch-Id"
	headerBatchSeq     = "Nats-Batch-Sequence"
	headerBatchCommit  = "Nats-Batch-Commit"
)

// Headers of a Direct Get answer.
const (
	headerSubject   = "Nats-Subject"
	headerSequence  = "Nats-Sequence"
	headerTimestamp = "Nats-Time-Stamp"
)

// Headers of what a server sends beside the messages of a stream.
const (
	headerStatus       = "Status"
	headerDescription  = "Description"
	headerPending      = "Nats-Pending-Messages"
	headerLastConsumer = "Nats-Last-Consumer"
	headerLastStream   = "Nats-Last-Stream"

	statusHeartbeat    = "100"
	statusBadRequest   = "400"
	statusNoMessages   = "404"
	statusTimeout      = "408"
	statusConflict     = "409"
	statusNoResponders = "503"
)

// Request subjects of the JetStream API.
const (
	apiGet            = "$JS.API.STREAM.MSG.GET."
	apiDirectGet      = "$JS.API.DIRECT.GET."
	apiDeleteConsumer = "$JS.API.CONSUMER.DELETE."
	apiNext           = "$JS.API.CONSUMER.MSG.NEXT."
)
