// Package stream reads the streams: the log of a partition in order and without end, a part of a
// stream up to its end, single messages by sequence or by subject, and the backlog after a
// cursor. It also publishes events: an [Event] until it is acknowledged, and [PublishOnce].
//
//	stop, err := stream.ConsumeLog(ctx, js, stream.LogFrom{Partitions: []int{3}, Seq: 17}, decide)
//	err = stream.Read(ctx, js, stream.Selection{Stream: topology.OutcomesStream, Filters: []string{"out.3.>"}}, each)
//	events, err := stream.GetLog(ctx, nc, []uint64{4, 9, 12})
//	texts := stream.NewTexts(nc) // for many callers, in sweeps over the log
//	events, err = texts.Get(ctx, []uint64{4, 9, 12})
//
// # Lifecycle of a reader
//
//	open ──► consumer ──► pull ──► message ──► order filter ──► fn
//	            ▲           │                       │
//	            │           │ idle, deleted, lost   │ gap, or a copy that is behind
//	            └───────────┴───────────────────────┘ next consumer, after the last message
//
// A [Reader] has one consumer after the other. Each begins after the last message that passed the
// order filter, and may be placed on another node. A message that two consumers in a row do not
// deliver is read from the leader by its sequence.
//
// # Guarantees
//
//   - A callback gets messages one at a time, in order, each once. No message stops a reader: its
//     stream and sequence come from the reply subject, which the server sets, never from headers.
//   - [Read] includes every message that was acknowledged before the call. It ends when the copy that
//     it reads from reports that it has reached that end.
//   - [Texts] requests the events of all callers in the order of the log. The end of a sweep is fixed
//     at its begin, so each caller waits for at most two sweeps.
//   - [GetLog], [Texts] and [ReadSubject] read from the leader if the answer of a copy is not certain.
//
// # Concurrency
//
// The package is safe for concurrent use. The callbacks of one reader run one at a time.
//
// # On failure
//
// A reader whose consumer is idle or deleted creates another one and continues. [*GoneError]: the
// log does not hold a sequence. [*BeyondEndError]: the log was recreated or
// truncated.
package stream
