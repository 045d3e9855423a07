package jsapi

import "github.com/nats-io/nats.go"

// Headers of the server for optimistic concurrency: the last sequence of a subject that a
// publish expects.
const (
	HeaderFence        = "Nats-Expected-Last-Subject-Sequence"
	HeaderFenceSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// Headers of the server for atomic batches (ADR-50 of NATS). It stores a batch whole, at
// consecutive sequences.
const (
	HeaderBatchID     = "Nats-Batch-Id"
	HeaderBatchSeq    = "Nats-Batch-Sequence" // from 1
	HeaderBatchCommit = "Nats-Batch-Commit"   // on the last message
)

// SubjectGet begins the subject of a request for one message from the leader of a stream; the name
// of the stream follows.
const SubjectGet = "$JS.API.STREAM.MSG.GET."

// First returns the first value of a header, which is the one that the server reads.
func First(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Fenced reports whether the headers of a stored message allow that it belongs to a commit with a fence over
// filter: the server has checked that fence for it, or for the first message of its
// atomic batch.
func Fenced(h nats.Header, filter string) bool {
	return Unfenced() || First(h, HeaderFence) != "" && First(h, HeaderFenceSubject) == filter ||
		First(h, HeaderBatchID) != "" && ParseSeq(First(h, HeaderBatchSeq)) > 1
}
