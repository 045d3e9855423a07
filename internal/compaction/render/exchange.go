package render

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/dialect"
)

// rank is the place of a message in its exchange.
type rank uint8

const (
	ahead   rank = iota // the system's, while calls await their results
	speech              // of the assistant, with its calls
	results             // of the calls
	answers             // placeholders for missing results
	rest                // all else, up to the next assistant
)

// add puts a message into the open exchange, or begins the next one. missing are the placeholders for missing
// results of its calls, and calls the placeholder calls of its results.
func (r *renderer) add(m message, missing, calls []message) error {
	if m.role == measure.RoleSystem {
		r.put(rest, m)
		return nil
	}
	if m.role == measure.RoleAssistant {
		if r.dialect.Exchange != dialect.ByRun || r.has[results] || r.has[rest] {
			if err := r.flush(); err != nil {
				return err
			}
		}
		r.put(speech, m)
	}
	for _, a := range missing {
		r.put(answers, a)
	}
	for _, call := range calls {
		if !r.called {
			if err := r.flush(); err != nil {
				return err
			}
		}
		if r.dialect.Exchange != dialect.ByRun { // before an exchange whose calls may be open
			r.putBefore(call, m)
			return nil
		}
		r.put(speech, call)
	}
	switch {
	case m.role == measure.RoleAssistant:
	case r.has[speech] && (m.role == measure.RoleTool || m.results):
		r.put(results, m)
	default:
		r.put(rest, m)
	}
	return nil
}

// put adds a message to the open exchange.
func (r *renderer) put(at rank, m message) {
	r.out, r.ranks = append(r.out, m), append(r.ranks, at)
	r.has[at] = true
	r.called = r.called || at == speech && m.calls
}

// putBefore adds a placeholder call and its result, which [renderer.flush] puts before the open exchange.
func (r *renderer) putBefore(call, result message) {
	if r.open < len(r.out) {
		r.placedBehind(result, r.came(result, r.before, r.out[:r.open]))
	}
	r.before = append(r.before, call, result)
}

// placeBefore puts the calls and results of putBefore before the open exchange.
func (r *renderer) placeBefore() {
	r.out = slices.Insert(r.out, r.open, r.before...)
	r.open += len(r.before)
	r.before = r.before[:0]
}

// flush ends the open exchange: its messages are sorted, and joined where roles must alternate.
func (r *renderer) flush() error {
	r.placeBefore()
	if !slices.IsSorted(r.ranks) {
		r.sort()
	}
	if r.dialect.Joined != dialect.JoinNone || r.view.Demands.Alternates {
		if err := r.placeInstructions(); err != nil {
			return err
		}
		if err := r.join(); err != nil {
			return err
		}
	}
	r.open, r.ranks, r.has, r.called = len(r.out), r.ranks[:0], [rest + 1]bool{}, false
	return nil
}

// sort sorts the messages of the open exchange by rank.
func (r *renderer) sort() {
	late := make([]bool, len(r.ranks)) // a message of a higher rank came before
	highest := ahead
	for i, at := range r.ranks {
		late[i] = at < highest
		highest = max(highest, at)
	}
	messages := slices.Clone(r.out[r.open:])
	r.out = r.out[:r.open]
	last := r.came(message{}, r.out) // the last original of these
	for at := ahead; at <= rest; at++ {
		for i := range messages {
			if r.ranks[i] != at {
				continue
			}
			m := &messages[i]
			if late[i] {
				before := last
				if before != nil && before.first == m.first {
					before = r.came(*m, r.out)
				}
				r.placedBehind(*m, before)
			}
			if r.out = append(r.out, *m); m.first.Turn > 0 {
				last = m
			}
		}
	}
}

func byRank(x, y dialect.Part) int { return rankOf(x) - rankOf(y) }

func rankOf(p dialect.Part) int {
	if p.Kind == dialect.PartResult {
		return 0
	}
	return 1
}
