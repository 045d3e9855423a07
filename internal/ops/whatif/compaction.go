package whatif

import (
	"fmt"

	"compactd/internal/events"
	"compactd/internal/ops/diff"
)

// Compaction is one that a policy would have made, with the histories around it.
type Compaction struct {
	title         string
	saved         int64
	from, to      int64 // tokens
	before, after []events.Message
	ruler         ruler
}

// show keeps a compaction, in place of a smaller one.
func (w *simulation) show(b *events.Compacted, after []events.Message) error {
	_, before, err := w.own.render(w.own.ledger.ViewAt(b.Generation - 1))
	if err != nil {
		return fmt.Errorf("the history before: %w", err)
	}
	*w.largest = Compaction{
		title: fmt.Sprintf("%s at turn %d, %s", w.session.Address.Session, b.Through.Turn, diff.Because(b.Reason, b.StagesUsed)),
		saved: b.TokensBefore - b.TokensAfter, from: b.TokensBefore, to: b.TokensAfter, before: before, after: after, ruler: *w.ruler,
	}
	return nil
}

// Largest is the compaction that took most off, nil where there was none; see
// [Options].
func (r *Report) Largest() *diff.Change {
	c := r.largest
	if c == nil || c.saved == 0 {
		return nil
	}
	return &diff.Change{
		Title: "One of them: " + c.title, Before: c.before, After: c.after, TokensBefore: c.from, TokensAfter: c.to,
		Count: func(m ...events.Message) int64 { return int64(c.ruler.of(m)) },
	}
}
