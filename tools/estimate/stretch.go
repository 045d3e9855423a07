package main

import (
	"fmt"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/ops/transcript"
)

// call is one call to a model.
type call struct {
	sent   []events.Raw // since the answer before
	answer events.Raw
	input  int64 // of its prompt, by the provider; 0 when it reported none
}

// stretch is a part of a session during which nothing left the history.
type stretch struct {
	name   string
	format events.Format
	model  events.Model
	calls  []call // the first has an input
}

// window is that of the model, or what the recording shows that it had.
func (s *stretch) window() compaction.Tokens {
	if w := s.model.ContextWindow; w > 0 {
		return compaction.Tokens(w)
	}
	return windows.Window(s.model.Provider, s.model.Name)
}

var windows = compaction.DefaultWindows()

// stretches cuts a session where the recorded agent compacted. What is before the
// first usage of a stretch is in the parts that are not known.
func stretches(s transcript.Session) []stretch {
	var out []stretch
	var pending []events.Raw
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
		if t.Restarted {
			next, pending = true, nil
		}
		last := len(t.Messages) - 1
		if last < 0 || !answers(s.Format, t.Messages[last]) {
			pending = append(pending, t.Messages...)
			continue
		}
		c := call{append(pending, t.Messages[:last]...), t.Messages[last], t.Input}
		pending = nil
		switch {
		case next && t.Input > 0:
			n++
			c.sent = nil
			out = append(out, stretch{fmt.Sprintf("%s/%d", s.Name, n), s.Format, model, []call{c}})
			next = false
		case !next:
			at := &out[len(out)-1]
			at.calls = append(at.calls, c)
		}
	}
	return out
}

// answers reports whether a message is the assistant's.
func answers(f events.Format, raw events.Raw) bool {
	m, err := f.Read(raw)
	return err == nil && m.Role == events.RoleAssistant
}
