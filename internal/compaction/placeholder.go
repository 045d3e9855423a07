package compaction

import (
	"strconv"

	"compactd/internal/events"
)

// Placeholders. The texts are those of the reference system.
const (
	ClearText    = "[Tool result cleared]"
	ClearOldText = "[Old tool result content cleared]"
	AnswerText   = "[Tool result unavailable - conversation was compacted]"
	TruncateText = "[Earlier conversation history was truncated to fit within context limits]"

	dedupeHead   = "[File "
	dedupeTail   = " - refer to latest read below]"
	callTextHead = "[Tool call for "
	callTextTail = " - conversation was compacted]"

	maxToolUnits = 64    // of a tool's name inside a placeholder
	maxPathUnits = 1_024 // longer paths are not taken for files
)

// What placeholders say under a policy with a recall notice. Of what a marker
// stands for only the end is sure, so it names no turns.
const (
	RecallHead    = " Recall "
	recallTurn    = RecallHead + "turn "
	recallMessage = ", message "
	recallMarker  = RecallHead + "any turn to see it."

	recallNotice = 44 // most units of what a placeholder adds, numbers included
)

// placeholderUnits is the size of what an edit puts into the place of a result, a
// path excluded; 0 where placeholders have no notice, and their op tells it.
func (r *Rate) placeholderUnits(o events.Op) int64 {
	if !r.Recall {
		return 0
	}
	var e Entry
	e.set(&events.Edit{Op: o})
	return e.placeholderUnits() + recallNotice
}

// placeholderUnits is the most units that a placeholder has, a path excluded.
func (e *Entry) placeholderUnits() int64 {
	switch {
	case e.Ceiling > 0:
		return int64(e.Ceiling)
	case e.Op == opClearOld:
		return unitsOf(ClearOldText)
	case e.Op == opDeduplicate:
		return unitsOf(dedupeHead) + unitsOf(dedupeTail)
	default:
		return unitsOf(ClearText)
	}
}

// recall is the placeholder of a result, with what it says of its original.
func (e *Entry) recall(placeholder string) string {
	if e.Ceiling == 0 {
		return placeholder
	}
	b := append(append(make([]byte, 0, 128), placeholder...), recallTurn...)
	b = append(strconv.AppendUint(b, uint64(e.Turn), 10), recallMessage...)
	return string(strconv.AppendUint(b, uint64(e.Index), 10))
}

// unitsOf is the size of a text that is plain ASCII.
func unitsOf(s string) int64 { return int64(len(s)) }
