package syncs

import (
	"context"
	"errors"
	"slices"

	"compactd/internal/align"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/payload"
)

// unchanged returns an answer that leaves the history as it is. It replaces an answer that is not
// valid for its provider: a defect of this program that must not stop the agent. It names no view,
// and no messages that the next request may omit.
func (r *request) unchanged(ctx context.Context, out *events.SyncResponse) *events.SyncResponse {
	if r.history.Before > 0 && r.in.Form == events.FormMessages {
		return &events.SyncResponse{
			V: events.Version, Need: events.NeedAll, Recorded: true, Generation: out.Generation, Through: out.Through, Budget: out.Budget, Warnings: []events.SyncWarning{},
		}
	}
	r.warn(events.CodeInvalidHistory, "")
	r.budgetAlone(ctx, out)
	r.gave = givenAt{whole: out.Hash} // generation 0: the history as published
	out.View, out.Count, out.Hash = "", 0, events.Digest{}
	out.Parts, out.Changed = align.Keep(r.history.Len()), false
	out.Warnings = append([]events.SyncWarning{}, r.warnings...)
	if r.in.Form == events.FormMessages {
		out.Parts, out.Messages = nil, r.written(r.in.Messages)
	}
	return out
}

// keepAll returns an answer that leaves the history as it is. t is the last published turn, or nil.
func (r *request) keepAll(ctx context.Context, st *state, t *syncedTurn) *events.SyncResponse {
	n := r.history.Len()
	out := r.response(st, n)
	r.gave = givenAt{whole: out.Hash} // generation 0: the history as published
	out.Parts, out.Count, out.Hash = align.Keep(n), 0, events.Digest{}
	r.budgetAlone(ctx, out)
	if t != nil {
		out.Count, out.Hash, r.gave.whole = int64(r.until), t.whole, t.whole
	}
	if r.in.Form == events.FormMessages {
		out.Parts, out.Messages = nil, r.written(r.in.Messages)
	}
	return out
}

func (r *request) response(st *state, count int) *events.SyncResponse {
	base := st.base().Digest
	r.raised, r.untried = st.raised, st.untried
	return &events.SyncResponse{
		V: events.Version, Recorded: true, Known: r.recorded, Count: int64(count), Hash: base, View: viewName(st.generation, base),
		Turns: int64(r.known.Turns), Generation: st.generation, Through: st.last, Budget: st.budget,
		Warnings: append([]events.SyncWarning{}, r.warnings...),
	}
}

// finish adds budget_exceeded to an answer over the budget. It removes the name of a view that the
// provider has already refused.
func (r *request) finish(out *events.SyncResponse) {
	if out.Need != "" {
		return
	}
	if r.raised {
		out.Warnings = append(out.Warnings, events.WarningOf(events.CodeWindowRaised, ""))
	}
	refused := r.refused != "" && out.View == r.refused
	if refused {
		out.View = ""
	}
	late := isLate(out)
	failed := r.tried != nil && r.tried.Code == events.CodeBudgetExceeded
	if !out.Budget.WithinBudget || refused && (failed || !out.Recorded) {
		out.Code, out.Retry = events.CodeBudgetExceeded, &late // after a late answer a retry may fit
		warning := events.WarningOf(out.Code, "")
		if late {
			warning.Message, warning.Hint = "The next call does not fit, and its turn is not decided yet.", "Sync again."
		}
		out.Warnings = append(out.Warnings, warning)
		if failed {
			out.Stages = r.tried.Stages
		}
	}
}

// isLate reports whether the turns of an answer are not decided.
func isLate(out *events.SyncResponse) bool {
	return slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == events.CodeLate })
}

// answer returns the parts of a history to send. The session has the messages before index have; the
// later ones are kept.
func (r *request) answer(ctx context.Context, st *state, have int) (*events.SyncResponse, error) {
	h, k := r.history, r.known
	out, err := r.responseAt(ctx, st, have)
	if err != nil {
		return nil, err
	}
	outputs := r.lead()
	if len(st.chain) == 0 {
		r.budgetAlone(ctx, out)
		for i := have; i < h.Len(); i++ {
			outputs = append(outputs, align.Output{Raw: h.At(i), From: i, To: i + 1, Untouched: true})
		}
		return out, r.put(out, outputs, nil, nil)
	}
	view, err := r.viewToSend(ctx, st, out, h.From(have))
	if err == nil {
		err = limit.Of(ctx).Yield(ctx)
	}
	if err != nil {
		return nil, err
	}
	made, err := r.outputs(ctx, st, view, have, true)
	if err == nil && slices.ContainsFunc(align.Parts(h.Len(), slices.Concat(outputs, made)), incomplete) {
		made, err = r.outputs(ctx, st, view, have, false)
	}
	if events.CodeOf(err) == events.CodeInvalidHistory {
		return r.unchanged(ctx, out), nil
	}
	if err == nil {
		err = limit.Of(ctx).Yield(ctx)
	}
	if err != nil {
		return nil, err
	}
	at := func(turn, index int) int {
		if turn > len(st.chain) || k.View > 0 {
			return -1
		}
		return k.Index(events.Start(st.chain, turn-1) + index)
	}
	return out, r.put(out, append(outputs, made...), view, at)
}

// responseAt returns the response without parts. The session has the messages of the history before index
// have.
func (r *request) responseAt(ctx context.Context, st *state, have int) (*events.SyncResponse, error) {
	out := r.response(st, have)
	if turns := r.known.Turns; turns < len(st.chain) { // the history ends before the session does
		if err := r.inspect(ctx, func(l *compaction.Ledger) { out.Generation = generationBefore(l, turns) }); err != nil {
			return nil, err
		}
		out.Hash = st.wholeAt(turns)
		out.View = viewName(out.Generation, out.Hash)
	}
	r.gave = givenAt{out.Hash, out.Generation}
	if r.known.View > 0 { // the messages of the history are not those of the session
		out.Count, out.Hash = 0, events.Digest{}
	}
	return out, nil
}

// viewToSend returns the view of the turns in the history, followed by the tail. It puts the budget
// of both into the response.
func (r *request) viewToSend(ctx context.Context, st *state, out *events.SyncResponse, tail []codec.Raw) (view *render.View, err error) {
	turns := min(r.known.Turns, len(st.chain))
	if len(tail) == 0 && turns == len(st.chain) {
		view, err = r.viewUnder(ctx, st, out.Generation, int64(turns))
	} else {
		var messages []dialect.Message
		if messages, err = r.format.ReadAll(tail); err != nil {
			return nil, err
		}
		err = r.inspect(ctx, func(l *compaction.Ledger) {
			if st.begins(l, turns) && out.Generation <= l.Generation() {
				view, out.Budget = l.WithTail(r.config.Compaction(), out.Generation, int64(turns), messages, tailSeq)
			}
		})
	}
	if view == nil && err == nil {
		err = errStale
	}
	return view, err
}

// incomplete reports whether a part is a message of the prefix that moved: the caller did not send
// its text.
func incomplete(p events.SyncPart) bool { return p.Keep == nil && p.Drop == nil && p.Message == nil }

// outputs renders a view. It uses the messages of the request where it can: those of the session,
// and from index have on the tail, which is not in the log. The request lacks the texts of its prefix:
// brief omits the unedited ones; otherwise outputs reads them from the log.
func (r *request) outputs(ctx context.Context, st *state, view *render.View, have int, brief bool) ([]align.Output, error) {
	behindView := 0
	if r.known.View > 0 {
		behindView = r.viewTurns(st)
	}
	tail := func(seq measure.Seq) []dialect.Message {
		if seq == tailSeq {
			return r.own(have, r.history.Len())
		}
		return nil
	}
	sourced, err := r.config.Texts.Sourced(ctx, r.address, view, r.ownTurns(st, view, behindView, brief, tail))
	if err != nil && r.history.Before > 0 { // the dialect may join messages of the prefix with others
		sourced, err = r.config.Texts.Sourced(ctx, r.address, view, tail)
	}
	if bad, ok := errors.AsType[*payload.InvalidError](err); ok {
		return nil, events.NewInvalid(events.CodeInvalidHistory, "", bad.Error())
	}
	if err != nil {
		return nil, err
	}
	return r.placed(st, sourced, behindView, have), nil
}

// ownTurns returns a func that returns the request's messages of a turn, or nil if the log must be
// read. It calls tail for the first turns, up to the number behind, and for unknown sequences.
func (r *request) ownTurns(st *state, view *render.View, behind int, brief bool, tail func(measure.Seq) []dialect.Message) func(measure.Seq) []dialect.Message {
	h, k := r.history, r.known
	bySeq := make(map[measure.Seq]int, len(st.chain))
	for i := behind; i < min(k.Turns, len(st.chain)); i++ {
		bySeq[measure.Seq(st.chain[i].Seq)] = i
	}
	edited := editedIn(view)
	return func(seq measure.Seq) []dialect.Message {
		i, ok := bySeq[seq]
		if !ok {
			return tail(seq)
		}
		from, to := k.Index(events.Start(st.chain, i)), k.Index(int(st.chain[i].End))
		switch {
		case to > h.Len():
			return nil
		case from < h.Before && (!brief || edited[seq] || r.in.Form == events.FormMessages):
			return nil
		case from < h.Before: // the caller has them, and they are unedited
			return make([]dialect.Message, to-from)
		}
		return r.own(from, to)
	}
}

// placed finds the messages of a rendered view in the history. It finds those of the first turns, up to
// the number behind, by their content, and later ones by their index.
func (r *request) placed(st *state, sourced []render.Sourced, behind, have int) []align.Output {
	h, k := r.history, r.known
	index := func(at events.Position) int {
		if int(at.Turn) > min(k.Turns, len(st.chain)) {
			return have + int(at.Index)
		}
		return k.Index(events.Start(st.chain, int(at.Turn)-1) + int(at.Index))
	}
	out := make([]align.Output, len(sourced))
	found := 0
	for i := range sourced {
		m := &sourced[i]
		out[i] = align.Output{Raw: m.Raw}
		if int(m.First.Turn) > behind {
			out[i].From, out[i].To = index(m.First), index(m.Last)+1
			out[i].Untouched = m.Untouched
		} else if found == i {
			found++
		}
	}
	if k.View > 0 {
		align.Find(h, h.Lead, h.Lead+k.View, out[:found])
	}
	return out
}

// own returns the request's messages from ≤ i < to.
func (r *request) own(from, to int) []dialect.Message {
	out := make([]dialect.Message, to-from)
	for i := range out {
		out[i].Raw = r.history.At(from + i)
	}
	return out
}

// editedIn returns the turns of a view whose texts the rendering needs.
func editedIn(v *render.View) map[measure.Seq]bool {
	out := map[measure.Seq]bool{}
	for i := range v.Entries {
		if v.NeedsText(i) {
			out[v.Entries[i].Seq] = true
			if seq := v.Entries[i].CallSeq(); seq != 0 {
				out[seq] = true
			}
		}
	}
	return out
}
