package syncs

import (
	"sync"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// given remembers which view the last answer about each session gave: a generation, of the history
// up to a turn, which its digest names. A worker that has just started remembers nothing, and takes
// the generation of the turn before from the log.
type given struct {
	mu  sync.Mutex
	all map[events.Address]givenAt
}

type givenAt struct {
	whole      events.Digest
	generation int64
}

// maxGiven bounds the sessions that are remembered.
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

// madeUnder is the generation of the view that the model saw when it wrote the new messages: that
// of the last answer about the same base, or of the base when it was decided. After a later
// compaction the model's thinking belongs to the earlier view.
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
