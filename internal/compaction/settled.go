package compaction

import "slices"

// Settled reports whether the turn of a number was taken, or is parked.
func (l *Ledger) Received(number int64) bool {
	return number <= l.LastTurn() || slices.ContainsFunc(l.parked, func(t *Turn) bool { return t.number == number })
}
