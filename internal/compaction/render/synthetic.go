package render

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// IDNamespace is the namespace of the ids of outcomes and of synthetic messages.
var IDNamespace = uuid.MustParse("6f8f4a6c-1d0e-5b7a-9c57-0c8f3d6b2a11")

// Messages made by compactd have ids in dialects with ids. The ids follow from the messages that they
// represent, so every rendering of a history has the same; within a session no two are equal.

// syntheticID is the id of a message that completes an entry.
func syntheticID(prefix string, e *measure.Entry) string {
	return prefix + idOf("%s %d %d %d %d", prefix, e.Seq, e.Turn, e.Index, e.Part)
}

func idOf(format string, args ...any) string {
	return uuid.NewSHA1(IDNamespace, fmt.Appendf(nil, format, args...)).String()
}

// truncationMessage is a truncation notice. Only the end of its range is sure: a summary may cover the
// beginning.
func (r *renderer) truncationMessage(e *measure.Entry) dialect.Message {
	text := measure.TruncateText
	if int64(e.Text) > measure.UnitsOf(text) && r.view.Originals == ByPlace { // a range has no hash
		text += measure.RecallMarker
	}
	m := textMessage(dialect.RoleUser, text)
	end := e.End()
	m.Truncation = idOf("truncation %d %d", end.Turn, end.Index)
	m.ID = "truncation-marker-" + m.Truncation
	return m
}

// summary adds the message of a summary, with its id.
func (r *renderer) summary(e *measure.Entry) error {
	msgs, err := r.texts(e.Seq)
	if err != nil || len(msgs) == 0 {
		return fmt.Errorf("render summary at %d: %d messages: %w", e.Seq, len(msgs), err)
	}
	m := msgs[0]
	if kept := e.Spares(); kept != (measure.Spares{}) {
		var lines []dialect.Message
		for _, i := range kept.List() {
			if int(i)+1 < len(msgs) {
				lines = append(lines, msgs[i+1])
			}
		}
		m = events.WithSpare(m, lines)
	}
	m.Condensation = idOf("condensation %d", e.Seq)
	m.ID = "summary-" + m.Condensation
	return r.placeholder(m)
}

// placeholder adds the placeholder of hidden messages.
func (r *renderer) placeholder(m dialect.Message) error {
	m.As = r.view.PlaceholderRole
	return r.addMade(m)
}

// addMade adds a user's message made by compactd that answers no call.
func (r *renderer) addMade(m dialect.Message) error {
	out, err := r.made(measure.RoleUser, m)
	if err == nil {
		r.put(rest, out)
	}
	return err
}

// result is the placeholder result of a call.
func (r *renderer) result(e *measure.Entry, source *dialect.Message) (message, error) {
	role, as := measure.RoleTool, r.dialect.Results
	if as == dialect.RoleUser {
		role = measure.RoleUser
	}
	call := &source.Parts[e.Part]
	p := dialect.Part{Kind: dialect.PartResult, CallID: call.CallID, Tool: call.Tool, Text: measure.AnswerText, Other: call.Raw}
	return r.made(role, dialect.Message{Role: as, Parts: []dialect.Part{p}, ID: syntheticID("repair-result-", e), Timestamp: r.timestampOf(source)})
}

// timestampOf is the timestamp of the current message, searched for once.
func (r *renderer) timestampOf(m *dialect.Message) codec.Raw {
	if !r.stamped {
		r.timestamp, r.stamped = m.TimestampOf(), true
	}
	return r.timestamp
}

// unknownTool is the name of a tool whose result does not name it.
const unknownTool = "unknown"

// call is the placeholder call of a result.
func (r *renderer) call(e *measure.Entry, source *dialect.Message) (message, error) {
	result := &source.Parts[e.Part]
	tool := headUnits(result.Tool, measure.MaxToolUnits)
	m := textMessage(dialect.RoleAssistant, measure.CallTextHead+cmp.Or(tool, unknownTool)+measure.CallTextTail)
	if !r.dialect.Anonymous { // others refuse a call without a name
		tool = cmp.Or(tool, unknownTool)
	}
	m.ID, m.Timestamp = syntheticID("repair-call-", e), r.timestampOf(source)
	m.Parts = append(m.Parts, dialect.Part{Kind: dialect.PartCall, CallID: result.CallID, Tool: tool, Other: result.Raw})
	if r.view.Demands.Reasons {
		m.Parts = append(m.Parts, dialect.Part{Kind: dialect.PartThinking, Aside: true, Text: " "})
	}
	return r.made(measure.RoleAssistant, m)
}

func textMessage(role dialect.Role, text string) dialect.Message {
	return dialect.Message{Role: role, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}
}

// headUnits returns the longest head of s with at most n UTF-16 units.
func headUnits(s string, n int) string {
	for i, c := range s {
		if n -= len(string(c)); n < 0 { // bytes, never fewer than units
			return s[:i]
		}
	}
	return strings.Clone(s)
}
