package partition

import (
	"context"
	"errors"
	"time"
)

// DefaultDrainTimeout is how long a stop may take, from the end of Run's context to the
// end of Run.
const DefaultDrainTimeout = 10 * time.Second

// ErrDrain: no turn is lost, but agents wait for the next start.
var ErrDrain = errors.New("the stop ran out of time: some outcomes are not stored; they are decided again at the next start")

// StopTime is the time of one stop. All partitions share it, so a stop takes no longer
// where there are many.
type StopTime struct {
	commits context.Context //nolint:containedctx // ends when nothing more is committed
	All     context.Context //nolint:containedctx // ends when the stop must have ended
}

// NewStopTime begins to run when ctx ends. The last fifth is for files and leases.
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

// ErrReassigned is why ctx ends when another worker is to go on. Events that are not
// committed within handOverTime are left to it: it decides them again, while agents wait
// for nothing else.
var ErrReassigned = errors.New("partition reassigned")

const handOverTime = 20 * time.Millisecond

// commitTime returns the context of the commits, which outlives ctx: a commit that is
// given up half-way leaves it unknown whether it is stored. It ends with the
// time of a stop, and DrainTimeout after ctx where there is a hand-over only.
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
