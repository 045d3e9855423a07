package render

import (
	"slices"
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// Thinking decides which thinking a history keeps. The zero value keeps all.
type Thinking struct {
	Bound bool    // thinking is bound to the messages before it: only Kept and Loops keep theirs
	Kept  []Turns // in order
	Loops []Loop  // tool loops that keep their thinking: see [LoopAt]
}

// Turns is a range of turns, both included.
type Turns struct{ From, To uint32 }

// Loop is a tool loop: the messages between From and To, without both.
type Loop struct{ From, To events.Position }

// drops reports whether an entry loses its thinking.
func (t *Thinking) drops(e *measure.Entry) bool {
	return t.Bound && e.Flags.Has(measure.FlagThinking) &&
		!t.keeps(e.Turn) &&
		!slices.ContainsFunc(t.Loops, func(l Loop) bool { return l.has(e.Position()) })
}

// keeps reports whether a turn was made with this history.
func (t *Thinking) keeps(turn uint32) bool {
	i := sort.Search(len(t.Kept), func(i int) bool { return turn <= t.Kept[i].To })
	return i < len(t.Kept) && t.Kept[i].From <= turn
}

func (l Loop) has(p events.Position) bool { return l.From.Compare(p) < 0 && p.Compare(l.To) < 0 }

// end is after every message.
var end = events.Position{Turn: events.MaxNumber + 1}

// LoopAt is the tool loop that is open after a turn: between the last message of the user and the next one.
// Providers require the thinking of an open loop.
func LoopAt(entries []measure.Entry, turn int64) Loop {
	l := Loop{To: end}
	for from := 0; from < len(entries); {
		to, prompt := from+1, entries[from].Role == measure.RoleUser && entries[from].Kind == measure.KindWords
		for ; to < len(entries) && entries[to].SameMessage(&entries[from]); to++ {
			prompt = prompt && entries[to].Kind == measure.KindWords
		}
		if at := measure.MessageOf(entries[from].Position()); prompt {
			if at.Turn > turn {
				l.To = at
				break
			}
			l.From = at
		}
		from = to
	}
	return l
}

// dropThinking removes the thinking from the parts after the first n.
func (r *renderer) dropThinking(n int) {
	kept := slices.DeleteFunc(r.parts[n:], func(p dialect.Part) bool { return p.Kind == dialect.PartThinking })
	r.parts = r.parts[:n+len(kept)]
}
