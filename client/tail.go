package client

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// tail adds the turns to a view that the log has after its boundary, as a worker applies
// them.
type tail struct {
	view     *view
	format   events.Format
	system   codec.Raw // nil = not set after the boundary
	tools    codec.Raw
	parked   []own           // wait for a turn before them
	rejected map[uint64]bool // events by their sequence
	resets   map[uint64]bool // of them: the session began again with it
}

// errBelow: the base of the view contains turns that were retracted.
var errBelow = errors.New("the history contains turns that were retracted")

// read adds the turns after the boundary. Rejections are read from a sequence of
// OUTCOMES on. Its error is errBelow when another base is needed: one that the view's
// retractions allow.
func (t *tail) read(ctx context.Context, nc *nats.Conn, a events.Address, rejected uint64) error {
	if err := t.readRejected(ctx, nc, a, rejected); err != nil {
		return err
	}
	return stream.ReadSubject(ctx, nc, topology.LogStream, "log.*.*."+a.String(), t.view.through.Seq+1, func(m stream.LogMessage) error {
		at, err := events.ParseLog(m.Subject)
		if err != nil {
			return err
		}
		switch {
		case t.resets[m.Seq], at.Kind == events.KindEnd, at.Kind == events.KindForget:
			return t.reset(m.Seq)
		case at.Kind != events.KindTurn || t.rejected[m.Seq]:
			return nil
		}
		return t.add(m.Data, m.Seq)
	})
}

// readRejected finds the events that were not applied.
func (t *tail) readRejected(ctx context.Context, nc *nats.Conn, a events.Address, from uint64) error {
	t.rejected, t.resets = map[uint64]bool{}, map[uint64]bool{}
	return stream.ReadSubject(ctx, nc, topology.OutcomesStream, outcomesOf(events.KindRejected, a), from, func(m stream.LogMessage) error {
		var b events.Rejected
		if err := codec.Unmarshal(m.Data, &b); err != nil {
			return err
		}
		t.rejected[b.Seq] = t.rejected[b.Seq] || events.Codes[b.Code].Rejects
		t.resets[b.Seq] = t.resets[b.Seq] || b.Code == events.CodeSessionReset
		return nil
	})
}

// reset begins the session again.
func (t *tail) reset(seq uint64) error {
	t.view.retracted.add(retraction{seq, 0})
	if t.view.through.Turn > 0 {
		return errBelow
	}
	*t.view = view{retracted: t.view.retracted}
	*t = tail{view: t.view, rejected: t.rejected, resets: t.resets}
	return nil
}

// add applies a turn if a worker would.
func (t *tail) add(data []byte, seq uint64) error {
	in, err := events.DecodeTurn(data)
	if err != nil {
		return nil //nolint:nilerr // it will be refused
	}
	next := t.view.last + 1
	o := own{number: cmp.Or(max(in.Number, in.ReplacesFrom), next), id: in.ID, messages: in.Messages, generation: in.Generation}
	format := t.dialect(in)
	switch {
	case !readable(format, in.Messages), in.ReplacesFrom > next, in.ReplacesFrom != 1 && t.format != "" && format != t.format:
		return nil // refused
	case in.ReplacesFrom > 0:
		if t.isDuplicate(o) {
			return nil
		}
		t.view.retracted.add(retraction{seq, o.number})
		if !t.view.cut(o.number) {
			return errBelow
		}
		t.parked = slices.DeleteFunc(t.parked, func(p own) bool { return p.number >= o.number })
	case o.number < next:
		return nil // sent twice, or refused
	case o.number > next:
		t.park(o)
		return nil
	}
	t.format = format
	t.take(o, in)
	return nil
}

func readable(f events.Format, messages []codec.Raw) bool {
	_, err := f.ReadAll(messages)
	return err == nil
}

// isDuplicate reports whether a turn that retracts others was applied already.
func (t *tail) isDuplicate(o own) bool {
	return slices.ContainsFunc(t.view.own, func(p own) bool { return p.number == o.number && p.id == o.id && o.id != "" })
}

// take appends a turn, and those that were parked behind it.
func (t *tail) take(o own, in *events.Turn) {
	bound := t.view.bound
	if in.Model != nil {
		t.view.bound = t.format.BindsThinking(*in.Model)
	}
	if t.view.bound && !bound || differs(in.System, t.system) || differs(in.Tools, t.tools) {
		t.view.rebind()
	}
	t.system, t.tools = or(in.System, t.system), or(in.Tools, t.tools)
	t.view.append(o)
	for {
		i := slices.IndexFunc(t.parked, func(p own) bool { return p.number == t.view.last+1 })
		if i < 0 {
			return
		}
		t.view.append(t.parked[i])
		t.parked = slices.Delete(t.parked, i, i+1)
	}
}

func (t *tail) park(o own) {
	if !slices.ContainsFunc(t.parked, func(p own) bool { return p.number == o.number }) {
		t.parked = append(t.parked, o)
	}
}

// dialect is the dialect of a turn's messages.
func (t *tail) dialect(in *events.Turn) events.Format {
	switch {
	case in.Format != "":
		return in.Format
	case t.format != "":
		return t.format
	default:
		return events.DefaultFormat(in.Model)
	}
}

// prompt finds system prompt and tools that were set before the boundary.
func (t *tail) prompt(ctx context.Context, nc *nats.Conn, a events.Address) error {
	if t.view.through.Seq == 0 || t.system != nil && t.tools != nil {
		return nil
	}
	var system, tools codec.Raw
	err := stream.ReadSubject(ctx, nc, topology.LogStream, "log.*."+string(events.KindTurn)+"."+a.String(), 1, func(m stream.LogMessage) error {
		if m.Seq > t.view.through.Seq {
			return stream.ErrEnd
		}
		if in, err := events.DecodeTurn(m.Data); err == nil {
			system, tools = or(in.System, system), or(in.Tools, tools)
		}
		return nil
	})
	t.system, t.tools = or(t.system, system), or(t.tools, tools)
	return err
}

// or is the first of two values that is set.
func or(a, b codec.Raw) codec.Raw {
	if a != nil {
		return a
	}
	return b
}
