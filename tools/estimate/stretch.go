package main

import (
	"fmt"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/transcript"
	"compactd/tools/origin"
)

// call is one call to a model.
type call struct {
	sent   []codec.Raw // since the answer before
	answer codec.Raw
	input  int64 // of its prompt, by the provider; 0 when it reported none
	output int64 // of its answer
}

// stretch is a part of a session during which nothing left the history.
type stretch struct {
	name   string
	groups []string // harness and repository
	format events.Format
	model  events.Model
	calls  []call // the first has an input

	opening []codec.Raw // what was sent with the first call of its session; nil for another stretch
}

// counts identifies a stretch by what its provider counted.
func (s *stretch) counts() string {
	var out []int64
	for _, c := range s.calls {
		out = append(out, c.input, c.output)
	}
	return fmt.Sprint(out)
}

// window is that of the model, or what the recording shows that it had.
func (s *stretch) window() measure.Tokens {
	if w := s.model.ContextWindow; w > 0 {
		return measure.Tokens(w)
	}
	return windows.Window(s.model.Provider, s.model.Name)
}

var windows = measure.DefaultWindows().Table()

// A count that is lower than the one before by more than removedShare of it, and by more than
// leastRemoved, is of a history that something was removed from, and that no transcript shows: some
// agents clear old results without a note.
const (
	removedShare measure.PPM = 50_000
	leastRemoved int64       = 1_000
)

// removed reports whether something left the history between two counts.
func removed(before, after int64) bool {
	return before-after > max(int64(removedShare.Share(measure.Tokens(before))), leastRemoved)
}

// stretches cuts a session where the recorded agent compacted, or removed something. The parts
// that are not known have all that is before the first usage of a stretch.
func stretches(s transcript.Session) []stretch {
	var out []stretch
	groups := []string{origin.Harness(messages(s)), origin.Repository(s.Name)}
	counted := int64(0)
	var pending []codec.Raw
	n := 0
	next := true
	var model events.Model
	for _, t := range s.Turns {
		if in, err := events.DecodeTurn(t.Payload); err == nil && in.Model != nil {
			if next = next || in.Model.Name != model.Name; next { // another one counts otherwise
				pending = nil
			}
			model = *in.Model
		}
		if t.Restarted || t.Input > 0 && removed(counted, t.Input) {
			next, pending = true, nil
		}
		if t.Input > 0 {
			counted = t.Input
		}
		last := len(t.Messages) - 1
		if last < 0 || !answers(s.Format, t.Messages[last]) {
			pending = append(pending, t.Messages...)
			continue
		}
		c := call{append(pending, t.Messages[:last]...), t.Messages[last], t.Input, t.Output}
		pending = nil
		switch {
		case next && t.Input > 0:
			n++
			var opening []codec.Raw
			if t.Number == 1 {
				opening = c.sent
			}
			c.sent = nil
			out = append(out, stretch{fmt.Sprintf("%s/%d", s.Name, n), groups, s.Format, model, []call{c}, opening})
			next = false
		case !next:
			at := &out[len(out)-1]
			at.calls = append(at.calls, c)
		}
	}
	return out
}

// messages reads those of each turn.
func messages(s transcript.Session) (out [][]dialect.Message) {
	for _, t := range s.Turns {
		all, err := s.Format.ReadAll(t.Messages)
		if err != nil {
			continue // the estimator reports it
		}
		out = append(out, all)
	}
	return out
}

// answers reports whether a message is the assistant's.
func answers(f events.Format, raw codec.Raw) bool {
	m, err := f.Read(raw)
	return err == nil && m.Role == dialect.RoleAssistant
}
