package render

import (
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// A system message keeps its place. Most dialects accept it anywhere but between calls and their results.
// Anthropic accepts it after a user's message and before an assistant's or the end, and only for some models:
// else its words become a user's in their place.

// insideModels are the families of Claude that accept system messages within a conversation, on any platform.
// Source: platform.claude.com, "Mid-conversation system messages and tool changes", read on 2026-11-22, which
// excepts Sonnet 5. For Sonnet 5.5 and Haiku 5.5: the model profiles of langchain-anthropic 1.5.13 of
// 2026-10-20.
var insideModels = []string{
	"fable-5", "mythos-5", "opus-4-8", "opus-5", "sonnet-5-5", "haiku-5-5",
}

// SystemInside reports whether a model accepts system messages within a conversation of the dialect
// anthropic. Platforms add other signs and words to a model's name.
func SystemInside(model string) bool {
	name := strings.NewReplacer(".", "-", "_", "-", "@", "-").Replace(strings.ToLower(model))
	return slices.ContainsFunc(insideModels, func(family string) bool {
		_, behind, ok := strings.Cut(name, family)
		return ok && (behind == "" || behind[0] < '0' || behind[0] > '9')
	})
}

// awaits reports whether calls at the end of the view await their results.
func (r *renderer) awaits() bool {
	return slices.ContainsFunc(r.out[r.open:], isSystem) && r.called && r.opens()
}

// opens reports whether any call of the view awaits its result.
func (r *renderer) opens() bool {
	if r.pairs == nil {
		r.pairs = stage.Pair(r.view.Entries, r.view.Format)
	}
	for i := range r.view.Entries {
		e := &r.view.Entries[i]
		if e.Kind == measure.KindCall && r.pairs.Other[i] < 0 && !e.Flags.Has(measure.FlagEmpty|measure.FlagAnswer) {
			return true
		}
	}
	return false
}

// instructAhead puts the system messages of the open exchange before its calls: nothing may be between these
// and the results that the agent appends. If calls and results are messages of their own, earlier calls
// belong to it too.
func (r *renderer) instructAhead() {
	at := r.resumed()
	if r.dialect.Exchange == dialect.ByWords {
		for at > 0 && (r.out[at-1].calls || r.out[at-1].results) {
			at--
		}
	}
	r.ranks = slices.Insert(r.ranks, 0, slices.Repeat([]rank{speech}, r.open-at)...)
	r.open, r.done = at, min(r.done, at)
	for i := range r.ranks {
		if isSystem(r.out[r.open+i]) {
			r.ranks[i] = ahead
		}
	}
}

// resumed returns the beginning of the open exchange, or of the earlier one whose calls of the provider's own
// tools have their results in it: no words may be between these either.
func (r *renderer) resumed() int {
	if !r.dialect.HostedPairs {
		return r.open
	}
	at, n := len(r.out), 0
	for ; at > 0 && (at > r.open || n > 0); at-- {
		m := &r.out[at-1]
		n = max(n-m.paused, 0) + m.resumed
	}
	return at
}

func isSystem(m message) bool { return m.role == measure.RoleSystem }

// placeInstructions makes the system messages of the open exchange a user's if the model, or their place,
// does not allow them.
func (r *renderer) placeInstructions() error {
	if !r.dialect.SystemByModel {
		return nil
	}
	if r.view.SystemInside {
		r.instructLast()
	}
	before, behind := r.open-1, -1 // neighbours that are not system messages
	for before >= 0 && isSystem(r.out[before]) {
		before--
	}
	for i := r.open; i < len(r.out); i++ {
		m := &r.out[i]
		if isSystem(*m) {
			for behind = max(behind, i); behind < len(r.out) && isSystem(r.out[behind]); {
				behind++
			}
			if r.view.SystemInside && r.mayInstruct(before, behind) {
				continue
			}
			if err := r.asUser(m); err != nil {
				return err
			}
		}
		if !isSystem(*m) {
			before = i
		}
	}
	return nil
}

// instructLast puts a system message behind the user's message that follows it.
func (r *renderer) instructLast() {
	list := r.out[r.open:]
	first := slices.IndexFunc(list, isSystem)
	if first < 0 || slices.ContainsFunc(list[first:], func(m message) bool { return m.role == measure.RoleAssistant }) {
		return
	}
	last := len(list) - 1
	for last > first && isSystem(list[last]) {
		last--
	}
	for i := first; i < last; i++ {
		if isSystem(list[i]) {
			r.placed(list[i], r.open+last+1)
		}
	}
	slices.SortStableFunc(list[first:], func(a, b message) int {
		switch {
		case isSystem(a) == isSystem(b):
			return 0
		case isSystem(a):
			return 1
		default:
			return -1
		}
	})
}

// mayInstruct reports whether system messages may be at a place, given the neighbours that are not system
// messages: after a user's message, and before an assistant's or the end.
func (r *renderer) mayInstruct(before, behind int) bool {
	return before >= 0 && r.out[before].role != measure.RoleAssistant &&
		(behind == len(r.out) || r.out[behind].role == measure.RoleAssistant)
}

// ofSystem are members that only a system message has.
var ofSystem = []string{"clear_at", "output_config"}

// asUser makes a system message a user's. A message with more than text stays: it is an order to the
// provider, and no user can give it.
func (r *renderer) asUser(m *message) error {
	read, err := r.readRaw(m.raw)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(read.Parts, func(p dialect.Part) bool { return p.Kind != dialect.PartText }) {
		return nil
	}
	members, err := codec.ReadObject(m.raw)
	if err != nil {
		return err
	}
	members = slices.DeleteFunc(members, func(x codec.Member) bool { return slices.Contains(ofSystem, x.Name) })
	m.untouched = false
	r.note(events.OpRole, m)
	m.role, m.raw = measure.RoleUser, codec.WriteObject(codec.SetMember(members, "role", codec.Raw(`"user"`)))
	return nil
}

// joins reports whether two neighbours become one message: both have a role that the dialect joins. A system
// message that holds for a time, or that sets more than its words, stays alone.
func (r *renderer) joins(a, b *message) bool {
	words := r.view.Demands.Alternates && a.role == measure.RoleUser && !a.results && !b.results
	switch {
	case a.role != b.role:
		return false
	case r.dialect.Joined == dialect.JoinAll:
		return plain(a) && plain(b)
	case r.dialect.Joined == dialect.JoinTools:
		return words || a.role == measure.RoleAssistant || a.role == measure.RoleTool
	case r.dialect.Units: // messages of one response are several items
		return words
	case r.dialect.Exchange == dialect.ByWords: // a call is a message of its own
		return (words || r.view.Demands.Alternates && a.role == measure.RoleAssistant && !a.calls && !b.calls) && isText(a) && isText(b)
	default:
		return words || r.view.Demands.Alternates && a.role == measure.RoleAssistant
	}
}

// isText reports whether the content of a message is a string, as far as known.
func isText(m *message) bool {
	if m.raw == nil {
		return true
	}
	for name, value := range codec.Members(m.raw) {
		if name == "content" {
			return value.Kind() == '"'
		}
	}
	return false
}

func plain(m *message) bool {
	if !isSystem(*m) {
		return true
	}
	for name := range codec.Members(m.raw) {
		if slices.Contains(ofSystem, name) {
			return false
		}
	}
	return true
}
