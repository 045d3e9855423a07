package syncs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
)

// viewOf returns the generation of a view if the view is of the current session.
func (st *state) viewOf(view string) (generation int64, ok bool) {
	gen, whole, _ := strings.Cut(view, ":")
	generation, err := strconv.ParseInt(gen, 10, 64)
	return generation, err == nil && 0 <= generation && generation <= st.generation && whole == viewDigest(st.base().Digest)
}

// counts reports whether a call with a view can have had n messages: the number in the history up to
// the session's end, or the number in the view. n is 0 if unknown, which is accepted.
func (r *request) counts(ctx context.Context, st *state, generation, n int64) bool {
	if r.known.Turns < len(st.chain) {
		return false // the history has changed
	}
	held := int64(r.stable.held(r.address)) // unpublished messages at the end, which the call may also have had
	if own := int64(r.known.At - r.history.Lead); n == 0 || own <= n && n <= own+held || 0 <= n-int64(r.known.At) && n-int64(r.known.At) <= held {
		return true
	}
	view, err := r.viewUnder(ctx, st, generation, int64(len(st.chain)))
	if err != nil || view == nil {
		return false
	}
	made, err := r.outputs(ctx, st, view, r.known.At, true)
	sent := int64(len(made))
	return err == nil && (0 <= n-sent && n-sent <= held || n == sent+int64(r.history.Lead))
}

// viewName returns the name of a session's view of a generation, up to a turn.
func viewName(generation int64, whole events.Digest) string {
	return fmt.Sprintf("%d:%s", generation, viewDigest(whole))
}

// gave reports whether a view belongs to the current turns of the session, and not to a branch or a
// retracted turn; false for "".
func (st *state) gave(view string) bool {
	_, whole, _ := strings.Cut(view, ":")
	return view != "" && slices.ContainsFunc(st.chain, func(l events.Link) bool { return viewDigest(l.Whole) == whole })
}

func viewDigest(whole events.Digest) string { return whole.String()[:16] }

// begins reports whether the session still has the first turns of st.
func (st *state) begins(l *compaction.Ledger, turns int) bool {
	seqs := l.TurnSeqs()
	return len(seqs) > 0 && turns <= len(seqs) && (turns == 0 || seqs[turns-1] == measure.Seq(st.chain[turns-1].Seq))
}

// viewTurns returns the number of turns that the view at the beginning of the history covers.
func (r *request) viewTurns(st *state) int {
	end := r.history.Lead + r.known.View - r.known.Shift // messages of the session
	for i := range st.chain {
		if int(st.chain[i].End) >= end {
			return i + 1
		}
	}
	return len(st.chain)
}

// inspect calls read with the ledger of the session, measured under the config in force: a newly loaded
// ledger lacks the sums that a view needs.
func (r *request) inspect(ctx context.Context, read func(*compaction.Ledger)) error {
	_, err := r.sessions.Inspect(ctx, r.address, events.Await{}, func(l *compaction.Ledger) {
		l.Describe(r.config.Compaction())
		read(l)
	})
	return err
}

// generationBefore returns the newest generation that changed only the first turns.
func generationBefore(l *compaction.Ledger, turns int) int64 {
	for generation := l.Generation(); generation > 0; generation-- {
		if t := l.GenerationThrough(generation); t > 0 && t <= int64(turns) {
			return generation
		}
	}
	return 0
}

// viewUnder returns the view of a generation up to a turn; nil if the session has changed since st
// was read.
func (r *request) viewUnder(ctx context.Context, st *state, generation, turn int64) (view *render.View, err error) {
	err = r.inspect(ctx, func(l *compaction.Ledger) {
		if generation <= l.Generation() && st.begins(l, int(turn)) {
			view = l.ViewThrough(generation, turn)
		}
	})
	return view, err
}
