// Package jsapi makes requests to the JetStream API: the error codes of the server, the retries after
// errors, and the read of one message from the leader of a stream.
//
//	m, err := jsapi.GetFromLeader(ctx, nc, "OUTCOMES", jsapi.GetRequest{LastFor: "out.3.>"})
//	err = jsapi.Retry(ctx, nil, func() error { return jsapi.Transient(try()) })
//	if jsapi.HasCode(err, jsapi.CodeWrongLastSequence) { … }
//
// # Guarantees
//
//   - [GetFromLeader] reads from the leader of a stream, which has every acknowledged message. A
//     leader that was cut off may still answer for about a second: a write must confirm a
//     decision that is based on such an answer. [RetryUntilLeader] with [HasQuorum] excludes it.
//   - [Retry] repeats a request, with pauses from 5 ms to half a second, until success, a
//     final error, or the end of the context (package retry).
//   - [Hedge] sends a request a second time beside the first if no answer arrives: a node that is
//     cut off never answers.
//
// # Concurrency
//
// The package is safe for concurrent use.
//
// # On failure
//
// [Unreachable] reports that an error reveals nothing about the request, so that the same request
// may succeed later. [ErrNoAnswer]: a request timed out before the context of its caller ended.
package jsapi
