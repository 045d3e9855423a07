package syncs

import (
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
)

// maxDropped limits the messages that a warning names.
const maxDropped = 8

// warnDropped warns of messages that are omitted although no compaction hides them: empty ones,
// and ones that the provider would refuse. It does not warn of thinking. at returns the index in
// the history of a message of the view, or a negative number.
func (r *request) warnDropped(view *render.View, parts []events.SyncPart, at func(turn, index int) int) {
	behind := func(p events.SyncPart) bool { return p.Drop != nil && int(p.Drop[1]) > r.history.Before }
	if !slices.ContainsFunc(parts, behind) {
		return
	}
	visible := map[int]bool{}
	for i := range view.Entries {
		e := &view.Entries[i]
		if e.Kind < measure.KindTruncation && !e.Flags.Has(measure.FlagThinking) && e.Turn > 0 {
			visible[at(int(e.Turn), int(e.Index))] = true
		}
	}
	var dropped []string
	for _, p := range parts {
		if !behind(p) {
			continue
		}
		for i := max(int(p.Drop[0]), r.history.Before); i < int(p.Drop[1]) && len(dropped) < maxDropped; i++ {
			if visible[i] {
				dropped = append(dropped, fmt.Sprint(i))
			}
		}
	}
	if len(dropped) > 0 {
		r.warn(events.CodeMessagesDropped, "They are at index "+strings.Join(dropped, ", ")+".")
	}
}
