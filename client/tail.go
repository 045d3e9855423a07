package client

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/events"
)

// tail adds to a view the turns that the log has after its border, as a worker takes
// them.
type tail struct {
	view   *view
	format events.Format
	system events.Raw // nil = none was set after the border
	tools  events.Raw
	parked []own           // wait for a turn before them
	denied map[uint64]bool // events by their sequence
	resets map[uint64]bool // of them: the session began anew with it
}

// errBelow: turns were withdrawn that the base of the view stands for.
var errBelow = errors.New("turns were withdrawn that the history stands for")

// read adds the turns after the border; rejections are looked up from a sequence of
// OUTCOMES on. Its error is errBelow when another base is needed: the view's
// withdrawals say which.
func (t *tail) read(ctx context.Context, js jetstream.JetStream, a events.Address, rejected uint64) error {
	if err := t.readRejected(ctx, js, a, rejected); err != nil {
		return err
	}
	return broker.ReadStream(ctx, js, broker.LogStream, "log.*.*."+a.String(), t.view.through.Seq+1, 0, func(m jetstream.Msg, seq uint64) error {
		at, err := events.ParseLog(m.Subject())
		if err != nil {
			return err
		}
		switch {
		case t.resets[seq], at.Kind == events.KindEnd, at.Kind == events.KindForget:
			return t.reset(seq)
		case at.Kind != events.KindTurn || t.denied[seq]:
			return nil
		}
		return t.add(m.Data(), seq)
	})
}

// readRejected learns which events did not count.
func (t *tail) readRejected(ctx context.Context, js jetstream.JetStream, a events.Address, from uint64) error {
	t.denied, t.resets = map[uint64]bool{}, map[uint64]bool{}
	return broker.ReadStream(ctx, js, broker.OutcomesStream, outcomesOf(events.KindRejected, a), from, 0, func(m jetstream.Msg, _ uint64) error {
		var b events.Rejected
		if err := events.Unmarshal(m.Data(), &b); err != nil {
			return err
		}
		t.denied[b.Seq] = t.denied[b.Seq] || events.Codes[b.Code].Denies
		t.resets[b.Seq] = t.resets[b.Seq] || b.Code == events.CodeSessionReset
		return nil
	})
}

// reset begins the session anew.
func (t *tail) reset(seq uint64) error {
	t.view.withdrawn.add(withdrawal{seq, 0})
	if t.view.through.Turn > 0 {
		return errBelow
	}
	*t.view = view{withdrawn: t.view.withdrawn}
	*t = tail{view: t.view, denied: t.denied, resets: t.resets}
	return nil
}

// add takes a turn if a worker would.
func (t *tail) add(data []byte, seq uint64) error {
	in, err := events.DecodeTurn(data)
	if err != nil {
		return nil //nolint:nilerr // it will be refused
	}
	next := t.view.last + 1
	o := own{number: max(in.Number, in.ReplacesFrom), id: in.ID, messages: in.Messages}
	if o.number == 0 {
		o.number = next
	}
	format := t.dialect(in)
	_, unreadable := format.ReadAll(in.Messages)
	switch {
	case unreadable != nil, in.ReplacesFrom > next, in.ReplacesFrom != 1 && t.format != "" && format != t.format:
		return nil // refused
	case in.ReplacesFrom > 0:
		if t.twice(o) {
			return nil
		}
		t.view.withdrawn.add(withdrawal{seq, o.number})
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

// twice reports whether a turn that withdraws others was taken already.
func (t *tail) twice(o own) bool {
	return slices.ContainsFunc(t.view.own, func(p own) bool { return p.number == o.number && p.id == o.id && o.id != "" })
}

// take appends a turn, and those that waited for it.
func (t *tail) take(o own, in *events.Turn) {
	if in.System != nil {
		t.system = in.System
	}
	if in.Tools != nil {
		t.tools = in.Tools
	}
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

// dialect is that of a turn's messages.
func (t *tail) dialect(in *events.Turn) events.Format {
	switch {
	case in.Format != "":
		return in.Format
	case t.format != "":
		return t.format
	case in.Model != nil:
		return events.DefaultFormat(in.Model.Provider)
	default:
		return events.DefaultFormat("")
	}
}

// prompt finds system prompt and tools that were set before the border.
func (t *tail) prompt(ctx context.Context, js jetstream.JetStream, a events.Address) error {
	if t.view.through.Seq == 0 || t.system != nil && t.tools != nil {
		return nil
	}
	var system, tools events.Raw
	err := broker.ReadStream(ctx, js, broker.LogStream, "log.*."+string(events.KindTurn)+"."+a.String(), 1, t.view.through.Seq, func(m jetstream.Msg, _ uint64) error {
		if in, err := events.DecodeTurn(m.Data()); err == nil {
			if in.System != nil {
				system = slices.Clone(in.System)
			}
			if in.Tools != nil {
				tools = slices.Clone(in.Tools)
			}
		}
		return nil
	})
	if t.system == nil {
		t.system = system
	}
	if t.tools == nil {
		t.tools = tools
	}
	return err
}
