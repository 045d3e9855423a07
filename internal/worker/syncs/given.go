package syncs

import (
	"sync"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// given remembers the view in the last answer about each session: a generation and the digest of the
// history. For a session that it does not have, as after a start, the generation of the previous turn is
// taken from the ledger.
type given struct {
	mu  sync.Mutex
	all map[events.Address]givenAt
}

type givenAt struct {
	whole      events.Digest
	generation int64
}

// maxGiven limits the remembered sessions.
const maxGiven = 10_000

func (g *given) put(a events.Address, at givenAt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil || len(g.all) >= maxGiven {
		g.all = map[events.Address]givenAt{}
	}
	g.all[a] = at
}

func (g *given) get(a events.Address) givenAt {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[a]
}

// madeUnder returns the generation of the view for which the model wrote the new messages: the one in
// the last answer about the same base, or the one at the decision on the base. A later compaction
// does not change that, since the model's thinking belongs to the earlier view.
func (r *request) madeUnder(st *state, t unpublished) (generation int64, err error) {
	turns := len(st.chain)
	if t.from > 0 {
		turns = int(t.from) - 1
	}
	if turns == 0 {
		return 0, nil
	}
	base := st.chain[turns-1]
	if last := r.given.get(r.address); last.whole == base.Whole {
		return min(last.generation, st.generation), nil
	}
	err = r.inspect(func(l *compaction.Ledger) { generation = min(l.GenerationAt(compaction.Seq(base.Seq)), st.generation) })
	return generation, err
}
