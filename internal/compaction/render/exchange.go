package render

import (
	"slices"

	"compactd/internal/events"
)

// place is where a message belongs in its exchange.
type place uint8

const (
	speech  place = iota // of the assistant, with its calls
	results              // of the calls
	answers              // placeholders for results that there are none of
	rest                 // all else, up to the next assistant
)

// add puts a message into the open exchange, or begins the next one: with the
// placeholders for the results that its calls are missing, and the placeholder calls of
// its results.
func (r *renderer) add(m events.Message, missing, calls []events.Message) {
	if m.Role == events.RoleSystem {
		r.system = append(r.system, m)
		return
	}
	if m.Role == events.RoleAssistant {
		if r.view.Format != events.Anthropic || slices.Contains(r.ranks, results) || slices.Contains(r.ranks, rest) {
			r.flush()
		}
		r.put(speech, m)
	}
	for _, a := range missing {
		r.put(answers, a)
	}
	for _, call := range calls {
		if !r.calls() {
			r.flush()
		}
		if r.view.Format != events.Anthropic { // before an exchange whose calls may be open
			r.out = slices.Insert(r.out, r.open, call, m)
			r.open += 2
			return
		}
		r.put(speech, call)
	}
	switch {
	case m.Role == events.RoleAssistant:
	case slices.Contains(r.ranks, speech) && (m.Role == events.RoleTool || slices.ContainsFunc(m.Parts, isResultPart)):
		r.put(results, m)
	default:
		r.put(rest, m)
	}
}

// put adds a message to the open exchange.
func (r *renderer) put(at place, m events.Message) {
	r.out, r.ranks = append(r.out, m), append(r.ranks, at)
}

// calls reports whether the open exchange has a call.
func (r *renderer) calls() bool {
	for i, at := range r.ranks {
		if at == speech && slices.ContainsFunc(r.out[r.open+i].Parts, isCallPart) {
			return true
		}
	}
	return false
}

func isCallPart(p events.Part) bool { return p.Kind == events.PartCall }

func isResultPart(p events.Part) bool { return p.Kind == events.PartResult }

// flush ends the open exchange: its messages come into their places, and where
// roles alternate equal neighbours become one message.
func (r *renderer) flush() {
	if !slices.IsSorted(r.ranks) {
		r.sort()
	}
	if r.view.Format == events.Anthropic {
		r.join()
	}
	r.open, r.ranks = len(r.out), r.ranks[:0]
}

func (r *renderer) sort() {
	came := slices.Clone(r.out[r.open:])
	r.out = r.out[:r.open]
	for at := speech; at <= rest; at++ {
		for i, m := range came {
			if r.ranks[i] == at {
				r.out = append(r.out, m)
			}
		}
	}
}

func (r *renderer) join() {
	n := r.open
	for i := r.open; i < len(r.out); i++ {
		switch {
		case n > 0 && r.out[n-1].Role == r.out[i].Role:
			r.out[n-1] = merge(r.out[n-1], r.out[i])
			continue
		case n < i:
			r.out[n] = r.out[i]
		}
		n++
	}
	r.out = r.out[:n]
}

// merge joins two messages of one role; results come first.
func merge(a, b events.Message) events.Message {
	parts := slices.Concat(a.Parts, b.Parts)
	slices.SortStableFunc(parts, byRank)
	return events.Message{Role: a.Role, Parts: parts, Raw: a.Raw, Edited: true}
}

func byRank(x, y events.Part) int { return rank(x) - rank(y) }

func rank(p events.Part) int {
	if p.Kind == events.PartResult {
		return 0
	}
	return 1
}
