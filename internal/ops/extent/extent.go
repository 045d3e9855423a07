package extent

import "compactd/internal/events"

// Tracker collects the figures of one session.
type Tracker struct {
	sizes     []int    // of the turns' payloads, in bytes
	samples   []sample // in the order of the turns
	saved     int64
	compacted int64 // turn up to which the last compaction went, 0 before the first
}

// sample is the published size of a session at a turn.
type sample struct {
	turn      int64
	input     int64 // tokens of the next call, before what was done then
	whole     int64 // the same, had nothing been compacted so far
	available int64 // tokens that the model takes
}

// Turn adds a turn with the size of its payload.
func (t *Tracker) Turn(bytes int) { t.sizes = append(t.sizes, bytes) }

// Note takes an outcome.
func (t *Tracker) Note(body any) {
	switch b := body.(type) {
	case *events.BudgetChanged:
		if t.compacted == 0 || t.compacted != b.Through.Turn { // else it reports the same
			t.State(b.Through.Turn, b.Budget)
		}
	case *events.Compacted:
		t.sample(b.Through.Turn, b.TokensBefore, b.AvailableInput)
		if b.Compacted {
			t.saved += b.TokensBefore - b.TokensAfter
			t.compacted = b.Through.Turn
		}
	}
}

// State takes how the session stands after a turn.
func (t *Tracker) State(turn int64, b events.Budget) {
	t.sample(turn, b.EstimatedInput, b.AvailableInput)
}

func (t *Tracker) sample(turn, input, available int64) {
	t.samples = append(t.samples, sample{turn, input, input + t.saved, available})
}

// Peak is the largest input that was published of, in tokens; 0 if none was.
func (t *Tracker) Peak() (tokens int64) {
	for _, x := range t.samples {
		tokens = max(tokens, x.input)
	}
	return tokens
}

// Saved is the saving of all compactions, in tokens.
func (t *Tracker) Saved() int64 { return t.saved }

// Overflow is the turn with which the history, had it not been compacted, would have
// been larger than what its model takes; 0 if it never was. Between two turns that
// a worker published, tokens are shared out by the size of the payloads.
func (t *Tracker) Overflow() int64 {
	var before sample
	for _, x := range t.samples {
		if x.whole > x.available {
			return t.crossing(before, x)
		}
		before = x
	}
	return 0
}

// crossing is the turn between two samples with which the second's limit is passed.
func (t *Tracker) crossing(from, to sample) int64 {
	if from.turn >= to.turn || to.turn > int64(len(t.sizes)) {
		return to.turn
	}
	sizes := t.sizes[from.turn:to.turn]
	sum, part := 0, 0
	for _, n := range sizes {
		sum += n
	}
	for i, n := range sizes {
		part += n
		if from.whole+(to.whole-from.whole)*int64(part)/int64(sum) > to.available {
			return from.turn + int64(i) + 1
		}
	}
	return to.turn
}
