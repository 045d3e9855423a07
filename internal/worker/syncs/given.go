package syncs

import (
	"context"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// givenAt is the view in the last answer about a session: a generation and the digest of the history. For a
// session without one, as after a start, the generation of the previous turn is taken from the ledger.
type givenAt struct {
	whole      events.Digest
	generation int64
}

// givenBytes is the size of givenAt in memory, which a test compares with the type.
const givenBytes = 24

func (givenAt) bytes() int { return givenBytes }

// maxGivenBytes limits the remembered sessions to about 10,000.
const maxGivenBytes = 3 << 20

// madeUnder returns the generation of the view for which the model wrote the new messages: the one in
// the last answer about the same base, or the one at the decision on the base. A later compaction
// does not change that, since the model's thinking belongs to the earlier view.
func (r *request) madeUnder(ctx context.Context, st *state, t unpublished) (generation int64, err error) {
	turns := len(st.chain)
	if t.from > 0 {
		turns = int(t.from) - 1
	}
	if turns == 0 {
		return 0, nil
	}
	base := st.chain[turns-1]
	if last, ok := r.given.get(r.address); ok && last.whole == base.Whole {
		return min(last.generation, st.generation), nil
	}
	err = r.inspect(ctx, func(l *compaction.Ledger) { generation = min(l.GenerationAt(measure.Seq(base.Seq)), st.generation) })
	return generation, err
}
