package syncs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// late remembers the turns of late syncs, which the ledger may not have yet. The next sync of the session waits
// briefly for them, and then publishes after them: on an older base its turn would be refused. A restart loses
// them.
type late struct {
	recent[events.Address, undecided]
}

// undecided holds consecutive turns after a base, and the settings in the first of them.
type undecided struct {
	base     events.Expect
	turns    []syncedTurn
	settings string
	replaces bool // they replace earlier turns
}

// Sizes in memory, in bytes; a test compares them with the types.
const (
	undecidedBytes  = 72
	syncedTurnBytes = 56
)

func (u undecided) bytes() int {
	return undecidedBytes + len(u.settings) + cap(u.turns)*syncedTurnBytes
}

// maxLateBytes limits the remembered sessions, to about 10,000 with a few turns each; maxUndecided limits the turns
// of one.
const (
	maxLateBytes = 8 << 20
	maxUndecided = 100
)

// note remembers the turns of a late sync. If was is false, it drops those of the session.
func (l *late) note(a events.Address, u undecided, was bool) {
	if !was || len(u.turns) > maxUndecided {
		l.drop(a)
		return
	}
	l.put(a, u)
}

// behind returns the remembered turns of a session after a base, if any.
func (l *late) behind(a events.Address, base events.Expect) undecided {
	u, _ := l.get(a)
	if u.base == base {
		return u
	}
	if i := slices.IndexFunc(u.turns, func(t syncedTurn) bool { return t.expect() == base }); i >= 0 {
		return undecided{base: base, turns: u.turns[i+1:]}
	}
	return undecided{base: base}
}

// last returns the sequence of the last remembered turn of a session, or 0.
func (l *late) last(a events.Address) uint64 {
	if u, _ := l.get(a); len(u.turns) > 0 {
		return u.turns[len(u.turns)-1].seq
	}
	return 0
}

// awaitLate waits until the turns of a late sync are decided, at least up to syncWait: on an older state an edit or
// new settings would be refused.
func (r *request) awaitLate(ctx context.Context) error {
	seq := r.late.last(r.address)
	if seq == 0 || r.in.DryRun {
		return nil
	}
	_, err := r.sessions.Inspect(ctx, r.address, events.Await{Seq: seq}.Within(max(time.Until(r.deadline), syncWait)), func(*compaction.Ledger) {})
	if err == nil {
		r.late.drop(r.address)
	}
	if events.CodeOf(err) == events.CodeTurnPending {
		return nil
	}
	return err
}

// errUndecided: the history does not continue undecided turns, so nothing can be published after them.
var errUndecided = errors.New("turns of the session are not decided")

// follow returns the turns of late syncs that the history contains next; at is the index after them.
func (r *request) follow(st *state, t unpublished) (u undecided, at int, err error) {
	u, at = r.late.behind(r.address, st.base()), t.at
	for i := range u.turns {
		n := u.turns[i].messages
		if u.replaces || t.from > 0 || at+n > r.until || r.format.DigestOf(r.history.From(at)[:n]) != u.turns[i].digest {
			return u, at, errUndecided
		}
		at += n
	}
	return u, at, nil
}

// settingsOf returns a text that identifies the settings in a turn.
func settingsOf(t *events.Turn) string {
	model := ""
	if t.Model != nil {
		model = fmt.Sprint(*t.Model)
	}
	return fmt.Sprintf("%s %x", model, dialect.KeyOf([]byte(slices.Concat(t.System, t.Tools, t.Policy))))
}
