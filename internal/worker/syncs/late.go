package syncs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// late remembers the turns of syncs that were late, which the ledger may not have yet: the next sync about the session
// begins behind them. On an older base its own turn would be refused. A worker that has just started remembers none.
type late struct {
	mu  sync.Mutex
	all map[events.Address]undecided
}

// undecided are turns that follow each other from a base on, and the settings that the first of them brings.
type undecided struct {
	base     events.Expect
	turns    []syncedTurn
	settings string
}

// maxLate bounds the sessions that are remembered, and maxUndecided the turns of each.
const (
	maxLate      = 10_000
	maxUndecided = 100
)

// put notes what a sync has published, and whether it was late.
func (l *late) put(a events.Address, u undecided, was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !was || len(u.turns) > maxUndecided:
		delete(l.all, a)
		return
	case l.all == nil || len(l.all) >= maxLate:
		l.all = map[events.Address]undecided{}
	}
	l.all[a] = u
}

// behind returns what is remembered of a session behind a base; no turns where that is nothing.
func (l *late) behind(a events.Address, base events.Expect) undecided {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.all[a]
	if u.base == base {
		return u
	}
	if i := slices.IndexFunc(u.turns, func(t syncedTurn) bool { return t.expect() == base }); i >= 0 {
		return undecided{base: base, turns: u.turns[i+1:]}
	}
	return undecided{base: base}
}

// follow returns the turns of late syncs that the history goes on with, and that are not decided; at is the index
// behind them. Where they have been decided meanwhile the session must be read again.
func (r *request) follow(ctx context.Context, st *state, t unpublished) (u undecided, at int, err error) {
	u, at = r.late.behind(r.address, st.base()), t.at
	for i := range u.turns {
		n := u.turns[i].messages
		if t.from > 0 || at+n > r.until || r.format.DigestOf(r.history.From(at)[:n]) != u.turns[i].digest {
			return undecided{base: u.base}, t.at, nil
		}
		at += n
	}
	if len(u.turns) == 0 {
		return u, at, nil
	}
	err = r.host.AwaitDecided(ctx, r.address, events.Await{Seq: u.turns[len(u.turns)-1].seq}.Within(0))
	switch {
	case err == nil:
		r.late.put(r.address, u, false)
		err = errStale
	case codeOf(err) == events.CodeTurnPending:
		err = nil
	}
	return u, at, err
}

// settingsOf names the settings that a turn brings.
func settingsOf(t *events.Turn) string {
	model := ""
	if t.Model != nil {
		model = fmt.Sprint(*t.Model)
	}
	return fmt.Sprintf("%s %x", model, dialect.KeyOf([]byte(slices.Concat(t.System, t.Tools, t.Policy))))
}
