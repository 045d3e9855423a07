package syncs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/syncing"
	"compactd/internal/worker/payload"
)

// syncTurn is a turn of a sync, as it is published.
type syncTurn struct {
	V int `json:"v"`
	events.Turn
	Usage events.Raw `json:"usage,omitzero"`
}

// syncedTurn is the last turn that a sync has published.
type syncedTurn struct {
	seq    uint64
	number int64
	whole  events.Digest // of the session up to it
}

// turnMargin is what the fields of a turn may take beside its messages, system prompt and tools.
const turnMargin = 16 << 10

// publish stores what is new as turns on the base that the history was compared with; nil
// is nothing.
func (x *request) publish(ctx context.Context, st *state, t toPublish) (*syncedTurn, error) {
	first := syncTurn{V: events.VersionExpect}
	fork, err := x.fork(ctx, st)
	if err != nil {
		return nil, err
	}
	first.Fork = fork
	set, err := x.settings(st, &first.Turn)
	if err != nil {
		return nil, err
	}
	if t.at >= x.until && !set {
		return nil, nil //nolint:nilnil // nothing is to be published
	}
	made, err := x.madeUnder(st, t)
	if err != nil {
		return nil, err
	}
	if u := x.in.Usage; u != nil {
		gen, ok := st.viewOf(u.View)
		_, fitted := readFitted(u.View)
		switch {
		case ok && t.from == 0 && x.counts(ctx, st, gen, u.Count):
			made, first.Usage = gen, u.Raw
		case !fitted:
			x.warn(events.CodeUsageUnbound, "")
		}
	}
	overhead := len(first.System) + len(first.Tools) + len(first.Policy) + len(first.Usage) + turnMargin
	turns, err := x.split(t, min(events.MaxTurnBytes, x.host.MaxBytes())-overhead)
	if err != nil {
		return nil, err
	}
	base, last := st.base(), &syncedTurn{seq: max(st.last.Seq, x.ended)}
	for i, messages := range turns {
		turn := syncTurn{V: events.VersionExpect}
		if i == 0 {
			turn = first
		}
		expect := base
		turn.Number, turn.Messages, turn.Generation, turn.Expect = base.Turn+1, messages, made, &expect
		whole := base.Digest
		if i == 0 && t.from > 0 {
			turn.Number, turn.ReplacesFrom = t.from, t.from
			whole = events.Digest{}
			if t.from > 1 {
				whole = st.chain[t.from-2].Whole
			}
		}
		digest := x.format.DigestOf(messages)
		if err := x.host.Yield(ctx); err != nil {
			return nil, err
		}
		turn.ID = x.eventID(&turn, last, digest)
		body, err := events.Marshal(&turn)
		if err != nil {
			return nil, err
		}
		seq, err := x.host.Publish(ctx, events.KindTurn, x.address, turn.ID, body)
		if err != nil {
			return nil, err
		}
		last = &syncedTurn{seq, turn.Number, whole.With(digest, len(messages))}
		base = events.Expect{Turn: last.number, Digest: last.whole}
	}
	return last, nil
}

// split cuts what is published into turns of at most so many bytes.
func (x *request) split(t toPublish, most int) ([][]events.Raw, error) {
	if t.stable <= t.at || t.stable >= x.until {
		return x.history.Until(x.until).Split(t.at, most)
	}
	stays, err := x.history.Until(t.stable).Split(t.at, most)
	if err != nil {
		return nil, err
	}
	rest, err := x.history.Until(x.until).Split(t.stable, most)
	return append(stays, rest...), err
}

// eventID follows from the session, the base and what is new: a turn that is published
// again, here or by another worker, is the same event.
func (x *request) eventID(t *syncTurn, base *syncedTurn, digest events.Digest) string {
	set := slices.Concat(t.System, t.Tools, t.Policy)
	model := ""
	if t.Model != nil {
		model = fmt.Sprint(*t.Model)
	}
	name := fmt.Sprintf("sync %s %d %s %d %d %s %s %x", x.address, t.Expect.Turn, t.Expect.Digest, base.seq, t.ReplacesFrom, digest, model, events.KeyOf([]byte(set)))
	return uuid.NewSHA1(render.IDNamespace, []byte(name)).String()
}

// settings puts into a turn what the request sets and the session has otherwise, and reports
// whether there is anything.
func (x *request) settings(st *state, t *events.Turn) (bool, error) {
	now := &st.settings
	if m := x.in.Model; m != nil && (*m != now.Model || len(st.chain) == 0) {
		t.Model = m
	}
	if st.format == "" {
		t.Format = x.format
	}
	system, err := x.system()
	if err != nil {
		return false, err
	}
	if system != nil && events.SettingKey(system) != now.System {
		t.System = system
	}
	if tools := x.in.Tools; tools != nil && events.SettingKey(tools) != now.Tools {
		t.Tools = tools
	}
	if p := x.in.Policy; p != nil && string(p) != string(now.Policy) {
		t.Policy = p
	}
	return t.Model != nil && len(st.chain) > 0 || t.System != nil || t.Tools != nil || t.Policy != nil, nil
}

// system is the system prompt: that of the request with the instructions that the history
// begins with.
func (x *request) system() (events.Raw, error) {
	if x.history.Lead == 0 || x.history.Before > 0 {
		return x.in.System, nil
	}
	var blocks []any
	var texts []string
	switch s := x.in.System; {
	case s == nil:
	case s.Kind() == '[':
		if err := events.Unmarshal(s, &blocks); err != nil {
			return nil, events.NewInvalid(events.CodeBadType, "system", "is not a list of blocks")
		}
	default:
		words, _ := events.Text(s)
		texts = append(texts, words)
	}
	for _, raw := range x.history.Messages[:x.history.Lead] {
		m, err := x.format.Read(raw)
		if err != nil {
			return nil, err
		}
		for i := range m.Parts {
			texts = append(texts, m.Parts[i].Text)
		}
	}
	if len(texts) == 1 && blocks == nil {
		return events.Marshal(texts[0])
	}
	for _, s := range texts {
		blocks = append(blocks, map[string]string{"type": "text", "text": s})
	}
	return events.Marshal(blocks)
}

// fork is where a session branches off that has no turns yet, nil for nowhere.
func (x *request) fork(ctx context.Context, st *state) (*events.Fork, error) {
	if len(st.chain) > 0 || x.in.Branch == "" {
		return nil, nil //nolint:nilnil // no branch, or one that is there
	}
	if x.in.Fork != nil {
		return x.in.Fork, nil
	}
	fork := &events.Fork{Session: x.in.Session}
	parent := *x.in
	none := int64(0)
	parent.Branch, parent.DryRun, parent.WaitMS, parent.Refused, parent.Usage, parent.OnDivergence = "", true, &none, nil, nil, events.DivergeReplace
	out, err := x.other(ctx, &parent)
	switch code := codeOf(err); {
	case err == nil:
		fork.Turn = out.Turns
	case code == events.CodeFormatChanged: // it has nothing of it
	default:
		return nil, err
	}
	return fork, nil
}

// viewOf is the generation of a view, if that was the last one that the session gave.
func (st *state) viewOf(view string) (generation int64, ok bool) {
	gen, whole, _ := strings.Cut(view, ":")
	generation, err := strconv.ParseInt(gen, 10, 64)
	return generation, err == nil && 0 <= generation && generation <= st.generation && whole == viewDigest(st.base().Digest)
}

// counts reports whether a call with a view had so many messages, 0 for unknown: as many as the
// history up to the session's end, or as were sent of it.
func (x *request) counts(ctx context.Context, st *state, generation, n int64) bool {
	if x.known.Turns < len(st.chain) {
		return false // the history has other messages by now
	}
	held := int64(x.stable.held(x.address)) // messages at the end, which the call may have had too
	if own := int64(x.known.At - x.history.Lead); n == 0 || own <= n && n <= own+held || 0 <= n-int64(x.known.At) && n-int64(x.known.At) <= held {
		return true
	}
	view := st.view
	if generation < st.generation {
		var err error
		if view, err = x.viewUnder(st, generation, int64(len(st.chain))); err != nil {
			return false
		}
	}
	if view == nil {
		return false
	}
	made, err := x.outputs(ctx, st, view, x.known.At, true)
	sent := int64(len(made))
	return err == nil && (0 <= n-sent && n-sent <= held || n == sent+int64(x.history.Lead))
}

// viewName names the view of a session up to a turn, under a generation.
func viewName(generation int64, whole events.Digest) string {
	return fmt.Sprintf("%d:%s", generation, viewDigest(whole))
}

// gave reports whether a view is one of the session as it is, and not of a branch or of what was
// retracted. Of "" only the history shows which it is.
func (st *state) gave(view string) bool {
	_, whole, _ := strings.Cut(view, ":")
	return view != "" && slices.ContainsFunc(st.chain, func(l events.Link) bool { return viewDigest(l.Whole) == whole })
}

// refusedHere reports whether the refusal that is to be published is one of the session: of a view
// of it, of one that no session has, or of the newest.
func (x *request) refusedHere(st *state) bool {
	_, fitted := readFitted(x.pending.View)
	return fitted || x.pending.View == "" || st.gave(x.pending.View)
}

// refuseHere publishes the refusal of a request, if there is one to publish and the session is its
// own; the session is then to be read again, as the error states.
func (x *request) refuseHere(ctx context.Context, st *state) error {
	switch {
	case x.pending == nil || len(st.chain) == 0:
		return nil
	case x.refusedHere(st):
		return cmp.Or(x.refuse(ctx, st), error(errStale))
	}
	x.warn(events.CodeRefusedUnbound, "")
	return nil
}

func viewDigest(whole events.Digest) string { return whole.String()[:16] }

// await waits until a turn is decided, and returns the session as it is then; nil when the
// time is over. A turn that was refused is an error.
func (x *request) await(ctx context.Context, t *syncedTurn) (*state, error) {
	limit := events.Await{Seq: t.seq}.Within(time.Until(x.deadline))
	err := x.host.AwaitDecided(ctx, x.address, limit)
	var st *state
	late := codeOf(err) == events.CodeTurnPending
	if err == nil {
		limited, cancel := context.WithDeadline(ctx, x.deadline.Add(syncWait))
		st, err = x.stateOf(limited, x.address)
		late = err != nil && limited.Err() != nil && ctx.Err() == nil
		cancel()
	}
	switch {
	case late:
		return nil, nil //nolint:nilnil // it is late
	case err != nil:
		return nil, err
	}
	if n := int(t.number); n <= len(st.chain) && st.chain[n-1].Whole == t.whole {
		return st, nil
	}
	out, err := x.host.Outcome(ctx, &events.OutcomeRequest{Tenant: x.address.Tenant, Session: x.address.Session, Seq: t.seq})
	switch {
	case err != nil:
		return nil, err
	case out.Accepted && len(st.chain) == 0: // a turn of the same id, of the session before it ended
		x.ended = t.seq
		return nil, errStale
	case out.Accepted, out.Code == events.CodeStaleBase, out.Code == events.CodeTurnConflict:
		return nil, errStale // other turns came in between, before it or after it
	default:
		return nil, &events.ServiceError{V: events.Version, Code: out.Code, Message: out.Message, Hint: out.Hint}
	}
}

// codeOf is the code of an error, also of one that another worker answered; "" for none.
func codeOf(err error) events.Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*events.ServiceError](err); ok {
		return e.Code
	}
	return events.CodeOf(err)
}

// refuse publishes that a provider refused a call, and waits for the history that fits.
func (x *request) refuse(ctx context.Context, st *state) error {
	r := x.pending
	x.pending = nil
	o := struct {
		V          int           `json:"v"`
		ID         string        `json:"id"`
		Error      events.Raw    `json:"error,omitzero"`
		Status     int64         `json:"status,omitzero"`
		Model      *events.Model `json:"model,omitzero"`
		Generation int64         `json:"generation"`
		Unbind     bool          `json:"unbind"` // thinking that is bound to another history
		Unrecorded int64         `json:"unrecorded,omitzero"`
	}{V: events.Version, Unbind: true, Error: r.Error, Status: r.Status, Model: x.in.Model, Generation: st.generation}
	if v, ok := readFitted(r.View); ok {
		o.Unrecorded = int64(v.estimate)
	} else if gen, _, _ := strings.Cut(r.View, ":"); r.View != "" {
		n, err := strconv.ParseInt(gen, 10, 64)
		if err != nil || n < 0 || n > st.generation {
			return events.NewInvalid(events.CodeUnknownGeneration, "refused.view", "is none of this session")
		}
		o.Generation = n
	}
	if x.shorter > 0 && o.Unrecorded == 0 {
		o.Unrecorded = x.shorter
	}
	x.refused = cmp.Or(r.View, viewName(st.generation, st.base().Digest))
	generation := o.Generation
	if o.Unrecorded > 0 { // its name is all of it
		generation = 0
	}
	name := fmt.Sprintf("refused %s %s %d %d %s", x.address, r.View, generation, r.Status, r.Error)
	if r.View == "" {
		name += viewDigest(st.base().Digest)
	}
	o.ID = uuid.NewSHA1(render.IDNamespace, []byte(name)).String()
	body, err := events.Marshal(&o)
	if err != nil {
		return err
	}
	seq, err := x.host.Publish(ctx, events.KindOverflow, x.address, o.ID, body)
	if err != nil {
		return err
	}
	until := time.Now().Add(max(refusedWait, time.Until(x.deadline)))
	x.deadline = until
	for {
		err := x.host.AwaitDecided(ctx, x.address, events.Await{Seq: seq}.Within(time.Until(until)))
		var out *events.OutcomeResponse
		if err == nil {
			out, err = x.host.Outcome(ctx, &events.OutcomeRequest{Tenant: x.address.Tenant, Session: x.address.Session, Seq: seq})
		}
		switch {
		case codeOf(err) == events.CodeTurnPending:
			x.warn(events.CodeLate, "")
			return nil
		case err != nil:
			return err
		case out.Code == events.CodeUnknownSession: // it has ended since
			return nil
		case !out.Accepted:
			return &events.ServiceError{V: events.Version, Code: out.Code, Message: out.Message, Hint: out.Hint}
		case out.Compaction != nil:
			x.tried = out.Compaction
			return nil
		}
		if err := x.host.Pause(ctx, resultPause); err != nil { // it waits for a summary
			return err
		}
		if time.Now().After(until) {
			return nil
		}
	}
}

// unchanged makes an answer one that leaves the history as it is, since the one that was rendered is
// not valid for its provider: that is a defect of this program, and the agent goes on without it.
// The answer names no view, and no messages that the next request may leave out.
func (x *request) unchanged(out *events.SyncResponse) *events.SyncResponse {
	if x.history.Before > 0 && x.in.Form == events.FormMessages {
		return &events.SyncResponse{
			V: events.Version, Need: events.NeedAll, Recorded: true, Generation: out.Generation, Through: out.Through, Budget: out.Budget, Warnings: []events.SyncWarning{},
		}
	}
	x.warn(events.CodeInvalidHistory, "")
	x.budgetAlone(out)
	x.gave = givenAt{whole: out.Hash} // as it was published: generation 0
	out.View, out.Count, out.Hash = "", 0, events.Digest{}
	out.Parts, out.Changed = syncing.Keep(x.history.Len()), false
	out.Warnings = append([]events.SyncWarning{}, x.warnings...)
	if x.in.Form == events.FormMessages {
		out.Parts, out.Messages = nil, x.written(x.in.Messages)
	}
	return out
}

// native is the answer that leaves the history as it is.
func (x *request) native(st *state, t *syncedTurn) *events.SyncResponse {
	n := x.history.Len()
	out := x.response(st, n)
	x.gave = givenAt{whole: out.Hash} // as it was published: generation 0
	out.Parts, out.Count, out.Hash = syncing.Keep(n), 0, events.Digest{}
	x.budgetAlone(out)
	if t != nil {
		out.Count, out.Hash, x.gave.whole = int64(x.until), t.whole, t.whole
	}
	if x.in.Form == events.FormMessages {
		out.Parts, out.Messages = nil, x.written(x.in.Messages)
	}
	return out
}

func (x *request) response(st *state, count int) *events.SyncResponse {
	base := st.base().Digest
	x.raised = st.raised
	return &events.SyncResponse{
		V: events.Version, Recorded: true, Known: x.recorded, Count: int64(count), Hash: base, View: viewName(st.generation, base),
		Turns: int64(x.known.Turns), Generation: st.generation, Through: st.last, Budget: st.budget,
		Warnings: append([]events.SyncWarning{}, x.warnings...),
	}
}

// finish states of an answer that it does not fit, and withholds the name of a view that was
// refused: it is given once.
func (x *request) finish(out *events.SyncResponse) {
	if out.Need != "" {
		return
	}
	if x.raised {
		out.Warnings = append(out.Warnings, warningOf(events.CodeWindowRaised))
	}
	refused := x.refused != "" && out.View == x.refused
	if refused {
		out.View = ""
	}
	late := slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == events.CodeLate })
	failed := x.tried != nil && x.tried.Code == events.CodeBudgetExceeded
	if !out.Budget.WithinBudget || refused && (failed || !out.Recorded) {
		out.Code, out.Retry = events.CodeBudgetExceeded, &late // then a later request may be answered with what fits
		out.Warnings = append(out.Warnings, warningOf(out.Code))
		if failed {
			out.Stages = x.tried.Stages
		}
	}
}

func warningOf(code events.Code) events.SyncWarning {
	info := events.Codes[code]
	return events.SyncWarning{Code: code, Message: info.Meaning, Hint: info.Hint}
}

// answer states what to send of a history of which the session has the messages before an
// index; what follows is kept.
func (x *request) answer(ctx context.Context, st *state, have int) (*events.SyncResponse, error) {
	h, k := x.history, x.known
	out := x.response(st, have)
	view := st.view
	if k.Turns < len(st.chain) { // the history ends before the session does
		if err := x.inspect(func(l *compaction.Ledger) { out.Generation = generationBefore(l, k.Turns) }); err != nil {
			return nil, err
		}
		out.Hash = events.Digest{}
		if k.Turns > 0 {
			out.Hash = st.chain[k.Turns-1].Whole
		}
		out.View = viewName(out.Generation, out.Hash)
	}
	x.gave = givenAt{out.Hash, out.Generation}
	if k.View > 0 { // the messages of the history are not those of the session
		out.Count, out.Hash = 0, events.Digest{}
	}
	outputs := x.lead()
	switch tail := h.From(have); {
	case len(st.chain) == 0:
		x.budgetAlone(out)
		for i := have; i < h.Len(); i++ {
			outputs = append(outputs, syncing.Output{Raw: h.At(i), From: i, To: i + 1, Untouched: true})
		}
		return out, x.put(out, outputs, nil, nil)
	case len(tail) > 0 || k.Turns < len(st.chain):
		messages, err := x.format.ReadAll(tail)
		if err != nil {
			return nil, err
		}
		turns, same := min(k.Turns, len(st.chain)), false
		if err := x.inspect(func(l *compaction.Ledger) {
			if same = st.begins(l, turns) && out.Generation <= l.Generation(); same {
				view, out.Budget = l.WithTail(x.config, out.Generation, int64(turns), messages, tailSeq)
			}
		}); err != nil {
			return nil, err
		}
		if !same {
			return nil, errStale
		}
	}
	if err := x.host.Yield(ctx); err != nil {
		return nil, err
	}
	made, err := x.outputs(ctx, st, view, have, true)
	if err == nil && slices.ContainsFunc(syncing.Parts(h.Len(), slices.Concat(outputs, made)), incomplete) {
		made, err = x.outputs(ctx, st, view, have, false)
	}
	if events.CodeOf(err) == events.CodeInvalidHistory {
		return x.unchanged(out), nil
	}
	if err == nil {
		err = x.host.Yield(ctx)
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
	return out, x.put(out, append(outputs, made...), view, at)
}

// incomplete reports whether a part is a message that was not sent: one of the prefix that goes to
// another place.
func incomplete(p events.SyncPart) bool { return p.Keep == nil && p.Drop == nil && p.Message == nil }

// outputs renders a view, with the caller's own messages where it has them: those of the session,
// and from have on those that no log has. Of a prefix it has none, but brief takes the messages that
// nothing edits without their texts.
func (x *request) outputs(ctx context.Context, st *state, view *compaction.View, have int, brief bool) ([]syncing.Output, error) {
	h, k := x.history, x.known
	turns := min(k.Turns, len(st.chain))
	viewTurns := 0
	if k.View > 0 {
		viewTurns = x.viewTurns(st)
	}
	bySeq := make(map[compaction.Seq]int, len(st.chain))
	for i := viewTurns; i < min(k.Turns, len(st.chain)); i++ {
		bySeq[compaction.Seq(st.chain[i].Seq)] = i
	}
	edited := editedIn(view)
	own := func(seq compaction.Seq) []events.Message {
		if seq == tailSeq {
			return x.own(have, h.Len())
		}
		i, ok := bySeq[seq]
		if !ok {
			return nil
		}
		from, to := k.Index(events.Start(st.chain, i)), k.Index(int(st.chain[i].End))
		switch {
		case to > h.Len():
			return nil
		case from < h.Before && (!brief || edited[seq] || x.in.Form == events.FormMessages):
			return nil
		case from < h.Before: // the caller has them, and nothing changes them
			return make([]events.Message, to-from)
		}
		return x.own(from, to)
	}
	sourced, err := x.host.Sourced(ctx, x.address, view, own)
	if err != nil && h.Before > 0 { // messages of the prefix that the dialect joins with others
		clear(bySeq)
		sourced, err = x.host.Sourced(ctx, x.address, view, own)
	}
	if bad, ok := errors.AsType[*payload.InvalidError](err); ok {
		return nil, events.NewInvalid(events.CodeInvalidHistory, "", bad.Error())
	}
	if err != nil {
		return nil, err
	}
	index := func(at events.Position) int {
		if int(at.Turn) > turns {
			return have + int(at.Index)
		}
		return k.Index(events.Start(st.chain, int(at.Turn)-1) + int(at.Index))
	}
	out := make([]syncing.Output, len(sourced))
	found := 0
	for i := range sourced {
		m := &sourced[i]
		out[i] = syncing.Output{Raw: m.Raw}
		if int(m.First.Turn) > viewTurns {
			out[i].From, out[i].To = index(m.First), index(m.Last)+1
			out[i].Untouched = m.Untouched
		} else if found == i {
			found++
		}
	}
	if k.View > 0 {
		syncing.Find(h, h.Lead, h.Lead+k.View, out[:found])
	}
	return out, nil
}

// begins reports whether a session still has its first turns.
func (st *state) begins(l *compaction.Ledger, turns int) bool {
	seqs := l.TurnSeqs()
	return len(seqs) > 0 && turns <= len(seqs) && (turns == 0 || seqs[turns-1] == compaction.Seq(st.chain[turns-1].Seq))
}

// own are the messages of the caller from ≤ i < to.
func (x *request) own(from, to int) []events.Message {
	out := make([]events.Message, to-from)
	for i := range out {
		out[i].Raw = x.history.At(from + i)
	}
	return out
}

// editedIn lists the turns of a view whose texts its rendering needs.
func editedIn(v *compaction.View) map[compaction.Seq]bool {
	out := map[compaction.Seq]bool{}
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

// viewTurns are the turns that a view of the caller takes the place of.
func (x *request) viewTurns(st *state) int {
	end := x.history.Lead + x.known.View - x.known.Shift // messages of the session
	for i := range st.chain {
		if int(st.chain[i].End) >= end {
			return i + 1
		}
	}
	return len(st.chain)
}

// inspect shows the ledger of the session under the config: one that was loaded since it was
// last read has no sums yet, which a view needs.
func (x *request) inspect(read func(*compaction.Ledger)) error {
	_, err := x.host.Inspect(x.address, func(l *compaction.Ledger) {
		l.Describe(x.config)
		read(l)
	})
	return err
}

// generationBefore is the newest generation that changed no turn behind a number of them.
func generationBefore(l *compaction.Ledger, turns int) int64 {
	for generation := l.Generation(); generation > 0; generation-- {
		if t := l.GenerationThrough(generation); t > 0 && t <= int64(turns) {
			return generation
		}
	}
	return 0
}

// maxViews is how many generations a history is compared with.
const maxViews = 4

// givenView is a view of an earlier answer.
type givenView struct {
	syncing.View
	made []madeMessage
}

// madeMessage is a message that compactd made, or changed: of one message of the session, at its
// place, or of none or several.
type madeMessage struct {
	raw events.Raw
	of  events.Position
}

// viewsOf renders the views that the newest generations gave.
func (x *request) viewsOf(ctx context.Context, st *state) ([]givenView, error) {
	var out []givenView
	for gen := st.generation; gen > max(0, st.generation-maxViews); gen-- {
		var through, shows int64
		if err := x.inspect(func(l *compaction.Ledger) { through, shows = l.GenerationThrough(gen), l.GenerationShows(gen) }); err != nil {
			return nil, err
		}
		for _, turn := range slices.Compact([]int64{shows, through}) { // an answer may end at either
			v, ok, err := x.viewThrough(ctx, st, gen, turn)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, v)
			}
		}
	}
	return out, nil
}

// viewThrough is what a generation gave for the turns up to a number; ok is false where it is not
// known any more.
func (x *request) viewThrough(ctx context.Context, st *state, gen, through int64) (v givenView, ok bool, err error) {
	if through < 1 || int(through) > len(st.chain) {
		return v, false, nil
	}
	key := viewKey{x.address, gen, st.chain[through-1].Whole}
	if v, ok = x.views.get(key); ok {
		return v, true, nil
	}
	view, err := x.viewUnder(st, gen, through)
	if view == nil || err != nil {
		return v, false, err
	}
	sourced, err := x.host.Sourced(ctx, x.address, view, func(compaction.Seq) []events.Message { return nil })
	if err != nil {
		return v, false, nil //nolint:nilerr // its texts are gone, or it is none that was given
	}
	messages := make([]events.Raw, len(sourced))
	for i := range sourced {
		messages[i] = sourced[i].Raw
		if !sourced[i].Untouched {
			of := sourced[i].First
			if of != sourced[i].Last {
				of = events.Position{}
			}
			v.made = append(v.made, madeMessage{sourced[i].Raw, of}, madeMessage{x.format.Sendable(sourced[i].Raw), of})
		}
	}
	v.View = syncing.NewView(x.format, messages, int(through))
	x.views.put(key, v)
	return v, true, nil
}

// viewUnder is the history up to a turn as a generation has it, nil where the session has become
// another one since st was read.
func (x *request) viewUnder(st *state, generation, turn int64) (view *compaction.View, err error) {
	err = x.inspect(func(l *compaction.Ledger) {
		if generation <= l.Generation() && st.begins(l, int(turn)) {
			view = l.ViewThrough(generation, turn)
		}
	})
	return view, err
}

// viewKey names a view.
type viewKey struct {
	events.Address
	generation int64
	whole      events.Digest
}

// maxViewCache is how many views are remembered.
const maxViewCache = 256

// views are those that were compared lately.
type views struct {
	mu  sync.Mutex
	all map[viewKey]givenView
}

func (c *views) get(k viewKey) (givenView, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.all[k]
	return v, ok
}

func (c *views) put(k viewKey, v givenView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxViewCache {
		c.all = map[viewKey]givenView{}
	}
	c.all[k] = v
}
