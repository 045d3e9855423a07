package jsapi

// Headers of the server for optimistic concurrency: the last sequence of a subject that a
// publish expects.
const (
	HeaderFence        = "Nats-Expected-Last-Subject-Sequence"
	HeaderFenceSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// SubjectGet is where one message of a stream is requested from its leader; the name of the
// stream follows.
const SubjectGet = "$JS.API.STREAM.MSG.GET."
