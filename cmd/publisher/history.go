package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

type historyCmd struct {
	Session    named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to query."`
	Limit      int64         `default:"20" placeholder:"N" help:"Compactions to list, the newest (${default})."`
	Generation string        `placeholder:"N|newest" help:"Show what generation N, or the newest, changed: message by message."`

	number int64 // of Generation; 0 is the newest
}

// Validate finds wrong usage that kong cannot find.
func (c *historyCmd) Validate() error {
	switch {
	case c.Limit < 1 || c.Limit > events.MaxHistory:
		return fmt.Errorf("--limit must be between 1 and %d", events.MaxHistory)
	case c.Generation == "", c.Generation == "newest":
		return nil
	}
	var err error
	if c.number, err = strconv.ParseInt(c.Generation, 10, 64); err != nil || c.number < 1 {
		return errors.New("--generation must be a generation from 1, or newest")
	}
	return nil
}

// Run lists the compactions, or shows one.
func (c *historyCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	a := f.address(c.Session)
	in := events.HistoryRequest{About: a.About(), Limit: c.Limit}
	if c.Generation != "" {
		in.Limit = events.MaxHistory
	}
	var h events.HistoryResponse
	if err := request.SendOf(ctx, nc, events.SubjectHistory, a.Tenant, in, &h); err != nil {
		return err
	}
	if c.Generation == "" || f.JSON || !h.Known {
		return f.showKnown(h.Known || len(h.Entries) > 0, a, h, func(w io.Writer) error { return writeCompactions(w, a, &h) })
	}
	e := c.entry(&h)
	if e == nil {
		return fmt.Errorf("%s has no compaction of that generation among its newest %d; %s history --session %s lists them", named.Show(a), events.MaxHistory, cli.Program("publisher"), cli.Word(named.Name(a.Session)))
	}
	shown, err := change(ctx, nc, a, e.Generation, int(e.Messages))
	if err != nil || shown == nil {
		return err
	}
	shown.TokensBefore, shown.TokensAfter = e.TokensBefore, e.TokensAfter
	shown.Title = fmt.Sprintf("%s, generation %d at turn %d, %s", named.Show(a), e.Generation, e.Through.Turn, diff.Because(e.Reason, e.StagesUsed))
	return shown.Write(f.screen())
}

// entry is the compaction to show, nil without one.
func (c *historyCmd) entry(h *events.HistoryResponse) *events.HistoryEntry {
	for i := range h.Entries {
		e := &h.Entries[i]
		if e.Compacted && e.RewoundTo == nil && (c.number == e.Generation || c.number == 0) {
			return e
		}
	}
	return nil
}

func writeCompactions(w io.Writer, a events.Address, h *events.HistoryResponse) error {
	if err := term.Wrapped(w, fmt.Sprintf("%s: generation %d through turn %d", named.Show(a), h.Generation, h.Through.Turn)); err != nil {
		return err
	}
	if len(h.Entries) == 0 {
		_, err := fmt.Fprintln(w, "not compacted yet")
		return err
	}
	t := term.NewTable(w, term.Column{Name: "TIME"}, term.Column{Name: "GEN", Right: true}, term.Column{Name: "TURN", Right: true, Drop: 3},
		term.Column{Name: "REASON"}, term.Column{Name: "STAGES", Min: 9}, term.Column{Name: "TOKENS", Right: true}, term.Column{Name: "SAVED", Right: true, Drop: 1},
		term.Column{Name: "MESSAGES", Right: true, Drop: 2}, term.Column{Name: "CAUSE", Min: 10, Drop: 4})
	for _, e := range h.Entries {
		t.Row(time.UnixMilli(e.Time).Local().Format(time.DateTime), e.Generation, e.Through.Turn, strings.ReplaceAll(string(e.Reason), "_", " "), how(&e),
			fmt.Sprintf("%d → %d", e.TokensBefore, e.TokensAfter), e.TokensBefore-e.TokensAfter, e.Messages, cause(&e))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if h.Older > 0 {
		_, err := fmt.Fprintf(w, "(and %d before; --limit N lists more)\n", h.Older)
		return err
	}
	return nil
}

// how names what was done.
func how(e *events.HistoryEntry) string {
	switch {
	case e.RewoundTo != nil:
		return fmt.Sprintf("rewound to %d", *e.RewoundTo)
	case !e.Compacted:
		return "unchanged: " + string(e.Code)
	}
	var names []string
	var files, filesKept, lines, linesKept int64
	for _, s := range e.Stages {
		files, filesKept, lines, linesKept = files+s.Missing, filesKept+s.Restored, lines+s.LinesMissing, linesKept+s.LinesKept
		if slices.Contains(e.StagesUsed, s.Name) {
			names = append(names, fmt.Sprintf("%s −%d", s.Name, s.TokensBefore-s.TokensAfter))
		}
	}
	text := strings.Join(names, ", ")
	if e.SummaryModel != "" {
		text += ", by " + e.SummaryModel
	}
	if files > 0 {
		text += fmt.Sprintf(", kept %d of %d files in use", filesKept, files)
	}
	if lines > 0 {
		text += fmt.Sprintf(", kept %d of %d lines in use", linesKept, lines)
	}
	return text
}

// causes maps the reason of a compaction to the kind of the event that led to it; other reasons: a turn.
var causes = map[events.Reason]events.Kind{
	events.ReasonBackground: events.KindSummary, events.ReasonManual: events.KindCompact, events.ReasonOverflow: events.KindOverflow,
	events.ReasonRewind: events.KindRewind, events.ReasonIdle: events.KindIdle,
}

// cause is the event that led to a compaction, and its sequence in the log.
func cause(e *events.HistoryEntry) string {
	kind, other := causes[e.Reason]
	if other {
		by := e.CausedBy
		if e.Request != nil {
			by = *e.Request
		}
		return fmt.Sprintf("%s at %d", kind, by.Seq)
	}
	if e.CausedBy.Seq == e.Through.Seq {
		return fmt.Sprintf("turn %d at %d", e.Through.Turn, e.CausedBy.Seq)
	}
	return fmt.Sprintf("event at %d", e.CausedBy.Seq)
}

// change returns what a compaction of a session changed: its history as of the generation
// before and as of this one, which had so many messages; 0 leaves the turns since in
// both. It is nil for an unknown session.
func change(ctx context.Context, nc *nats.Conn, a events.Address, generation int64, messages int) (*diff.Change, error) {
	var sides [2]*events.ContextResponse
	for i, g := range []int64{generation - 1, generation} {
		h, err := request.History(ctx, nc, events.ContextRequest{About: a.About(), Generation: &g})
		if err != nil || !h.Known {
			return nil, err
		}
		sides[i] = h
	}
	out := &diff.Change{
		Count: diff.Estimate(sides[1].Format), Recall: fmt.Sprintf("%s recall --session %s --turn N prints those of a turn.", cli.Program("publisher"), cli.Word(named.Name(a.Session))),
	}
	for i, into := range []*[]dialect.Message{&out.Before, &out.After} {
		if len(sides[i].Messages) == 0 {
			continue
		}
		all, err := sides[i].Format.ReadAll(sides[i].Messages)
		if err != nil {
			return nil, fmt.Errorf("read the messages: %w", err)
		}
		*into = all
	}
	if since := len(out.After) - messages; messages > 0 && since > 0 && since < len(out.Before) {
		out.Before, out.After = out.Before[:len(out.Before)-since], out.After[:messages]
	}
	return out, nil
}
