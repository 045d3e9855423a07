package whatif

import (
	"fmt"

	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/diff"
)

// show keeps a compaction that the policy would have made, in place of a smaller one.
func (w *simulation) show(b *events.Compacted, after []dialect.Message) error {
	_, before, err := w.own.render(w.own.ledger.ViewAt(b.Generation - 1))
	if err != nil {
		return fmt.Errorf("the history before: %w", err)
	}
	ruler := *w.ruler
	*w.largest = diff.Change{
		Title:  fmt.Sprintf("One of them: %s at turn %d, %s", w.session.Address.Session, b.Through.Turn, diff.Because(b.Reason, b.StagesUsed)),
		Before: before, After: after, TokensBefore: b.TokensBefore, TokensAfter: b.TokensAfter,
		Count: func(m ...dialect.Message) int64 { return int64(ruler.of(m)) },
	}
	return nil
}

// Largest is the compaction that took most off, nil where there was none; see [Options].
func (r *Report) Largest() *diff.Change {
	if r.largest == nil || r.largest.Saved() == 0 {
		return nil
	}
	return r.largest
}
