package syncs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"compactd/internal/align"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// lineage passes a history to a branch, unless it is an edit of the session's. A history belongs to a
// branch if the session has the branch, if the history was retracted and returns, or if it has
// another root. For an edit lineage returns no answer.
//
// A second new root in a row may change with each request: it is recorded only if it occurs again.
func (r *request) lineage(ctx context.Context, st *state, at int, root bool) (*events.SyncResponse, error) {
	known, err := r.hasBranch(ctx, st, at)
	switch {
	case err != nil:
		return nil, err
	case known, r.retracted(st, at):
	case !root:
		return nil, nil //nolint:nilnil // an edit
	case r.in.DryRun:
	case r.fittedBefore(): // a repeated request after a refusal
		return r.fit(ctx, st)
	case !r.heads.recorded(r.address, r.history, st.branched > st.last.Seq):
		return r.fit(ctx, st)
	}
	return r.branch(ctx, st, at)
}

// branchName returns the name of the branch for a history that differs from the session's at an index.
// It follows from the history up to that index, so that a later request finds the branch.
func (r *request) branchName(st *state, at int) string {
	first := r.format.DigestOf(r.history.From(r.known.At)[:at+1-r.known.At])
	if r.known.Turns == 0 && at == r.known.At {
		return first.String()
	}
	return st.wholeAt(r.known.Turns).With(first, at+1-r.known.At).String()
}

// hasBranch reports whether the session has a branch for the history.
func (r *request) hasBranch(ctx context.Context, st *state, at int) (has bool, err error) {
	id := events.BranchID(r.address.Session, r.branchName(st, at))
	err = r.inspect(ctx, func(l *compaction.Ledger) { has = l.HasBranch(id) })
	return has || r.heads.branched(r.address, id), err
}

// retracted reports whether the session had the history before: after a common turn, a retracted turn
// covers the message at which the two differ.
func (r *request) retracted(st *state, at int) bool {
	var base events.Digest
	for turn := 0; turn <= r.known.Turns; turn++ {
		from := r.known.Index(events.Start(st.chain, turn))
		if from >= r.history.Before && slices.ContainsFunc(st.retracted, func(was compaction.Retracted) bool {
			to := from + int(was.Messages)
			return was.Base == base && at < to && to <= r.history.Len() && r.format.DigestOf(r.history.From(from)[:was.Messages]) == was.First
		}) {
			return true
		}
		if turn < len(st.chain) {
			base = st.chain[turn].Whole
		}
	}
	return false
}

// fitsPrefix reports whether the messages can follow the prefix.
func (r *request) fitsPrefix(ctx context.Context, st *state) (bool, error) {
	if r.known.Shift > 0 && st.settings.System == 0 { // the history begins with instructions, the session has none
		return false, nil
	}
	turns := 0
	for turns < r.known.Turns && r.known.Index(int(st.chain[turns].End)) <= r.history.Before {
		turns++
	}
	_, fits, err := r.fitsBehind(ctx, turns, r.history.Before)
	return fits, err
}

// fitsBehind reports whether the messages from an index on can follow the first turns of the
// session. awaited are the calls of these turns without a result.
func (r *request) fitsBehind(ctx context.Context, turns, at int) (awaited []dialect.Key, fits bool, err error) {
	err = r.inspect(ctx, func(l *compaction.Ledger) { awaited = l.AwaitedAfter(int64(turns)) })
	return awaited, r.history.Fits(at, awaited), err
}

// sameCalls shortens the known part of a history. It removes turns at its end whose calls have other
// ids in the session than in the history, since the later results would belong to no call of the
// session. ok is false if the calls are in a view of an earlier answer.
func (r *request) sameCalls(ctx context.Context, st *state, k align.Known) (same align.Known, ok bool, err error) {
	same = k
	for range maxTurnsBack {
		awaited, fits, err := r.fitsBehind(ctx, same.Turns, same.At)
		switch first := same.Turns == 0 || k.View > 0 && same.At <= r.history.Lead+k.View; {
		case fits || err != nil:
			return same, true, err
		case len(awaited) == 0: // the results have no call in the history either
			return k, true, nil
		case first:
			return k, k.View == 0, nil
		}
		same.Turns--
		same.At -= int(st.chain[same.Turns].End) - events.Start(st.chain, same.Turns)
	}
	return k, k.View == 0, nil
}

// maxTurnsBack limits the turns that sameCalls removes: it compares each with all later messages.
const maxTurnsBack = 64

// branch passes the request to the branch of the history.
func (r *request) branch(ctx context.Context, st *state, at int) (*events.SyncResponse, error) {
	if r.history.Before > 0 {
		return needAll(st), nil
	}
	fork := &events.Fork{Session: r.address.Session, Turn: int64(r.known.Turns)}
	if fork.Turn == 0 {
		fork.Turn = r.keptTurn(ctx, st)
	}
	in := *r.in
	in.Session, in.Branch, in.Fork, in.Refused = r.address.Session, r.branchName(st, at), fork, r.pending
	in.Format = r.format
	in.Model = cmp.Or(in.Model, &st.settings.Model) // a branch begins with the model of the session
	if in.Policy == nil {
		in.Policy = st.settings.Policy
	}
	ms := max(time.Until(r.deadline), 0).Milliseconds()
	in.WaitMS = &ms
	out, err := r.other(ctx, &in)
	if err == nil && !in.DryRun {
		r.heads.branch(r.address, in.Address().Session)
	}
	return out, err
}

// lastTurns is the number of turns at the end of a session for which keptTurn searches.
const lastTurns = 4

// keptTurn returns the last turn of the session whose work is in a history with another beginning, or 0.
// An agent that compacted its history itself keeps the end of it.
func (r *request) keptTurn(ctx context.Context, st *state) int64 {
	for i := len(st.chain) - 1; i >= max(0, len(st.chain)-lastTurns); i-- {
		if turn, err := r.textsOf(ctx, st, i); err == nil && r.history.HasWork(turn) {
			return int64(i + 1)
		}
	}
	return 0
}

// Limits on remembered roots.
const (
	maxHeads   = 10_000 // sessions
	maxRoots   = 8      // of one session, and of its branches
	headsReset = 10 * time.Minute
)

// heads remembers the new roots of each session, and its branches, which the ledger may not have
// yet. It is a hint: without it a root must occur once more before it becomes a branch.
type heads struct {
	mu  sync.Mutex
	all map[events.Address]*head
}

type head struct {
	roots    []root        // unrecorded ones, the oldest first
	branches []dialect.Key // of ids, the oldest first
	row      bool          // the last request had a new root
	last     time.Time
}

// root is a history with a new root: the digest of that message, and of all messages from it on.
type root struct {
	first, whole events.Digest
	messages     int
}

func rootOf(h *align.History) root {
	own := h.From(h.Lead)
	return root{h.Format.DigestOf(own[:1]), h.Format.DigestOf(own), len(own)}
}

// begins reports whether a history begins with this one.
func (r *root) begins(h *align.History, first events.Digest) bool {
	own := h.From(h.Lead)
	return r.first == first && r.messages <= len(own) && h.Format.DigestOf(own[:r.messages]) == r.whole
}

// of returns the head of a session, and creates a missing one. The caller holds mu.
func (h *heads) of(a events.Address) *head {
	x := h.all[a]
	if x == nil || time.Since(x.last) > headsReset {
		if h.all == nil || len(h.all) >= maxHeads {
			h.all = map[events.Address]*head{}
		}
		x = &head{}
		h.all[a] = x
	}
	x.last = time.Now()
	return x
}

// recorded reports whether to record a history with a new root: it is the first in a row, or occurs
// again. after means that the session has no turn since its last branch.
func (h *heads) recorded(a events.Address, history *align.History, after bool) bool {
	now := rootOf(history)
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.all[a] != nil
	x := h.of(a)
	first := !x.row && !(after && !known)
	x.row = true
	if first || slices.ContainsFunc(x.roots, func(r root) bool { return r.begins(history, now.first) }) {
		return true
	}
	x.roots = append(x.roots[max(0, len(x.roots)+1-maxRoots):], now)
	return false
}

// branch records an answer of a branch.
func (h *heads) branch(a events.Address, id string) {
	key := dialect.KeyOf(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.of(a)
	if !slices.Contains(x.branches, key) {
		x.branches = append(x.branches[max(0, len(x.branches)+1-maxRoots):], key)
		return
	}
	x.row = false // the branch continues
}

// branched reports whether a branch answered recently.
func (h *heads) branched(a events.Address, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.all[a]
	return x != nil && slices.Contains(x.branches, dialect.KeyOf(id))
}

// drop removes the head of a session without turns: it has no branches.
func (h *heads) drop(a events.Address) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, a)
}

// went records that the session itself continued.
func (h *heads) went(a events.Address) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.all[a]; x != nil {
		x.row = false
	}
}
