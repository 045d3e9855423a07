package syncs

import (
	"context"
	"time"

	"compactd/internal/events"
)

// await waits until a turn is decided, and returns the state of the session after it, or nil when
// the wait timed out. A refused turn is an error.
func (r *request) await(ctx context.Context, t *syncedTurn) (*state, error) {
	st, committed, err := r.stateOf(ctx, r.address, events.Await{Seq: t.seq}.Within(time.Until(r.deadline)))
	late := events.CodeOf(err) == events.CodeTurnPending
	if err == nil {
		limited, cancel := context.WithDeadline(ctx, r.deadline.Add(syncWait))
		err = committed(limited)
		late = err != nil && limited.Err() != nil && ctx.Err() == nil
		cancel()
	}
	switch {
	case late:
		return nil, nil //nolint:nilnil // timed out
	case err != nil:
		return nil, err
	}
	if n := int(t.number); n <= len(st.chain) && st.chain[n-1].Whole == t.whole {
		return st, nil
	}
	out, err := r.resultOf(ctx, t.seq, 0)
	switch {
	case err != nil:
		return nil, err
	case out.Accepted && len(st.chain) == 0: // a turn with the same id, from before the end of the session
		r.ended = t.seq
		return nil, errStale
	case out.Accepted, out.Code == events.CodeStaleBase, out.Code == events.CodeTurnConflict:
		return nil, errStale // other turns arrived before or after it
	default:
		return nil, events.Refuse(out.Code, out.Message, out.Hint)
	}
}
