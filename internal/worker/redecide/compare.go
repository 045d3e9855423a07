package redecide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
	"compactd/internal/worker/payload"
)

// compare compares the new outcomes of an event with the recorded ones.
func (r *replayer) compare(ctx context.Context, id int, e decide.Event, s *session, outs []compaction.Outcome, recorded []outcomelog.Outcome) error {
	for i := range max(len(outs), len(recorded)) {
		switch {
		case i >= len(outs):
			r.differ(s, e.OutcomeAddress(), e.Seq, recorded[i].Kind, "", string(recorded[i].Data), "")
		case i >= len(recorded):
			data, err := codec.Marshal(outs[i].Body)
			if err != nil {
				return err
			}
			r.differ(s, e.OutcomeAddress(), e.Seq, outs[i].Kind, "", "", string(data))
		default:
			if err := r.pair(ctx, id, e, s, outs[i], &recorded[i]); err != nil {
				return err
			}
		}
		r.out.Outcomes++
	}
	return nil
}

// pair compares one outcome. Omitted messages do not count: they depend on the server's limit and on the
// texts in the log, not on the decision.
func (r *replayer) pair(ctx context.Context, id int, e decide.Event, s *session, o compaction.Outcome, was *outcomelog.Outcome) error {
	if subject := decide.SubjectOf(id, e.OutcomeAddress(), o); subject != was.Subject {
		r.differ(s, e.OutcomeAddress(), e.Seq, o.Kind, "subject", was.Subject, subject)
		return nil
	}
	recorded := was.Data
	decided, err := r.renderDecided(ctx, e.OutcomeAddress(), o, recorded)
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		r.out.Textless++
		if recorded, err = withoutText(recorded); err != nil {
			return r.unreadable(e, s, was, decided)
		}
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(recorded, decided) {
		path, x, y := firstDifference("", recorded, decided)
		r.differ(s, e.OutcomeAddress(), e.Seq, o.Kind, path, x, y)
	}
	return nil
}

func (r *replayer) unreadable(e decide.Event, s *session, was *outcomelog.Outcome, decided []byte) error {
	r.differ(s, e.OutcomeAddress(), e.Seq, was.Kind, "", string(was.Data), string(decided))
	return nil
}

// renderDecided writes a decided outcome, without messages if the recorded one has none.
func (r *replayer) renderDecided(ctx context.Context, a events.Address, o compaction.Outcome, recorded []byte) ([]byte, error) {
	if data, err := OmittedAs(o, recorded); data != nil || err != nil {
		return data, err
	}
	data, _, err := r.payloads.Outcome(ctx, nil, a, o, connect.MaxPayload(r.nc))
	return data, err
}

// OmittedAs writes a decided compaction without its messages, in the form of the recorded one. It
// returns nil if that has messages.
func OmittedAs(o compaction.Outcome, recorded []byte) ([]byte, error) {
	c, ok := o.Body.(*events.Compacted)
	if !ok || o.View == nil {
		return nil, nil
	}
	var was struct {
		Omitted bool          `json:"messages_omitted"`
		Notes   []events.Note `json:"notes"`
	}
	if codec.Unmarshal(recorded, &was) != nil || !was.Omitted {
		return nil, nil //nolint:nilerr // the comparison reports an unreadable outcome as different
	}
	i := slices.IndexFunc(was.Notes, func(n events.Note) bool {
		return n.Code == events.CodeOutcomesLimit || n.Code == events.CodeInvalidHistory
	})
	if i < 0 {
		return payload.WithoutMessages(c)
	}
	return payload.WithoutMessages(c, was.Notes[i])
}

// withoutText returns a recorded compaction in the form without messages.
func withoutText(data []byte) ([]byte, error) {
	var c events.Compacted
	if err := codec.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	c.Messages, c.Summary, c.MessagesOmitted = nil, nil, true
	c.Edits = slices.DeleteFunc(c.Edits, func(e events.Edit) bool { return e.Op.Writes() })
	return codec.Marshal(c)
}

// firstDifference returns the first field in which two JSON texts differ, in the order of
// names, and its two values.
func firstDifference(path string, a, b []byte) (string, string, string) {
	var x, y map[string]codec.Raw
	if codec.Unmarshal(a, &x) == nil && codec.Unmarshal(b, &y) == nil {
		names := map[string]bool{}
		for name := range x {
			names[name] = true
		}
		for name := range y {
			names[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if !bytes.Equal(x[name], y[name]) {
				return firstDifference(join(path, name), x[name], y[name])
			}
		}
		return path, "another order or white space", "" // the same fields
	}
	var s, t []codec.Raw
	if codec.Unmarshal(a, &s) == nil && codec.Unmarshal(b, &t) == nil {
		for i := range min(len(s), len(t)) {
			if !bytes.Equal(s[i], t[i]) {
				return firstDifference(fmt.Sprintf("%s[%d]", path, i), s[i], t[i])
			}
		}
		return path, fmt.Sprintf("%d elements", len(s)), fmt.Sprintf("%d elements", len(t))
	}
	was, now := apart(string(a), string(b))
	return path, was, now
}

// apart omits the common beginning of two long texts, so that the shown parts differ.
func apart(a, b string) (string, string) {
	r, s := []rune(a), []rune(b)
	same := 0
	for same < min(len(r), len(s)) && r[same] == s[same] {
		same++
	}
	if from := same - maxShown/4; same >= maxShown {
		return "…" + string(r[from:]), "…" + string(s[from:])
	}
	return a, b
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// maxShown limits the shown part of a value, in characters.
const maxShown = 80

// clip shortens a value to maxShown. It returns a dash for an empty value.
func clip(s string) string {
	if s == "" {
		return "-"
	}
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return s
}
