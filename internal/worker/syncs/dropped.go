package syncs

import (
	"fmt"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// maxDropped bounds how many messages a warning names.
const maxDropped = 8

// warnDropped warns of messages that are left out although no compaction hides them: they are
// empty, or the provider would refuse them. Thinking that goes is no message.
func (x *request) warnDropped(st *state, view *compaction.View, parts []events.SyncPart) {
	if view == nil || x.known.View > 0 {
		return
	}
	visible := map[int]bool{}
	for i := range view.Entries {
		e := &view.Entries[i]
		if turn := int(e.Turn); e.Kind < measure.KindTruncation && !e.Flags.Has(measure.FlagThinking) && 0 < turn && turn <= len(st.chain) {
			visible[x.known.Index(events.Start(st.chain, turn-1)+int(e.Index))] = true
		}
	}
	var dropped []string
	for _, p := range parts {
		if p.Drop == nil {
			continue
		}
		for i := max(int(p.Drop[0]), x.history.Before); i < int(p.Drop[1]) && len(dropped) < maxDropped; i++ {
			if visible[i] {
				dropped = append(dropped, fmt.Sprint(i))
			}
		}
	}
	if len(dropped) > 0 {
		x.warn(events.CodeMessagesDropped, "They are at index "+strings.Join(dropped, ", ")+".")
	}
}
