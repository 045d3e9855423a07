package render

import (
	"errors"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
)

// Demands of a provider beyond its dialect are met in the written messages; see [traits.Demands].

// errNoText is the error of a message without the text that a demand needs.
var errNoText = errors.New("render: the text of a message is not there")

const reasoningContent = "reasoning_content"

// withoutReasoning drops the members of an assistant's message that the provider refuses. It reports whether
// any other content is left.
func (r *renderer) withoutReasoning(m *message) (kept bool, err error) {
	if len(r.view.Demands.Drops) == 0 || m.role != measure.RoleAssistant {
		return true, nil
	}
	if m.raw == nil {
		return true, errNoText
	}
	members, err := codec.ReadObject(m.raw)
	if err != nil {
		return true, err
	}
	left := slices.DeleteFunc(slices.Clone(members), func(x codec.Member) bool { return slices.Contains(r.view.Demands.Drops, x.Name) })
	if len(left) == len(members) {
		return true, nil
	}
	m.untouched = false
	m.raw = codec.WriteObject(left)
	r.note(events.OpUnbind, m)
	return slices.ContainsFunc(left, func(x codec.Member) bool {
		empty := x.Value.Kind() == 'n' || string(x.Value) == `""` || string(x.Value) == "[]"
		return !empty && slices.Contains([]string{"content", "tool_calls", "function_call", "refusal", "audio", "reasoning"}, x.Name)
	}), nil
}

// finish meets the provider's demands on the whole history.
func (r *renderer) finish() error {
	r.unmark()
	r.reason()
	if err := r.bridge(); err != nil {
		return err
	}
	return r.close()
}

// bridge puts lines between messages that must not be neighbours: an assistant's line between a tool's
// message and a user's, and where roles alternate a line of the other role between two messages that could
// not be joined. It runs last, so the order of the earlier repairs does not matter.
func (r *renderer) bridge() error {
	bridges := r.view.Demands.Bridges && !r.dialect.Units && !r.dialect.Apart
	if !bridges && !r.view.Demands.Alternates || r.dialect.Joined == dialect.JoinAll {
		return nil
	}
	tool := false
	out := make([]message, 0, len(r.out))
	for i := range r.out {
		m := &r.out[i]
		role, text := measure.RoleAssistant, ""
		switch again := r.view.Demands.Alternates && i > 0 && r.out[i-1].role == m.role; {
		case bridges && tool && m.role == measure.RoleUser && !m.results:
			text = measure.BridgeText
		case again && m.role == measure.RoleUser:
			text = measure.ApartText
		case again && m.role == measure.RoleAssistant && !r.dialect.Units && (r.dialect.Exchange != dialect.ByWords || !m.calls):
			role, text = measure.RoleUser, measure.CloseText
		}
		if text != "" {
			made, err := r.made(role, textMessage(speaker[role], text))
			if err != nil {
				return err
			}
			r.note(events.OpBridge, m)
			out = append(out, made)
		}
		out = append(out, *m)
		tool = m.role == measure.RoleTool || m.results || tool && isSystem(*m)
	}
	r.out = out
	return nil
}

// speaker has the roles of lines that compactd adds.
var speaker = map[measure.Role]dialect.Role{measure.RoleUser: dialect.RoleUser, measure.RoleAssistant: dialect.RoleAssistant}

// unmark drops marks for the cache from the oldest on, where they are more than the provider
// takes. Marks of messages that only the caller has are unknown: any older message loses all of
// its marks.
func (r *renderer) unmark() {
	left := max(traits.MaxMarks-r.view.Marks, 0)
	for i := len(r.out) - 1; i >= 0; i-- {
		m := &r.out[i]
		if m.raw == nil {
			left = 0
			continue
		}
		kept, more, dropped := dialect.NewestMarks(m.raw, left)
		if left = more; dropped > 0 {
			m.raw, m.untouched = kept, false
			r.note(events.OpUnmark, m)
		}
	}
}

// reason gives calls without reasoning a blank one if other messages of the agent have reasoning: then its
// model thinks, and the provider refuses such calls. See [traits.Demands].
func (r *renderer) reason() {
	if !r.view.Demands.Reasons || !slices.ContainsFunc(r.out, func(m message) bool { return m.first.Turn > 0 && codec.Get(m.raw, reasoningContent) != nil }) {
		return
	}
	for i := range r.out {
		m := &r.out[i]
		if m.role != measure.RoleAssistant || !m.calls || m.raw == nil || codec.Get(m.raw, reasoningContent) != nil {
			continue
		}
		if raw, err := codec.WithMember(m.raw, reasoningContent, codec.Quote(" ")); err == nil {
			m.raw, m.untouched = raw, false
			r.note(events.OpReason, m)
		}
	}
}

// close adds a user's line after the assistant's words if the last original message is not the assistant's:
// its result moved to its call, or it was blank. A paused response is continued.
func (r *renderer) close() error {
	last := len(r.out) - 1
	for last >= 0 && isSystem(r.out[last]) {
		last--
	}
	if !r.view.Demands.NoPrefill || last < 0 || r.out[last].role != measure.RoleAssistant || r.out[last].paused > 0 || r.view.endsOnAssistant() || r.opens() {
		return nil
	}
	m, err := r.made(measure.RoleUser, textMessage(dialect.RoleUser, measure.CloseText))
	if err != nil {
		return err
	}
	r.note(events.OpClose, &r.out[last])
	r.out = append(r.out, m)
	return nil
}

// endsOnAssistant reports whether the last original message is an assistant's.
func (v *View) endsOnAssistant() bool {
	var last *measure.Entry
	for i := range v.Entries {
		e := &v.Entries[i]
		if e.Kind < measure.KindTruncation && e.Role != measure.RoleSystem && (last == nil || last.Compare(e.Position()) < 0) {
			last = e
		}
	}
	return last == nil || last.Role == measure.RoleAssistant
}
