package whatif

import (
	"context"
	"fmt"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/summarize/extract"
)

// adapt returns a recorded event as it would be after the policy emitted a different outcome; nil if it would
// not exist.
func (w *simulation) adapt(e *Event) (*Event, error) {
	if w.same {
		return e, nil
	}
	switch e.Kind {
	case events.KindOverflow, events.KindRewind, events.KindIdle:
		return nil, nil
	case events.KindSummary:
		if s, err := events.DecodeSummary(e.Data); err == nil && w.awaits[s.Job] {
			return e, nil
		}
		return nil, nil
	case events.KindTurn:
		return w.withoutUsage(e)
	}
	return e, nil
}

// withoutUsage removes the usage of a turn that was counted for a history of the recorded session only: one
// after a later compaction.
func (w *simulation) withoutUsage(e *Event) (*Event, error) {
	in, err := events.DecodeTurn(e.Data)
	if err != nil || in.Generation <= w.shared {
		return e, nil //nolint:nilerr // it is rejected, then as now
	}
	var fields map[string]codec.Raw
	if err := codec.Unmarshal(e.Data, &fields); err != nil {
		return nil, fmt.Errorf("read turn at %d: %w", e.Seq, err)
	}
	delete(fields, "usage")
	delete(fields, "generation")
	out := *e
	out.Data, err = codec.Marshal(fields)
	return &out, err
}

// deliver lets the summaries arrive that are due up to a time.
func (w *simulation) deliver(ctx context.Context, now int64) error {
	for len(w.due) > 0 && w.due[0].at <= now {
		d := w.due[0]
		w.due = w.due[1:]
		s, err := extract.New().Summarize(ctx, w.own.input(d.job))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s = &events.Summary{Failure: "no_room", Record: []events.RecordLine{}}
		}
		s.Header, s.Job = events.Header{V: events.Version, ID: "summary-" + d.job.ID}, d.job.ID
		data, err := codec.Marshal(s)
		if err != nil {
			return err
		}
		if err := w.take(w.simulate(events.KindSummary, d.at, data)); err != nil {
			return err
		}
	}
	return nil
}

// summary counts what was read and written for a summary that has come.
func (w *simulation) summary(s *events.Summary) {
	if s == nil || w.jobs[s.Job] == nil {
		return
	}
	if s.Failure != "" {
		w.sum.Summaries.Failed++
		return
	}
	in := w.own.input(w.jobs[s.Job])
	var read measure.Tokens
	if in.Previous != nil {
		read += w.ruler.of([]dialect.Message{in.Previous.Message()})
	}
	for _, m := range in.Messages {
		read += w.ruler.of([]dialect.Message{m.Message})
	}
	written := w.ruler.of([]dialect.Message{s.Message()})
	w.sum.Summaries.Made++
	w.sum.Summaries.Input += read
	w.sum.Summaries.Output += written
	w.chargeSummary(w.jobs[s.Job], read, written)
}

// receive does what agents and summarizers do with what they are emitted: they swap the
// history, and make summaries.
func (w *simulation) receive(e *Event, outs []compaction.Outcome) error {
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Rejected:
			w.sum.Rejected++
		case *events.Job:
			w.jobs[b.ID] = b
			w.sum.Summaries.Requested++
			if b.Lane != events.LaneBackground {
				w.sum.Summaries.Late++
			}
			if w.awaits[b.ID] = w.same; !w.same {
				w.due = append(w.due, dueJob{b, e.Time + w.delay})
			}
		case *events.Compacted:
			if !b.Compacted {
				w.sum.Nothing++
				continue
			}
			if err := w.swap(b, o.View); err != nil {
				return fmt.Errorf("compaction at %d: %w", e.Seq, err)
			}
		}
	}
	return nil
}

// swap takes the history of a compaction, and checks it.
func (w *simulation) swap(b *events.Compacted, v *render.View) error {
	raw, history, err := w.own.render(v)
	if err != nil {
		return err
	}
	f := w.sum
	f.Compactions++
	f.Reasons[b.Reason]++
	for _, s := range b.StagesUsed {
		f.Stages[s]++
	}
	if len(validate.Messages(b.Format, raw)) > 0 {
		f.Invalid++
	}
	if err := w.invalidate(b, raw, history); err != nil {
		return err
	}
	was := w.ruler.history
	w.ruler.history = w.ruler.of(history)
	f.taken += was - w.ruler.history
	if w.largest != nil && b.RewoundTo == nil && b.TokensBefore-b.TokensAfter > w.largest.Saved() {
		if err := w.show(b, history); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(b.Edits, func(e events.Edit) bool { return e.Op == events.OpCondense }) {
		f.Summaries.Used++
	}
	return nil
}
