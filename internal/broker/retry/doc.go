// Package retry calls an operation again, with pauses, until it succeeds. It is the only loop of
// this kind in broker, worker and client, over cenkalti/backoff. Loops are never nested: a read
// waits for the end of an election in one place. [Tick] calls an operation at regular times;
// [Wake] wakes a loop that waits for a token.
//
//	err := retry.Every(time.Second).Do(ctx, report, func() error {
//		err := write()
//		return retry.When(isFull(err), err) // nil is success
//	})
//
// Other loops have a reason of their own:
//   - [compactd/internal/broker/jsapi.Hedge] sends requests beside each other. Attempts in a row, of 2 s each, never get
//     the answer of a server that takes 3 s; of 5 s each, they get it after 8 s if one request is lost, instead of 3.5 s.
//   - broker/stream reads up to 64 events at once and repeats the missing ones, once no caller gets answers. A loop
//     for each event takes 64 allocations instead of 46, and repeats the reads that a slow server still has to answer.
//   - worker/fleet opens a partition at once that was served for a while. Do would go on with the pause that earlier
//     failures have reached, of up to 30 s.
//   - kv polls a lock of the kernel every few ms, and imports no broker. summarize imports none either: a provider's
//     answer states the pause.
//   - quota and request.History repeat a read at once, a few times: a writer was faster.
//   - worker/spending and the reader of broker/stream wait for a state, and attempt nothing.
package retry
