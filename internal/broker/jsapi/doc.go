// Package jsapi makes requests to the JetStream API: the error codes of the server, which errors
// are worth another try, and how to read one message from the leader of a stream.
//
//	m, err := jsapi.GetFromLeader(ctx, nc, "OUTCOMES", jsapi.GetRequest{LastFor: "out.3.>"})
//	err = jsapi.Retry(ctx, nil, func() error { return jsapi.Transient(try()) })
//	if jsapi.HasCode(err, jsapi.CodeWrongLastSequence) { … }
//
// # Guarantees
//
//   - [GetFromLeader] reads from the leader of a stream, which has every message that was
//     acknowledged. A leader that was cut off may still answer for about a second: a write must
//     confirm what is decided on such an answer. [RetryUntilLeader] with [HasQuorum] excludes it.
//   - [Retry] tries a request again, with pauses from 5 ms to half a second, until success, a
//     final error, or the end of the context (package retry).
//   - [Hedge] sends a request a second time beside the first when no answer comes: a node that is
//     cut off never answers.
//
// # Concurrency
//
// All of it is safe for concurrent use.
//
// # On failure
//
// [Unreachable] reports that an error reveals nothing about the request, so that the same may
// succeed later. [ErrNoAnswer] is a request that got no answer in its own time while its caller
// would still wait.
package jsapi
