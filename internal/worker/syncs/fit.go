package syncs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/align"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/payload"
)

// tailSeq is the sequence of the tail: messages that are not in the log.
const tailSeq measure.Seq = 1 << 62

// fit answers a history that cannot be recorded. The answer depends only on the request, and no turn is
// published. The stages decide as if the turns had arrived one by one, so that the view of a longer
// history begins as before.
func (r *request) fit(ctx context.Context, st *state) (*events.SyncResponse, error) {
	h := r.history
	if h.Before > 0 {
		return needAll(st), nil
	}
	messages, err := r.format.ReadAll(h.Messages)
	if err != nil {
		return nil, err
	}
	other := r.shorter > 0 && r.in.Model != nil && *r.in.Model != st.settings.Model // a call of another model
	if r.pending != nil && len(st.chain) > 0 && r.refusedHere(st) && !other {
		if err := r.refuse(ctx, st); err != nil {
			return nil, err
		}
	}
	alone, err := r.alone(ctx)
	if err != nil {
		return nil, err
	}
	tail := r.until
	alone.Beside(messages[tail:])
	starts := []int{} // first indices of the turns and the tail
	from := min(int(r.in.Frozen), tail)
	if from > h.Lead {
		starts = append(starts, h.Lead)
		alone.Hold(messages[h.Lead:from])
	} else {
		from = r.begin(alone, messages[:tail])
	}
	for from < tail {
		to := align.TurnEnd(messages[:tail], from)
		starts = append(starts, from)
		alone.Add(messages[from:to])
		from = to
	}
	starts = append(starts, tail)
	view, budget := alone.End(messages[tail:])
	outputs, err := r.fitted(ctx, view, starts)
	out := r.response(st, 0)
	budget.Generation = out.Generation
	out.Recorded, out.Hash, out.Budget = false, events.Digest{}, budget
	if events.CodeOf(err) == events.CodeInvalidHistory {
		return r.unchanged(ctx, out), nil
	}
	if err != nil {
		return nil, err
	}
	sent := make([]codec.Raw, len(outputs))
	for i := range outputs {
		sent[i] = outputs[i].Raw
	}
	out.View = fittedView{measure.Tokens(budget.EstimatedInput), alone.Ratio()}.name(r.format, sent)
	at := func(turn, index int) int {
		if turn > len(starts) {
			return -1
		}
		return starts[turn-1] + index
	}
	return out, r.put(out, outputs, view, at)
}

// freeze keeps the frozen messages at the beginning of the history unchanged. If the answer changes
// them, it fits the later messages instead; the view then belongs to no session.
func (r *request) freeze(ctx context.Context, st *state, out *events.SyncResponse) (*events.SyncResponse, error) {
	frozen := int(min(r.in.Frozen, int64(r.history.Len())))
	if frozen == 0 || r.history.Before > 0 || !out.Changed || out.Parts == nil || align.Holds(out.Parts, frozen) {
		return out, nil
	}
	fitted, err := r.fit(ctx, st)
	if err != nil {
		return nil, err
	}
	if !align.Holds(fitted.Parts, frozen) { // the rendering makes invalid messages valid, frozen ones too
		fitted.Parts, fitted.View = align.Freeze(fitted.Parts, frozen), ""
		fitted.Changed = align.Changed(fitted.Parts, r.history.Len())
	}
	send(out, fitted)
	return out, nil
}

// shorten replaces the messages of a recorded answer by fitted ones, if no compaction was tried for a history over
// the budget, or if the answer in the form messages is too large. It keeps the answer if the fitted messages are too
// large as well. A late one with a prefix stays: the turn will be decided before the whole history is here.
func (r *request) shorten(ctx context.Context, st *state, out *events.SyncResponse) (*events.SyncResponse, error) {
	over := !out.Budget.WithinBudget && (r.untried || isLate(out) && r.history.Before == 0)
	if !out.Recorded || !over && !r.tooLarge(out.Messages) {
		return out, nil
	}
	fitted, err := r.fit(ctx, st)
	if err != nil || fitted.Need != "" {
		return fitted, err
	}
	if !fitted.Budget.WithinBudget || r.tooLarge(fitted.Messages) {
		return out, nil
	}
	send(out, fitted)
	if r.untried { // the next answer needs all messages, too
		out.Count, out.Hash = 0, events.Digest{}
	}
	return out, nil
}

// tooLarge reports whether messages and the other fields of an answer exceed the limit of an answer.
func (r *request) tooLarge(messages []codec.Raw) bool {
	return len(messages) > 0 && codec.Size(messages)+len(messages)+turnMargin > r.config.MaxBytes()
}

// send puts the messages of a fitted answer into one about a session.
func send(out, fitted *events.SyncResponse) {
	out.View, out.Changed, out.Parts, out.Messages, out.Budget = fitted.View, fitted.Changed, fitted.Parts, fitted.Messages, fitted.Budget
	out.Budget.Generation = out.Generation
	for _, w := range fitted.Warnings {
		if !slices.Contains(out.Warnings, w) {
			out.Warnings = append(out.Warnings, w)
		}
	}
}

// begin returns the index of the first message to send. A history that does not begin with a prompt
// has lost its oldest messages, and loses more with each call. If it is too long, it is cut at the
// turn with the greatest digest among those that leave at least half of the budget. So the next call,
// which begins later, is mostly cut at the same turn.
func (r *request) begin(alone *compaction.Alone, messages []dialect.Message) int {
	lead := r.history.Lead
	if lead == len(messages) || messages[lead].Role == dialect.RoleUser && !slices.ContainsFunc(messages[lead].Parts, isResult) {
		return lead
	}
	most := alone.Room()
	if alone.Cost(messages[lead:]) <= most {
		return lead
	}
	var best events.Digest
	at, rest := lead, measure.Tokens(0)
	for to := len(messages); to > lead; {
		from := to - 1
		for from > lead && (messages[from].Role != dialect.RoleAssistant || messages[from-1].Role == dialect.RoleAssistant) {
			from--
		}
		if rest += alone.Cost(messages[from:to]); rest > most {
			break
		}
		if d := r.format.DigestOf(r.history.Messages[from : from+1]); rest > most/2 && bytes.Compare(d[:], best[:]) > 0 {
			best, at = d, from
		}
		to = from
	}
	return at
}

func isResult(p dialect.Part) bool { return p.Kind == dialect.PartResult }

// behind answers a history that ends before the session: an older request, or an agent that went
// back. It fits the history if its settings differ from the session's, if the provider refused it, or
// if the session's view of it is over the budget.
func (r *request) behind(ctx context.Context, st *state, have int) (*events.SyncResponse, error) {
	other, err := r.settings(st, &events.Turn{})
	if err != nil {
		return nil, err
	}
	out, err := r.answer(ctx, st, have)
	if err != nil {
		return nil, err
	}
	if r.pending == nil && !other && out.Budget.WithinBudget {
		return out, nil
	}
	r.warnings, r.shorter = nil, out.Budget.EstimatedInput
	return r.fit(ctx, st)
}

// answerUntil answers a history whose last messages may be unpublished. If session and last messages
// together are over the budget, it fits the history.
func (r *request) answerUntil(ctx context.Context, st *state) (*events.SyncResponse, error) {
	out, err := r.answer(ctx, st, r.until)
	if err == nil && r.until < r.history.Len() && !out.Budget.WithinBudget {
		return r.fit(ctx, st)
	}
	return out, err
}

// alone returns an empty history under the model and the settings of the session and the request.
func (r *request) alone(ctx context.Context) (alone *compaction.Alone, err error) {
	system, err := r.system()
	if err != nil {
		return nil, err
	}
	u := &compaction.Unrecorded{Model: r.in.Model, Format: r.format, System: system, Tools: r.in.Tools, Policy: r.in.Policy}
	if refused := r.in.Refused; refused != nil {
		v, _ := readFitted(refused.View)
		if u.Refused = v.estimate; u.Refused == 0 {
			u.Refused = measure.Tokens(r.shorter)
		}
	}
	if in := r.in.Usage; in != nil {
		if v, ok := readFitted(in.View); ok {
			u.Ratio = v.counted(in.Raw)
		}
	}
	var bad error
	if err := r.inspect(ctx, func(l *compaction.Ledger) { alone, bad = l.Alone(r.config.Compaction(), u) }); err != nil {
		return nil, err
	}
	return alone, bad
}

// budgetAlone sets the budget to that of a call with the whole history. It keeps the budget of the
// session if the call cannot be measured.
func (r *request) budgetAlone(ctx context.Context, out *events.SyncResponse) {
	messages, err := r.format.ReadAll(r.history.Messages)
	if err != nil || r.history.Before > 0 {
		return
	}
	if alone, err := r.alone(ctx); err == nil {
		out.Budget = alone.Whole(messages[r.history.Lead:])
		out.Budget.Generation = out.Generation
	}
}

// fitted renders the view of an unrecorded history. Turn n begins at starts[n-1].
func (r *request) fitted(ctx context.Context, view *render.View, starts []int) ([]align.Output, error) {
	h := r.history
	starts = append(starts, h.Len())
	sourced, err := r.config.Texts.Sourced(ctx, r.address, view, func(seq measure.Seq) []dialect.Message {
		return r.own(starts[seq-1], starts[seq])
	})
	if bad, ok := errors.AsType[*payload.InvalidError](err); ok {
		return nil, events.NewInvalid(events.CodeInvalidHistory, "", bad.Error())
	}
	if err != nil {
		return nil, err
	}
	out := r.lead()
	for i := range sourced {
		m := &sourced[i]
		o := align.Output{Raw: m.Raw}
		if m.First.Turn > 0 {
			o.From = starts[m.First.Turn-1] + int(m.First.Index)
			o.To = starts[m.Last.Turn-1] + int(m.Last.Index) + 1
			o.Untouched = m.Untouched
		}
		out = append(out, o)
	}
	return out, nil
}

// lead returns the instructions at the beginning of the history, unchanged.
func (r *request) lead() []align.Output {
	h := r.history
	lead := h.Lead
	if h.Before > 0 {
		lead = r.known.Shift
	}
	return r.first(lead)
}

// first returns the first n messages of the history, unchanged.
func (r *request) first(n int) []align.Output {
	out := make([]align.Output, 0, r.history.Len())
	for i := range n {
		o := align.Output{From: i, To: i + 1, Untouched: true}
		if i >= r.history.Before {
			o.Raw = r.history.At(i)
		}
		out = append(out, o)
	}
	return out
}

// put writes the outputs into an answer, in the form of the request. at returns the index in the
// history of a message of the view.
func (r *request) put(out *events.SyncResponse, outputs []align.Output, view *render.View, at func(turn, index int) int) error {
	n := r.history.Len()
	if len(outputs) == 0 { // a call needs a message
		outputs = r.first(n)
	}
	r.sendable(outputs)
	out.Parts = align.Parts(n, outputs)
	out.Changed = align.Changed(out.Parts, n)
	if view != nil {
		r.warnDropped(view, out.Parts, at)
	}
	out.Warnings = append([]events.SyncWarning{}, r.warnings...)
	if r.in.Form != events.FormMessages {
		return nil
	}
	out.Parts, out.Messages = nil, make([]codec.Raw, 0, len(outputs))
	for _, o := range outputs {
		if o.Raw == nil {
			return events.NewInvalid(events.CodeOutOfRange, "form", "messages needs the whole history, since it begins with instructions")
		}
		out.Messages = append(out.Messages, o.Raw)
	}
	return nil
}

// fittedBefore reports whether the refused call may have had a fitted view, which belongs to no
// session.
func (r *request) fittedBefore() bool {
	if r.in.Refused == nil {
		return false
	}
	_, ok := readFitted(r.in.Refused.View)
	return ok || r.in.Refused.View == ""
}

// sendable prepares outputs for a provider. It uses the request's messages where they are unchanged, and
// placeholders for media of which only the hash is known.
func (r *request) sendable(outputs []align.Output) {
	h := r.history
	var at []int // of outputs whose messages are in the answer
	var list []codec.Raw
	for i := range outputs {
		o := &outputs[i]
		if o.Untouched && h.Before <= o.From && o.From < h.Len() {
			o.Raw = h.At(o.From)
		}
		if !o.Untouched || r.in.Form == events.FormMessages {
			at, list = append(at, i), append(list, o.Raw)
		} else {
			o.Raw = r.format.Sendable(o.Raw)
		}
	}
	for i, m := range r.written(list) {
		outputs[at[i]].Raw = m
	}
}

// answerShare is the share of the server's max_payload for the messages of an answer, in eighths.
const answerShare = 7

// written returns messages for an answer. If they exceed the limit of an answer, placeholders
// replace the oldest media.
func (r *request) written(messages []codec.Raw) []codec.Raw {
	out := slices.Clone(r.format.Fold(messages, r.config.MaxBytes()/8*answerShare))
	for i, m := range out {
		out[i] = r.format.Sendable(m)
	}
	return out
}

// fittedView is the name of a view that belongs to no session. It holds the estimate of the input
// and the ratio that corrected it, so that any worker can correct the ratio by the provider's count.
type fittedView struct {
	estimate measure.Tokens
	ratio    measure.PPM
}

const fittedPrefix = "fit"

// name returns the name of a view with the messages sent.
func (v fittedView) name(f events.Format, sent []codec.Raw) string {
	return fmt.Sprintf("%s:%d:%d:%s", fittedPrefix, v.estimate, v.ratio/ratioStep, viewDigest(f.DigestOf(sent)))
}

// readFitted parses the name of a fitted view. ok is false for a view of a session.
func readFitted(name string) (v fittedView, ok bool) {
	words := strings.Split(name, ":")
	if len(words) != 4 || words[0] != fittedPrefix {
		return v, false
	}
	estimate, err := strconv.ParseInt(words[1], 10, 64)
	tenths, bad := strconv.ParseInt(words[2], 10, 16)
	if err != nil || bad != nil || estimate < 1 || estimate > events.MaxTokens || tenths < 1 {
		return v, false
	}
	return fittedView{measure.Tokens(estimate), measure.PPM(tenths) * ratioStep}, true
}

const (
	// ratioStep is the step to which a correction is rounded up. A correction that changed with
	// each call would move the cut each time.
	ratioStep measure.PPM = 100_000
	// ratioKept is the share of the estimate below which a count lowers the correction.
	ratioKept measure.PPM = 850_000
)

// counted returns the correction after the provider's count of the view, 0 without a count.
func (v fittedView) counted(usage codec.Raw) measure.PPM {
	u := events.ReadUsage(usage)
	if u == nil {
		return 0
	}
	input := measure.Tokens(u.Input + u.CacheRead + u.CacheCreate)
	if ratioKept.Share(v.estimate) <= input && input <= v.estimate {
		return v.ratio
	}
	ratio := measure.PPM(min(input, maxCounted*v.estimate) * measure.Tokens(v.ratio) / v.estimate)
	return (ratio + ratioStep - 1) / ratioStep * ratioStep
}

// maxCounted limits the ratio of a count to the estimate.
const maxCounted = 3
