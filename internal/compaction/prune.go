package compaction

import (
	"slices"

	"compactd/internal/events"
)

// Prune clears the contents of old tool results. From the newest on, results
// stay whole until protect tokens of them are kept; the one that crosses the
// bound stays too. So do all results after the last assistant message, which the
// agent has not read yet, results of protected tools, and a read that the
// placeholder of another points to. Prune changes nothing when it would save
// less than minimum.
func (d *Draft) Prune(protect, minimum Tokens, protectedTools []string) {
	protected := keysOf(protectedTools)
	referred := d.referred()
	var clear []int
	var kept, saved Tokens
	unread := true
	for i := len(d.entries) - 1; i >= 0; i-- {
		e := &d.entries[i]
		if e.Role == RoleAssistant {
			unread = false
		}
		if !e.whole() || slices.Contains(protected, e.Tool) || referred[i] {
			continue
		}
		if unread || kept < protect {
			kept += d.rate.body(e)
			continue
		}
		if s := d.saving(i, events.OpClear); s > 0 {
			clear = append(clear, i)
			saved += s
		}
	}
	if saved < minimum {
		return
	}
	slices.Reverse(clear)
	d.edit(events.OpClear, clear)
}
