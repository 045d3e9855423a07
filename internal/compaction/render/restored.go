package render

import (
	"fmt"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// restored adds a result that is shown again.
func (r *renderer) restored(e *measure.Entry) error {
	own := *e
	own.Parts = 1
	result, err := r.part(&own)
	if err != nil {
		return err
	}
	name, err := r.nameOf(e, &result)
	if err != nil {
		return err
	}
	text := result.Text
	if room, _ := e.Kept(); int64(events.Units(text)) > room {
		text = cutText(e, text, room, shareOf(&own, []events.Part{result}))
	}
	return r.addMade(textMessage(events.RoleUser, fmt.Sprintf(measure.RestoreHead, name, e.Turn)+text))
}

// nameOf is the file that a restored result was read from, or the tool it is from.
func (r *renderer) nameOf(e *measure.Entry, result *events.Part) (string, error) {
	tool := result.Tool
	if e.CallSeq() != 0 {
		call, err := r.part(&measure.Entry{Seq: e.CallSeq(), Index: uint32(e.Call >> 32), Part: uint32(e.Call), Parts: 1})
		if err != nil {
			return "", err
		}
		if path := events.PathRead(call.Tool, call.Args); path != "" && e.Flags.Has(measure.FlagRead) {
			return path, nil
		}
		tool = call.Tool
	}
	if e.Flags.Has(measure.FlagRead) {
		return events.PathInText(result.Text), nil
	}
	return headUnits(tool, measure.MaxToolUnits), nil
}
