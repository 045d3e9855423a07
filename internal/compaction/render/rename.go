package render

import (
	"fmt"

	"compactd/internal/events"
)

// rename gives calls and results of the current message their ids in the view.
func (r *renderer) rename(from, to int) error {
	m := &r.draft
	ids := map[int]string{}
	for i := from; i < to; i++ {
		at, ok := r.view.Renamed[i]
		if !ok {
			continue
		}
		e := &r.view.Entries[i]
		if err := holdsParts(m.Parts, e); err != nil {
			return err
		}
		salt := ""
		if at.Turn > 0 { // another call has the id
			salt = fmt.Sprintf("%d %d %d", at.Turn, at.Index, at.Part)
		}
		ids[int(e.Part)] = r.view.Demands.IDs.Map(m.Parts[e.Part].CallID, salt)
		r.changes = append(r.changes, events.Edit{Op: events.OpRename, Position: e.Position()})
	}
	if len(ids) == 0 {
		return nil
	}
	raw, err := r.dialect.WithCallIDs(m.Clone(), ids)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	*m, err = r.readRaw(raw)
	return err
}
