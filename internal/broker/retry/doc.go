// Package retry calls an operation again, with pauses, until it succeeds. It is the only loop of
// this kind in broker, worker and client, over cenkalti/backoff. Loops are never nested: a read
// waits for the end of an election in one place. [Tick] calls an operation at regular times;
// [Wake] wakes a loop that waits for a token.
//
// Other loops have a reason of their own: worker/fleet opens a partition at once that was
// served for a while, worker/service gives its processor back while a result waits for a summary,
// [compactd/internal/broker/jsapi.Hedge] and broker/stream send requests beside each other, kv
// waits for a lock of the kernel, and summarize imports no broker.
//
//	err := retry.Every(time.Second).Do(ctx, report, func() error {
//		err := write()
//		return retry.When(isFull(err), err) // nil is success
//	})
package retry
