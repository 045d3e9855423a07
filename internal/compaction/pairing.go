package compaction

import "compactd/internal/events"

// pairing says which entries of a history belong together.
type pairing struct {
	// exchange is for each entry where its exchange begins: at an assistant message
	// that follows another role. In openai each assistant message begins one, since
	// results must follow their own; in neurolink so do words of the assistant, since
	// none may stand between a call and its result. An entry that is not rendered
	// belongs to the exchange around it.
	exchange []int
	// other is for each entry the position of its counterpart: the call of a
	// result, the last result of a call; −1 where there is none. A result pairs with
	// a call of the same exchange, by id, or where either has none by the tool, or by
	// order. In neurolink one without id that finds no call belongs to the call or result it
	// stands behind: nothing tells that it does not.
	other []int
	lone  []int // the calls and results that have none
}

// pair finds what belongs together. It costs the same for an entry however many
// calls an exchange has.
func pair(entries []Entry, f events.Format) *pairing {
	p := &pairing{exchange: exchanges(entries, f), other: make([]int, len(entries))}
	calls := openCalls{entries: entries, other: p.other}
	before := -1 // the entry rendered before
	for i := range entries {
		e := &entries[i]
		p.other[i] = -1
		calls.enter(p.exchange[i])
		if e.Flags.has(FlagEmpty) {
			continue
		}
		if e.Kind == KindResult {
			p.join(i, calls.of(i))
			if f == events.NeuroLink && e.Call == 0 && p.other[i] < 0 {
				p.follow(entries, i, before)
			}
		}
		before = i
	}
	for i, other := range p.other {
		if k := entries[i].Kind; other < 0 && (k == KindCall || k == KindResult) {
			p.lone = append(p.lone, i)
		}
	}
	return p
}

// join pairs a result with a call, unless there is none.
func (p *pairing) join(result, call int) {
	if call >= 0 {
		p.other[result], p.other[call] = call, result
	}
}

// follow makes a result belong to what stands before it, if that is of a tool: to
// the call, or with another result to the call of that, or to it alone.
func (p *pairing) follow(entries []Entry, result, before int) {
	if before < 0 || entries[before].Kind != KindCall && entries[before].Kind != KindResult {
		return
	}
	p.other[result] = before
	if call := p.other[before]; call >= 0 && entries[call].Kind == KindCall {
		p.join(result, call)
	}
}

func exchanges(entries []Entry, f events.Format) []int {
	out := make([]int, len(entries))
	start, last := 0, -1
	for i := range entries {
		if !entries[i].Flags.has(FlagEmpty) {
			if last >= 0 && begins(entries, f, last, i) {
				start = i
			}
			last = i
		}
		out[i] = start
	}
	return out
}

// begins reports whether entry i, rendered after entry last, begins an exchange.
func begins(entries []Entry, f events.Format, last, i int) bool {
	before, e := &entries[last], &entries[i]
	switch {
	case e.Role != RoleAssistant:
		return false
	case before.Role != RoleAssistant:
		return true
	case f == events.OpenAI:
		return !before.sameMessage(e)
	case f == events.NeuroLink:
		next := i + 1
		return e.Kind == KindWords && (next == len(entries) || !e.sameMessage(&entries[next]))
	default:
		return false
	}
}
