package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
)

// In a dialect with units the messages of one response stay or go together, and none of them is edited: see
// [dialect.Dialect]. An exchange is then a unit with the results of its calls.

// inUnit reports whether an entry belongs to a unit, and must not be edited.
func (d *Draft) inUnit(e *measure.Entry) bool {
	return e.Role == measure.RoleAssistant && d.format.Dialect().Units
}

// splitsUnit reports whether a cut between two entries would split the messages of one response. before may
// be −1.
func (d *Draft) splitsUnit(before, i int) bool {
	return before >= 0 && d.inUnit(&d.entries[i]) && d.entries[before].Role == measure.RoleAssistant
}

// lonely lists reasoning that no content of the model follows, although the conversation went on: the
// response was cut off. Providers refuse it.
func (d *Draft) lonely() (out []int) {
	if !d.format.Dialect().Units {
		return nil
	}
	next := -1 // the entry rendered behind
	for i, e := range slices.Backward(d.entries) {
		if e.Flags.Has(measure.FlagEmpty) {
			continue
		}
		reasoning := e.Kind == measure.KindWords && e.Flags.Has(measure.FlagThinking) && e.Role == measure.RoleAssistant
		if reasoning && next >= 0 && d.entries[next].Role != measure.RoleAssistant {
			out = append(out, i)
			continue
		}
		next = i
	}
	slices.Reverse(out)
	return out
}

// dropLonely removes lonely reasoning from the history.
func (d *Draft) dropLonely() {
	for _, i := range d.lonely() {
		d.drop(i)
	}
}
