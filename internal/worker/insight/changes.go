package insight

import (
	"bytes"
	"slices"
	"strings"

	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize/snippet"
)

// maxText limits the text of a message in a row, in bytes.
const maxText = 16 << 10

// Changes pairs the messages before a compaction with those after it, in the order of the history. edits are
// the compaction's edits; count estimates the tokens of a message.
func Changes(f events.Format, before, after []render.Sourced, edits []events.Edit, count func(dialect.Message) int64) []events.Change {
	p := pairing{format: f, edits: edits, count: count}
	at, own := map[events.Position]int{}, map[string]int{} // own: messages of compactd, without a position
	for i := range before {
		if before[i].First.Turn > 0 {
			at[before[i].First] = i
		} else {
			own[string(before[i].Raw)] = i
		}
	}
	next := 0
	for k := range after {
		i, found := at[after[k].First]
		if after[k].First.Turn == 0 {
			i, found = own[string(after[k].Raw)]
		}
		if !found || i < next {
			p.add(nil, &after[k])
			continue
		}
		for ; next < i; next++ {
			p.add(&before[next], nil)
		}
		p.add(&before[i], &after[k])
		next++
	}
	for ; next < len(before); next++ {
		p.add(&before[next], nil)
	}
	return p.rows
}

// pairing makes the rows.
type pairing struct {
	format events.Format
	edits  []events.Edit
	count  func(dialect.Message) int64
	rows   []events.Change
}

// add adds a row. before or after may be nil.
func (p *pairing) add(before, after *render.Sourced) {
	c := events.Change{Action: events.ActionRemoved}
	if after != nil {
		c.Action, c.Turn, c.Index = events.ActionAdded, after.First.Turn, after.First.Index
		c.After, c.Role, c.TokensAfter = p.show(after, &c)
	}
	if before != nil {
		c.Turn, c.Index = before.First.Turn, before.First.Index
		c.Before, c.Role, c.TokensBefore = p.show(before, &c)
	}
	switch {
	case before == nil || after == nil:
	case bytes.Equal(before.Raw, after.Raw):
		c.Action, c.After = events.ActionKept, ""
	default:
		c.Action = events.ActionChanged
	}
	if before != nil && c.Action != events.ActionKept {
		c.Op = p.op(before.First)
	}
	p.rows = append(p.rows, c)
}

// show returns a message as text, its role and its tokens.
func (p *pairing) show(s *render.Sourced, c *events.Change) (text string, role dialect.Role, tokens int64) {
	m, err := p.format.Read(s.Raw)
	if err != nil {
		text = string(s.Raw)
	} else {
		text, role, tokens = Text(&m), m.Role, p.count(m)
	}
	short := snippet.Head(text, maxText)
	c.Cut = c.Cut || len(short) < len(text)
	return short, role, tokens
}

// op returns the edit of a message: its own, or that of a range.
func (p *pairing) op(at events.Position) (op events.Op) {
	for i := range p.edits {
		e := &p.edits[i]
		switch {
		case e.Turn == at.Turn && e.Index == at.Index && (e.To == nil || op == ""):
			return e.Op
		case e.To != nil && at.Compare(e.Position) >= 0 && at.Compare(*e.To) <= 0:
			op = e.Op
		}
	}
	return op
}

// Text returns a message as readable text: its parts, with an arrow before a call and a result.
func Text(m *dialect.Message) string {
	var out []string
	for _, p := range m.Parts {
		out = append(out, partText(&p))
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), "\n\n")
}

func partText(p *dialect.Part) string {
	switch p.Kind {
	case dialect.PartCall:
		return "→ " + p.Tool + " " + string(p.Args)
	case dialect.PartResult:
		return "← " + strings.TrimSpace(p.Tool+"\n") + p.Text
	case dialect.PartThinking:
		return "(thinking) " + p.Text
	case dialect.PartImage:
		return "(image)"
	}
	return p.Text
}

// Pages returns the first rows of pages of about limit bytes; the first is 0.
func Pages(rows []events.Change, limit int) []int {
	starts, size := []int{0}, 0
	for i := range rows {
		n := 2*(len(rows[i].Before)+len(rows[i].After)) + rowBytes // quotes and line ends take two
		if size > 0 && size+n > limit {
			starts, size = append(starts, i), 0
		}
		size += n
	}
	return starts
}

// rowBytes estimates the bytes of a row without its texts.
const rowBytes = 200
