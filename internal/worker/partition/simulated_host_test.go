package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/syncs"
)

// answerSync has a worker answer, unless one sync of the session is in the midst of it.
func (o *owner) answerSync(c *caller, in *events.SyncRequest) (*events.SyncResponse, error) {
	if o.syncer == nil {
		o.syncer = syncs.New(&simulatedHost{o: o}, o.set.Compaction)
		o.busy = map[events.Address]bool{}
	}
	data, err := in.Encode()
	if err == nil {
		in, err = events.DecodeSyncRequest(data)
	}
	if err != nil {
		return nil, err
	}
	a := in.Address()
	if o.s.flaw == otherTaken && in.OnDivergence == events.DivergeAuto {
		in.OnDivergence = events.DivergeReplace
	}
	if o.ended || !in.DryRun && o.busy[a] {
		return nil, errUnserved
	}
	if !in.DryRun {
		o.busy[a] = true
		defer delete(o.busy, a)
	}
	outer, dry := o.asking, o.dry
	o.asking, o.dry = c, in.DryRun
	defer func() { o.asking, o.dry = outer, dry }()
	return o.syncer.Answer(context.Background(), in)
}

// simulatedHost is an owner as syncs see it. Between any two of its calls other things happen,
// and it may crash.
type simulatedHost struct{ o *owner }

// simulatedFamily is the log as an owner sees it that passes an event on to branches.
type simulatedFamily struct {
	o *owner
	e decide.Event
}

func (f simulatedFamily) branches(_ context.Context, a events.Address, before measure.Seq) (out []string, err error) {
	if f.o.s.flaw == branchGoesOn {
		return nil, nil
	}
	for _, e := range f.o.s.log[:before-1] {
		if e.Kind == events.KindBranch && e.Address == a && !f.o.s.gone[e.Seq] {
			b, err := events.DecodeBranch(e.Data)
			if err != nil {
				return nil, err
			}
			out = append(out, b.Branch)
		}
	}
	return out, nil
}

func (f simulatedFamily) endings(_ context.Context, a events.Address, after measure.Seq) (out []ending, err error) {
	names := f.e.Kind == events.KindTurn && a != f.e.Address
	if names && f.o.s.flaw == lateBranchMissed || !names && f.o.s.flaw == endingRepeated {
		return nil, nil
	}
	for _, e := range f.o.s.log[after:] {
		if x, ok := endingOf(e.Kind, e.Seq, e.Data); ok && e.Address == a && !f.o.s.gone[e.Seq] {
			out = append(out, x)
		}
	}
	return out, nil
}

func (f simulatedFamily) publish(_ context.Context, k events.Kind, a events.Address, id string, body any) error {
	if f.o.s.odds(5) {
		f.o.crash("while it passes an event on to branches")
		return errUnserved
	}
	if k == events.KindBranch && f.o.s.flaw == branchUnnamed {
		return nil
	}
	data, err := events.Marshal(body)
	if err == nil {
		f.o.s.publish(k, a, id, data)
	}
	return err
}

func (h *simulatedHost) between() error {
	s, c, dry := h.o.s, h.o.asking, h.o.dry
	switch {
	case h.o.ended:
		return errUnserved
	case s.alone || s.found != nil:
		return nil //nolint:nilerr // the seed has failed: nothing more happens
	case s.odds(2):
		s.synced.Crashed++
		h.o.crash("while it syncs")
		return errUnserved
	case s.depth < 2 && s.odds(20):
		s.synced.Nested++
		s.depth++
		s.step()
		s.depth--
	}
	h.o.asking, h.o.dry = c, dry
	if h.o.ended {
		return errUnserved
	}
	return nil
}

func (h *simulatedHost) Inspect(a events.Address, read func(*compaction.Ledger)) (func(context.Context) error, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	at, err := h.o.ledgers.Inspect(a, read)
	if errors.Is(err, ErrMoved) && h.o.s.flaw == formerAnswers {
		var l *compaction.Ledger
		if l, err = h.o.ledgers.decider.Ledger(a); err == nil {
			read(l)
			at = h.o.ledgers.position().seq
		}
	}
	if errors.Is(err, ErrMoved) { // as package service answers it
		return nil, &events.ServiceError{V: events.Version, Code: events.CodeWrongPartition, Message: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return h.committed(at) }, nil
}

// committed commits up to an event.
func (h *simulatedHost) committed(at measure.Seq) error {
	for h.o.committed < at && h.o.s.flaw != uncommittedAnswered {
		if err := h.between(); err != nil {
			return err
		}
		if h.o.commit(h.o.queued()); h.o.ended {
			return errUnserved
		}
	}
	return nil
}

// text is an event of the log.
func (h *simulatedHost) text(a events.Address, seq measure.Seq) ([]events.Message, error) {
	s := h.o.s
	if int(seq) > len(s.log) || s.log[seq-1].Address != a {
		return nil, errUnserved // the log lost it
	}
	e := s.log[seq-1]
	return payload.Texts(e.Kind, e.Data)
}

func (h *simulatedHost) Turn(_ context.Context, a events.Address, seq measure.Seq) ([]events.Message, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	return h.text(a, seq)
}

func (h *simulatedHost) Sourced(_ context.Context, a events.Address, v *render.View, own func(measure.Seq) []events.Message) ([]render.Sourced, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	if h.o.s.flaw == formerView {
		if l, err := h.o.ledgers.decider.Ledger(a); err == nil && l.Generation() > 0 {
			v = l.ViewAt(l.Generation() - 1)
		}
	}
	messages := map[measure.Seq][]events.Message{}
	for _, seq := range v.Seqs() {
		if messages[seq] = own(seq); messages[seq] == nil {
			var err error
			if messages[seq], err = h.text(a, seq); err != nil {
				return nil, err
			}
		}
	}
	return render.WithSources(v, func(seq measure.Seq) ([]events.Message, error) { return messages[seq], nil })
}

// baseOf finds the base of a turn in its payload.
var baseOf = regexp.MustCompile(`"expect":\{[^}]*\},|,"expect":\{[^}]*\}`)

// turnOf finds the number of a turn.
var turnOf = regexp.MustCompile(`"turn":\d+,`)

func (h *simulatedHost) Publish(_ context.Context, k events.Kind, a events.Address, id string, body []byte) (uint64, error) {
	s := h.o.s
	if err := h.between(); err != nil {
		return 0, err
	}
	if h.o.dry {
		s.violated("a dry run publishes %s", body)
	}
	if k == events.KindTurn && s.flaw == baseLeftOut {
		body = baseOf.ReplaceAll(body, nil)
	}
	s.publish(k, a, id, body)
	if k == events.KindTurn && bytes.Contains(body, []byte(`"replaces_from"`)) {
		s.synced.Replaced++
		s.explicit[id] = s.explicit[id] || h.o.asking.onDiverge == events.DivergeReplace
		if on := h.o.asking.onDiverge; on == events.DivergeRefuse || on == events.DivergeBranch {
			s.violated("%s: on_diverge %s retracts: %s", h.o.asking.name, on, body)
		}
	}
	if s.flaw == retryAppended && k == events.KindTurn && s.odds(10) {
		l, err := h.o.ledgers.decider.Ledger(a)
		if err != nil {
			return 0, err
		}
		again := turnOf.ReplaceAll(baseOf.ReplaceAll(body, nil), fmt.Appendf(nil, `"turn":%d,`, l.LastTurn()+2))
		s.publish(k, a, id+"-again", again)
	}
	at := -1
	for i, e := range slices.Backward(s.log) {
		if e.ID == id && e.Address == a {
			at = i
			break
		}
	}
	if at < 0 {
		return 0, errUnserved // a power loss in between
	}
	if err := h.between(); err != nil { // it is stored, and the worker does not notice
		return 0, err
	}
	return uint64(at + 1), nil
}

func (h *simulatedHost) MaxBytes() int { return h.o.s.eventBytes }

func (h *simulatedHost) AwaitDecided(_ context.Context, _ events.Address, w events.Await) error {
	for range 6 {
		if h.o.s.odds(5) {
			break
		}
		if err := h.between(); err != nil {
			return err
		}
		if uint64(h.o.ledgers.position().seq) >= w.Seq {
			return nil
		}
		h.o.read(1 + h.o.s.IntN(4))
	}
	return errPending
}

func (h *simulatedHost) Outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	a, s := in.Address(), h.o.s
	out := &events.OutcomeResponse{V: events.Version, Seq: in.Seq, Accepted: true}
	committed, err := h.Inspect(a, func(l *compaction.Ledger) { out.Generation, out.Through = l.Generation(), l.Through() })
	if err == nil {
		err = committed(ctx)
	}
	if err != nil || out.Through.Seq == in.Seq {
		return out, err
	}
	if in.Seq > uint64(len(s.log)) {
		return nil, errUnserved // the log lost it
	}
	cause := events.CauseOf(in.Seq, s.log[in.Seq-1].Data)
	for _, c := range slices.Backward(s.outcomes) {
		if c.cause != measure.Seq(in.Seq) || c.address != a {
			continue
		}
		if body, err := events.DecodeOutcome(c.kind, c.data); err != nil || !events.Answers(body).Is(cause) {
			continue
		}
		switch c.kind {
		case events.KindRejected:
			var r events.Rejected
			if err := events.Unmarshal(c.data, &r); err != nil {
				return nil, err
			}
			out.Accepted, out.Code, out.Message, out.Hint = !events.Codes[r.Code].Rejects, r.Code, r.Message, r.Hint
			return out, nil
		case events.KindCompacted:
			var b events.Compacted
			if err := events.Unmarshal(c.data, &b); err != nil {
				return nil, err
			}
			entry := b.Entry(0)
			out.Compaction = &entry
			return out, nil
		}
	}
	return out, nil
}

func (h *simulatedHost) Sync(_ context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	o := h.o.s.worker(in.Address()) // a branch may be of another partition
	if o == nil {
		return nil, errUnserved
	}
	return o.answerSync(h.o.asking, in)
}

func (h *simulatedHost) Await(context.Context, <-chan struct{}) error {
	if h.o.s.odds(30) {
		return errPending
	}
	return h.between()
}
