package worker

import (
	"cmp"
	"maps"
	"slices"

	"compactd/internal/broker"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// recorded is what OUTCOMES says was told about the events of a partition, and
// under which configs. It is given the outcomes and markers in their order.
type outcomeIndex struct {
	outcomes map[compaction.Seq][]compaction.Outcome
	last     compaction.Seq // of told
	epochs   []configEpoch
	chains   map[compaction.Seq]uint64 // hashes at the markers; nil where nobody asks
	epoch    uint64
}

// add takes one outcome.
func (r *outcomeIndex) add(k events.Kind, data []byte) error {
	o, cause, err := recordedOutcome(k, data)
	if err != nil {
		return err
	}
	if r.outcomes == nil {
		r.outcomes = map[compaction.Seq][]compaction.Outcome{}
	}
	r.outcomes[cause] = append(r.outcomes[cause], o)
	r.last = max(r.last, cause)
	return nil
}

// pass takes a marker. One that lies behind an earlier one says that the log had
// lost its end: what was told about the events between belongs to events that are
// gone.
func (r *outcomeIndex) applyMarker(m broker.Marker) {
	if m.Before != "" { // as if the marker before it, which may be erased, were passed
		r.applyMarker(broker.Marker{Cursor: m.Cursor, Epoch: r.epoch, Config: m.Before})
	}
	cursor, n := compaction.Seq(m.Cursor), len(r.epochs)
	taken := m.Epoch > r.epoch && n > 0
	r.epoch = m.Epoch
	switch {
	case taken && cursor > r.epochs[n-1].to: // decided by the owner before, whose last markers were erased
		r.epochs[n-1].to = cursor
	case n == 0 || cursor > r.epochs[n-1].to && m.Config != r.epochs[n-1].hash:
		r.epochs = append(r.epochs, configEpoch{cursor, m.Config})
	case cursor > r.epochs[n-1].to:
		r.epochs[n-1].to = cursor
	}
	if r.chains != nil {
		maps.DeleteFunc(r.chains, func(seq compaction.Seq, _ uint64) bool { return seq > cursor })
		r.chains[cursor] = cmp.Or(m.Chain, r.chains[cursor])
	}
	if r.last > cursor {
		maps.DeleteFunc(r.outcomes, func(seq compaction.Seq, _ []compaction.Outcome) bool { return seq > cursor })
		r.last = cursor
	}
	i := r.epochAt(cursor) // the last, but for a marker that lies behind
	r.epochs[i].to = cursor
	r.epochs = r.epochs[:i+1]
}

// reignAt is the place of the reign that an event up to the last marker fell in.
func (r *outcomeIndex) epochAt(seq compaction.Seq) int {
	i, _ := slices.BinarySearchFunc(r.epochs, seq, func(g configEpoch, seq compaction.Seq) int { return cmp.Compare(g.to, seq) })
	return i
}

// configAt is the hash of the config that an event was decided under, "" for one
// that no marker has passed.
func (r *outcomeIndex) configAt(seq compaction.Seq) string {
	if i := r.epochAt(seq); i < len(r.epochs) {
		return r.epochs[i].hash
	}
	return ""
}

// recordedOutcome reads an outcome without its messages.
func recordedOutcome(k events.Kind, data []byte) (compaction.Outcome, compaction.Seq, error) {
	body, err := events.DecodeOutcome(k, data)
	if err != nil {
		return compaction.Outcome{}, 0, err
	}
	var cause events.Cause
	switch b := body.(type) {
	case *events.Compacted:
		cause, b.Messages = b.CausedBy, nil
	case *events.BudgetChanged:
		cause = b.CausedBy
	case *events.Rejected:
		cause = b.CausedBy
	case *events.Forgotten:
		cause = b.CausedBy
	case *events.Job:
		cause = b.CausedBy
	}
	return compaction.Outcome{Kind: k, Body: body}, compaction.Seq(cause.Seq), nil
}
