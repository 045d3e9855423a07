package compaction

// TurnSeqs returns where the log has the turns of the session, turn 1 first. Turns
// that were withdrawn, and those that are parked, are not among them.
func (l *Ledger) TurnSeqs() []Seq {
	out := make([]Seq, len(l.turns))
	for i := range l.turns {
		out[i] = l.turns[i].seq
	}
	return out
}
