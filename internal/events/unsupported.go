package events

import (
	"fmt"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// ReadNew reads messages that are to be published: those of [Format.ReadAll] that are
// [Format.Complete].
func (f Format) ReadNew(raws []codec.Raw) ([]dialect.Message, error) {
	msgs, err := f.ReadAll(raws)
	if err != nil {
		return nil, err
	}
	return msgs, f.Complete(msgs)
}

// Complete refuses messages that were read and would be misread: those of another dialect,
// and calls or results without the id that pairs them. It is apart from reading: messages
// that were taken before stay readable. Its error is an [*Invalid] that names the first
// few, as messages[3].
func (f Format) Complete(msgs []dialect.Message) error {
	var bad problems
	for i := range msgs {
		m := &msgs[i]
		k := slices.IndexFunc(m.Parts, func(p dialect.Part) bool { return p.NoID })
		if k < 0 && !f.suspect(m) {
			continue
		}
		field := fmt.Sprintf("messages[%d]", i)
		if from := f.kinOf(m.Raw); from != nil {
			bad.add(CodeForeignDialect, field, "%s", from.describe(f))
		} else if k >= 0 {
			bad.add(CodeMissingCallID, field, "%s", f.lacking(m.Parts[k].Kind))
		}
		if len(bad) == maxBadMessages {
			break
		}
	}
	return bad.err()
}

// lacking names what a call or result lacks.
func (f Format) lacking(k dialect.PartKind) string {
	if k == dialect.PartCall {
		return f.Dialect().Call
	}
	return f.Dialect().Result
}

// known are the roles that this package or another library has: any other may be content.
var known = strings.Fields("system developer user assistant tool function tool_call tool_result model human ai bot agent data ipython " +
	"toolCall toolResult bashExecution custom branchSummary compactionSummary")

// problem is the defect of a message that cannot be read: it is of another dialect, or of none.
func (f Format) problem(field string, raw codec.Raw, err error) Problem {
	if k := f.kinOf(raw); k != nil {
		return Problem{CodeForeignDialect, field, k.describe(f)}
	}
	return Problem{CodeBadMessage, field, f.explain(raw, err)}
}

// explain describes the defect of a message of no dialect.
func (f Format) explain(raw codec.Raw, err error) string {
	ms, bad := codec.ReadObject(raw)
	if err != dialect.ErrNoRole || bad != nil { //nolint:errorlint // a sentinel of this package, never wrapped
		return err.Error() + mistake(raw)
	}
	text := "has no role"
	if role := codec.Lookup(ms, "role"); role != nil {
		name, ok := codec.Text(role)
		switch {
		case !ok:
			text = "has a role that is no string"
		case !slices.Contains(known, name):
			text = "has a role that is none of " + string(f)
		default:
			text = fmt.Sprintf("has the role %q, which is none of %s", name, f)
		}
	}
	return text + " (" + f.Dialect().Roles + ")" + mistake(raw)
}

// mistake describes a message of no dialect, and what to send in its place; "" for an unknown mistake.
func mistake(raw codec.Raw) string {
	ms, err := codec.ReadObject(raw)
	switch {
	case err != nil && raw.Kind() == '"':
		return "; it is a string: put it into {\"role\":\"user\",\"content\":…}"
	case err != nil:
		return ""
	case codec.Lookup(ms, "message").Kind() == '{':
		return "; it looks like a line of a transcript: send its message"
	case codec.Lookup(ms, "role") == nil && slices.Contains([]string{"text", "tool_use", "tool_result", "thinking", "image"}, members(ms).text("type")):
		return "; it looks like a block of a message: put blocks into content of a message with a role"
	}
	return ""
}

// firstOf returns the members of the first object of an array, nil without one.
func firstOf(array codec.Raw) []codec.Member {
	all := codec.Elements(array)
	if len(all) == 0 {
		return nil
	}
	ms, err := codec.ReadObject(all[0])
	if err != nil {
		return nil
	}
	return ms
}

// arrayOf describes an array that came in place of an event.
func arrayOf(data codec.Raw) string {
	all, err := codec.ReadArray(data)
	text := fmt.Sprintf("an array of %d, not one JSON object", len(all))
	if first := firstOf(data); err == nil && first != nil {
		switch {
		case codec.Lookup(first, "messages") != nil:
			text += "; send the events one by one"
		case codec.Lookup(first, "role") != nil || Format("").kinOf(all[0]) != nil:
			text += "; if it is messages, send {\"messages\":[…]}"
		}
	}
	return text
}
