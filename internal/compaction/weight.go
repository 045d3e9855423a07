package compaction

// heldEntry is the size of an entry in memory, in bytes; a test holds it to the type.
const heldEntry = 96

// Bytes in memory of what a ledger has many of; a test holds them to the types.
const (
	heldTurn = 16
	heldSpan = 40
	heldEdit = 20
	heldRest = 1 << 10 // everything else of a ledger, as a round figure
)

// Weight is how many bytes of memory the entries of the view take.
func (v *View) Weight() int { return len(v.entries) * heldEntry }

// Weight is about how many bytes of memory the ledger takes: what grows with the
// session, and a round figure for the rest.
func (l *Ledger) Weight() int {
	n := heldRest + chunkStart(len(l.entries.list))*heldEntry
	n += cap(l.turns)*heldTurn + cap(l.hidden)*heldSpan + cap(l.edits)*heldEdit
	for _, t := range l.parked {
		n += len(t.entries) * heldEntry
	}
	return n
}
