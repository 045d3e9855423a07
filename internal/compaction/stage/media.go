package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/traits"
)

// Media are cleared if the provider accepts fewer, or to save tokens that no result of a tool saves: the
// oldest first, wherever they are. Media of the newest exchange stay, since the agent works with them. Media
// of pinned messages and protected tools go last, and only for the provider's limit.

// mediaSlack is the part of a limit that clearing leaves free: one more medium would break the provider's
// cache again.
const mediaSlack = 4

// LimitMedia clears media until the provider accepts the rest, with some slack. It reports whether there were
// any.
func (d *Draft) LimitMedia(m traits.Media, protectedTools []string) bool {
	c := measure.CountMedia(d.entries)
	if !c.Over(m) {
		return c != measure.MediaCount{}
	}
	if c.TooLarge(m) {
		c = d.clearMedia(c, protectedTools, func(c, of measure.MediaCount) bool { return of.Large > 0 && c.TooLarge(m) })
		if c.TooLarge(m) { // the newest are large
			c = d.clearMedia(c, protectedTools, func(c, of measure.MediaCount) bool { return of.Images > 0 && c.TooLarge(m) })
		}
	}
	if m.Total != 0 && c.Total() > max(m.Total, 0) {
		c = d.clearMedia(c, protectedTools, func(c, _ measure.MediaCount) bool { return c.Total() > m.Total-m.Total/mediaSlack })
	}
	if m.Documents > 0 && c.Documents > m.Documents {
		d.clearMedia(c, protectedTools, func(c, of measure.MediaCount) bool {
			return of.Documents > 0 && c.Documents > m.Documents-m.Documents/mediaSlack
		})
	}
	return true
}

// clearMedia clears entries with media while goes, called with the media in view and the entry's, returns
// true; it returns the media then in view.
func (d *Draft) clearMedia(c measure.MediaCount, protectedTools []string, goes func(c, of measure.MediaCount) bool) measure.MediaCount {
	for _, last := range []bool{false, true} {
		for _, i := range d.media(protectedTools, last) {
			if of := d.entries[i].Count(); goes(c, of) {
				d.change(i, events.Edit{Op: events.OpClear, Units: d.mediaUnits(i)})
				c = c.Less(of)
			}
		}
	}
	return c
}

// mediaUnits is the size of the placeholder of a cleared entry, 0 if its kind decides it.
func (d *Draft) mediaUnits(i int) int64 {
	if d.entries[i].Kind == measure.KindWords {
		return 0
	}
	return d.rate.PlaceholderUnits(events.OpClear)
}

// ReduceMedia clears media until the history has at most target tokens, if the policy prunes to its target.
// It reports whether it cleared some and the history is still over the target.
func (d *Draft) ReduceMedia(target measure.Tokens, p *policy.Prune) (over bool) {
	if !p.Enabled || !p.ToTarget {
		return false
	}
	list, cleared := d.media(p.ProtectedTools, false), false
	for excess := d.Repaired() - target; excess > 0 && len(list) > 0; excess = d.Repaired() - target { // a repair goes through all entries
		for ; excess > 0 && len(list) > 0; list = list[1:] {
			i, was := list[0], d.tokens
			if d.saving(i, events.OpClear) > 0 {
				d.change(i, events.Edit{Op: events.OpClear, Units: d.mediaUnits(i)})
				cleared = true
			}
			excess -= was - d.tokens
		}
	}
	return cleared && d.Repaired() > target
}

// media lists the entries before the newest exchange with clearable media, oldest first: those that go last,
// or all others.
func (d *Draft) media(protectedTools []string, last bool) (out []int) {
	protected, referred := measure.KeysOf(protectedTools), d.referred()
	for i := range d.newestExchange() {
		e := &d.entries[i]
		switch {
		case e.Count() == measure.MediaCount{} || referred[i] || e.Flags.Has(measure.FlagThinking) || d.inUnit(e) || e.Role == measure.RoleSystem:
		case !e.IsMedia() && !e.Whole():
		case last == (pinned(*e) || e.Kind == measure.KindResult && slices.Contains(protected, e.Tool)):
			out = append(out, i)
		}
	}
	return out
}

// unread is the beginning of the entries without an answer of the agent.
func (d *Draft) unread() int {
	i := len(d.entries)
	for i > 0 && d.entries[i-1].Role != measure.RoleAssistant {
		i--
	}
	return i
}

// newestExchange is its beginning: the last messages of the assistant, or 0 without any.
func (d *Draft) newestExchange() int {
	i := d.unread()
	for i > 0 && d.entries[i-1].Role == measure.RoleAssistant {
		i--
	}
	return i
}
