package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// tableRow is an outcome in one line.
type tableRow struct {
	kind              string
	generation, turn  int64
	hasBudget         bool // generation, turn and tokens are set
	input, after, max int64
	level             events.Level
	note              string
}

// rowColumns are those of a table of rows.
func rowColumns() []term.Column {
	return []term.Column{
		{Name: "TIME", Width: 8},
		{Name: "SESSION", Width: 28, Min: 14},
		{Name: "OUTCOME", Width: 9, Style: outcome},
		{Name: "GEN", Width: 3, Right: true, Drop: 2},
		{Name: "TURN", Width: 5, Right: true, Drop: 3},
		{Name: "INPUT TOKENS", Width: 17},
		{Name: "AVAILABLE", Width: 9, Right: true, Drop: 4},
		{Name: "LEVEL", Width: 10, Style: level},
		{Name: "WHAT", Width: 16, Min: 10},
	}
}

// outcome highlights the kinds that need attention.
func outcome(kind string) term.Style {
	switch kind {
	case "compacted", "rewound":
		return term.Good
	case "rejected":
		return term.Bad
	case "attention", "unchanged", "forgotten":
		return term.Notice
	}
	return term.Plain
}

// cells are the columns of the row.
func (r tableRow) cells(at time.Time, a events.Address) []any {
	generation, turn, input, most := "-", "-", "-", "-"
	if r.hasBudget {
		generation, turn = fmt.Sprint(r.generation), fmt.Sprint(r.turn)
		input, most = fmt.Sprint(r.input), fmt.Sprint(r.max)
	}
	if r.hasBudget && r.after != r.input {
		input += fmt.Sprintf(" → %d", r.after)
	}
	return []any{at.Local().Format(time.TimeOnly), named.Name(a.Session), r.kind, generation, turn, input, most, cmp.Or(r.level, "-"), r.note}
}

// tableRowOf describes an outcome.
func tableRowOf(body any) tableRow {
	r := outcomeRow(body)
	for _, n := range events.NotesOf(body) {
		r.note = strings.TrimPrefix(r.note+"; "+noteText(n), "; ")
	}
	return r
}

// noteText is a note in one line.
func noteText(n events.Note) string {
	text := string(n.Code) + ": " + sentence(n.Message)
	if len(n.Fields) > 0 {
		text += " Ignored: " + strings.Join(n.Fields, ", ") + "."
	}
	return text
}

func outcomeRow(body any) tableRow {
	switch b := body.(type) {
	case *events.Compacted:
		return compactedRow(b)
	case *events.BudgetChanged:
		return tableRow{
			kind: "level", hasBudget: true, generation: b.Budget.Generation, turn: b.Through.Turn,
			input: b.Budget.EstimatedInput, after: b.Budget.EstimatedInput, max: b.Budget.AvailableInput, level: b.Level, note: percent(b.Budget.UsagePPM),
		}
	case *events.Rejected:
		kind := "rejected"
		if !events.Codes[b.Code].Rejects {
			kind = "attention"
		}
		return tableRow{kind: kind, note: strings.TrimSpace(fmt.Sprintf("%s at sequence %d: %s: %s %s", b.Kind, b.Seq, b.Code, sentence(b.Message), b.Hint))}
	case *events.Forgotten:
		return tableRow{kind: "forgotten", note: fmt.Sprintf("at sequence %d: send the history with replaces_from 1 if the session is to go on", b.Seq)}
	}
	return tableRow{kind: "other"}
}

func compactedRow(b *events.Compacted) tableRow {
	r := tableRow{
		kind: "compacted", hasBudget: true, generation: b.Generation, turn: b.Through.Turn,
		input: b.TokensBefore, after: b.TokensAfter, max: b.AvailableInput, level: b.Budget.Level, note: string(b.Reason),
	}
	switch {
	case !b.Compacted:
		r.kind, r.after, r.note = "unchanged", r.input, string(b.Reason)+": "+string(b.Code)
	case b.RewoundTo != nil:
		r.kind, r.note = "rewound", fmt.Sprintf("to generation %d", *b.RewoundTo)
	default:
		r.note = strings.TrimSuffix(r.note+": "+units.List(b.StagesUsed), ": ")
		if b.Code != "" {
			r.note += "; " + string(b.Code)
		}
	}
	return r
}

// sentence ends in a full stop.
func sentence(s string) string { return strings.TrimSuffix(s, ".") + "." }
