package compaction

import (
	"bytes"
	"slices"

	"compactd/internal/events"
)

// note adds a remark on the event: a part of it is ignored.
func (d *decision) note(code events.Code, fields ...string) {
	info := events.Codes[code]
	d.notes = append(d.notes, events.Note{Code: code, Message: info.Meaning, Hint: info.Hint, Fields: fields})
}

// noteLocked adds a note when a policy, not the one in use before, sets locked fields.
func (d *decision) noteLocked(base *Policy, object, before events.Raw) {
	if object == nil || bytes.Equal(object, before) {
		return
	}
	if _, ignored, err := base.Over(object); err == nil && len(ignored) > 0 {
		d.note(events.CodePolicyLocked, ignored...)
	}
}

// tellNotes puts the notes beside the last outcome that can carry them, or tells a
// session.budget with them, of l as it is after the event.
func (d *decision) emitNotes(l *Ledger) {
	if len(d.notes) == 0 {
		return
	}
	for _, o := range slices.Backward(d.outs) {
		switch b := o.Body.(type) {
		case *events.Compacted:
			b.Notes = d.notes
			return
		case *events.BudgetChanged:
			b.Notes = d.notes
			return
		}
	}
	d.emitBudget(l, l.Budget())
	d.outs[len(d.outs)-1].Body.(*events.BudgetChanged).Notes = d.notes
}
