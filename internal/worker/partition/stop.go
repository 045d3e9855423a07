package partition

import (
	"context"
	"errors"
	"time"
)

// ErrDrain: the stop timed out. No turn is lost, but agents wait for the next start.
var ErrDrain = errors.New("the stop ran out of time: some outcomes are not stored; they are decided again at the next start")

// StopTime is the time limit of one stop. All partitions share it, so a stop takes no longer
// with many partitions.
type StopTime struct {
	commits context.Context //nolint:containedctx // ends commits
	All     context.Context //nolint:containedctx // ends the stop
}

// NewStopTime returns a StopTime that starts when ctx ends. The last fifth is for files and leases.
func NewStopTime(ctx context.Context, limit time.Duration) (s StopTime, cancel func()) {
	commits, cancelCommits := outlive(ctx, limit/5*4)
	all, cancelAll := outlive(ctx, limit)
	return StopTime{commits, all}, func() { cancelCommits(); cancelAll() }
}

// outlive returns a context that ends d after ctx.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, cancel
}

// ErrReassigned is the cause of the end of ctx when another worker takes the partition. Events
// that are not committed within handOverTime are left to that worker, which decides them
// again: agents wait only for the hand-over.
var ErrReassigned = errors.New("partition reassigned")

const handOverTime = 20 * time.Millisecond

// commitTime returns the context of the commits, which outlives ctx: after a cancelled commit it is
// unknown whether it was stored. It ends with the time of a stop, or DrainTimeout after
// ctx.
func (p *Partition) commitTime(ctx context.Context, s StopTime) (context.Context, context.CancelFunc) {
	work, cancel := outlive(ctx, p.set.config.DrainTimeout)
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrReassigned) {
			late := time.AfterFunc(handOverTime, func() { p.committer.stopped.Store(true) })
			context.AfterFunc(work, func() { late.Stop() })
		}
	})
	ended := context.AfterFunc(s.commits, cancel)
	return work, func() { ended(); cancel() }
}
