package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"compactd/internal/align"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/syncs"
)

// answerSync has a worker answer, unless one sync of the session is in the midst of it.
func (o *owner) answerSync(c *caller, in *events.SyncRequest) (*events.SyncResponse, error) {
	if o.syncer == nil {
		h := &simulatedHost{o: o, texts: payload.NewRenderer(nil, math.MaxInt32)}
		h.texts.Read = h.readLog
		o.syncer = syncs.New(h, syncs.Config{Compaction: o.set.Compaction, Texts: h.texts, MaxBytes: func() int { return o.s.eventBytes }})
		o.busy = map[events.Address]bool{}
	}
	data, err := codec.Marshal(in)
	if err == nil {
		in, err = events.Decode[events.SyncRequest](data)
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
	outer := o.call
	o.call = syncCall{c, a, in.DryRun}
	defer func() { o.call = outer }()
	out, err := o.syncer.Answer(context.Background(), in)
	if o.s.flaw == formerView && err == nil && out.Recorded && out.Changed {
		n := len(in.Messages)
		if in.Prefix != nil {
			n += int(in.Prefix.Count)
		}
		out.Parts = align.Keep(n)
	}
	return out, err
}

// simulatedHost is an owner as syncs see it. Between any two of its calls other things happen,
// and it may crash.
type simulatedHost struct {
	o     *owner
	texts *payload.Renderer
}

// syncCall is the sync that an owner answers.
type syncCall struct {
	asking  *caller
	address events.Address
	dry     bool // it is to publish nothing
}

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
			b, err := events.Decode[events.Branch](e.Data)
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
	data, err := codec.Marshal(body)
	if err == nil {
		f.o.s.publish(k, a, id, data)
	}
	return err
}

func (h *simulatedHost) between() error {
	s, call := h.o.s, h.o.call
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
	h.o.call = call
	h.texts.Erase(call.address) // the log may have lost some
	if h.o.ended {
		return errUnserved
	}
	return nil
}

func (h *simulatedHost) Inspect(_ context.Context, a events.Address, after events.Await, read func(*compaction.Ledger)) (func(context.Context) error, error) {
	err := h.awaitDecided(after.Seq)
	if err == nil {
		err = h.between()
	}
	if err != nil {
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

// readLog reads events of the log, for their texts.
func (h *simulatedHost) readLog(_ context.Context, seqs []uint64) ([]stream.LogMessage, error) {
	if err := h.between(); err != nil {
		return nil, err
	}
	out := make([]stream.LogMessage, len(seqs))
	for i, seq := range seqs {
		if seq > uint64(len(h.o.s.log)) || h.o.s.log[seq-1].Address != h.o.call.address {
			return nil, errUnserved // the log lost it
		}
		e := h.o.s.log[seq-1]
		out[i] = stream.LogMessage{Seq: seq, Subject: fmt.Sprintf("log.%d.%s.%s", e.Partition, e.Kind, e.Address), Data: e.Data}
	}
	return out, nil
}

// baseOf finds the base of a turn in its payload.
var baseOf = regexp.MustCompile(`"expect":\{[^}]*\},|,"expect":\{[^}]*\}`)

// turnOf finds the number of a turn.
var turnOf = regexp.MustCompile(`"turn":\d+,`)

func (h *simulatedHost) Deliver(_ context.Context, k events.Kind, a events.Address, id string, body []byte, _ bool) (uint64, bool, error) {
	s := h.o.s
	if err := h.between(); err != nil {
		return 0, false, err
	}
	if h.o.call.dry {
		s.violated("a dry run publishes %s", body)
	}
	if k == events.KindTurn && s.flaw == baseLeftOut {
		body = baseOf.ReplaceAll(body, nil)
	}
	s.publish(k, a, id, body)
	if k == events.KindTurn && bytes.Contains(body, []byte(`"replaces_from"`)) {
		s.synced.Replaced++
		s.explicit[id] = s.explicit[id] || h.o.call.asking.onDiverge == events.DivergeReplace
		if on := h.o.call.asking.onDiverge; on == events.DivergeRefuse || on == events.DivergeBranch {
			s.violated("%s: on_diverge %s retracts: %s", h.o.call.asking.name, on, body)
		}
	}
	if s.flaw == retryAppended && k == events.KindTurn && s.odds(10) {
		l, err := h.o.ledgers.decider.Ledger(a)
		if err != nil {
			return 0, false, err
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
		return 0, false, errUnserved // a power loss in between
	}
	if err := h.between(); err != nil { // it is stored, and the worker does not notice
		return 0, false, err
	}
	return uint64(at + 1), false, nil
}

func (h *simulatedHost) awaitDecided(seq uint64) error {
	if seq == 0 {
		return nil
	}
	for range 6 {
		if h.o.s.odds(5) {
			break
		}
		if err := h.between(); err != nil {
			return err
		}
		if uint64(h.o.ledgers.position().seq) >= seq {
			return nil
		}
		h.o.read(1 + h.o.s.IntN(4))
	}
	return errPending
}

func (h *simulatedHost) ResultOf(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	for {
		err := h.awaitDecided(in.Seq)
		if err == nil {
			err = h.between()
		}
		if err != nil {
			return nil, err
		}
		out, err := h.outcome(ctx, in)
		if err != nil || *in.WaitMS == 0 || !out.Accepted || out.Compaction != nil || h.o.s.odds(30) {
			return out, err
		}
	}
}

func (h *simulatedHost) outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	a, s := in.Address(), h.o.s
	out := &events.OutcomeResponse{V: events.Version, Seq: in.Seq, Accepted: true}
	committed, err := h.Inspect(ctx, a, events.Await{}, func(l *compaction.Ledger) { out.Generation, out.Through = l.Generation(), l.Through() })
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
			if err := codec.Unmarshal(c.data, &r); err != nil {
				return nil, err
			}
			out.Accepted, out.Code, out.Message, out.Hint = !events.Codes[r.Code].Rejects, r.Code, r.Message, r.Hint
			return out, nil
		case events.KindCompacted:
			var b events.Compacted
			if err := codec.Unmarshal(c.data, &b); err != nil {
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
	out, err := o.answerSync(h.o.call.asking, in)
	if o != o.s.current[o.partition] {
		o.s.formers++
	}
	return out, err
}
