package align

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// History is the history of an agent.
type History struct {
	Format   events.Format
	Lead     int         // messages of the system that it begins with, without those before Before
	Before   int         // messages at its beginning that were not sent
	Messages []codec.Raw // from Before on
}

// Read returns the history of a dialect, without before messages that were not sent.
func Read(f events.Format, messages []codec.Raw, before int) *History {
	h := &History{Format: f, Before: before, Messages: messages}
	for before == 0 && h.Lead < len(messages) {
		m, err := f.Read(messages[h.Lead])
		if err != nil || m.Role != dialect.RoleSystem {
			break
		}
		h.Lead++
	}
	return h
}

// Len is the number of messages in the whole history.
func (h *History) Len() int { return h.Before + len(h.Messages) }

// At is the message at an index that was sent.
func (h *History) At(i int) codec.Raw { return h.Messages[i-h.Before] }

// From lists the messages from an index on.
func (h *History) From(i int) []codec.Raw { return h.Messages[i-h.Before:] }

// digest is the digest of the messages from ≤ i < to.
func (h *History) digest(from, to int) events.Digest {
	return h.Format.DigestOf(h.Messages[from-h.Before : to-h.Before])
}

// Known is the part of a history that a session has.
type Known struct {
	Turns int // of the session that the history begins with
	At    int // index of the first message after them
	// Shift is the index of the session's first message in the history, after the lead. With a View it is
	// less by as many messages as the view is shorter than the turns it replaces, and may be below 0.
	Shift int
	// View is the number of messages, after the lead, that an earlier answer's view has in place of the first
	// turns; 0 if the history has the messages themselves.
	View int
}

// Index is the index in the history of a message of the session, counted from its first turn.
func (k Known) Index(message int) int { return k.Shift + message }

// Match compares a history with a chain, turn by turn.
func (h *History) Match(chain []events.Link) Known {
	k := h.follow(chain, Known{At: h.Lead, Shift: h.Lead})
	if k.Turns > 0 || h.Lead == 0 {
		return k
	}
	if inside := h.follow(chain, Known{}); inside.Turns > 0 { // it was published with the system's messages in it
		h.Lead = 0
		return inside
	}
	return k
}

// follow continues the comparison at k.
func (h *History) follow(chain []events.Link, k Known) Known {
	for ; k.Turns < len(chain); k.Turns++ {
		l := &chain[k.Turns]
		n := int(l.End) - events.Start(chain, k.Turns)
		if k.At+n > h.Len() || h.digest(k.At, k.At+n) != l.Digest {
			return k
		}
		k.At += n
	}
	return k
}

// MatchPrefix compares the messages after a prefix. The prefix must end with a turn, and is found by the
// digest of the session up to it; else ok is false.
func (h *History) MatchPrefix(chain []events.Link, prefix events.Digest) (k Known, ok bool) {
	for i, l := range slices.Backward(chain) {
		if shift := h.Before - int(l.End); l.Whole == prefix && shift >= 0 {
			return h.follow(chain, Known{Turns: i + 1, At: h.Before, Shift: shift}), true
		}
	}
	return k, false
}

// View identifies an earlier answer for the first turns of a session. It holds none of its messages.
type View struct {
	Count  int           // messages
	Digest events.Digest // of the messages as they were recorded
	Turns  int
	// sent is the digest with placeholders for media of which only the hash was kept; zero without any.
	sent events.Digest
}

// NewView returns the view of the first turns, without its leading instructions.
func NewView(f events.Format, messages []codec.Raw, turns int) View {
	messages = messages[Read(f, messages, 0).Lead:]
	v := View{Count: len(messages), Digest: f.DigestOf(messages), Turns: turns}
	if sent := withPlaceholders(f, messages); !slices.EqualFunc(sent, messages, func(a, b codec.Raw) bool { return bytes.Equal(a, b) }) {
		v.sent = f.DigestOf(sent)
	}
	return v
}

// withPlaceholders lists messages with placeholders for large media.
func withPlaceholders(f events.Format, messages []codec.Raw) []codec.Raw {
	out := make([]codec.Raw, len(messages))
	for i, m := range messages {
		out[i] = f.Sendable(f.Record(m, events.MaxTurnBytes))
	}
	return out
}

// is reports whether messages are a view: each medium that is large is there, or its placeholder.
func (v *View) is(f events.Format, messages []codec.Raw) bool {
	return f.DigestOf(messages) == v.Digest || v.sent != events.Digest{} && f.DigestOf(withPlaceholders(f, messages)) == v.sent
}

// MatchView compares a history with one that begins with a view.
func (h *History) MatchView(chain []events.Link, v View) (k Known, ok bool) {
	n := v.Count
	if n == 0 || h.Before > 0 || v.Turns == 0 || v.Turns > len(chain) || h.Lead+n > h.Len() || !v.is(h.Format, h.From(h.Lead)[:n]) {
		return k, false
	}
	at := h.Lead + n
	return h.follow(chain, Known{Turns: v.Turns, At: at, Shift: at - int(chain[v.Turns-1].End), View: n}), true
}

// Fits reports whether the messages from an index on can follow others that await the results of
// some calls, by the keys of their ids: each result has a call, and nothing else comes before the
// results that are awaited.
func (h *History) Fits(from int, awaited []dialect.Key) bool {
	var open openCalls
	for _, key := range awaited {
		open.add(key)
	}
	owed := len(awaited)
	for _, raw := range h.From(from) {
		m, err := h.Format.Read(raw)
		if err != nil {
			return true // it is refused for itself
		}
		results := 0
		for i := range m.Parts {
			p := &m.Parts[i]
			key := p.CallKey()
			switch p.Kind {
			case dialect.PartCall:
				open.add(key)
			case dialect.PartResult:
				if !open.answer(key) {
					return false
				}
				results++
			}
		}
		if results == 0 && owed > 0 {
			return false
		}
		owed -= results
	}
	return true
}

// openCalls are calls that await their results, by the keys of their ids: 0 for one without an id,
// which any result answers.
type openCalls struct {
	answered []bool
	first    int // all before it are answered
	byKey    map[dialect.Key][]int
}

func (o *openCalls) add(key dialect.Key) {
	if o.byKey == nil {
		o.byKey = map[dialect.Key][]int{}
	}
	o.byKey[key] = append(o.byKey[key], len(o.answered))
	o.answered = append(o.answered, false)
}

// answer takes away the oldest call that a result may be of, and reports whether there is one.
func (o *openCalls) answer(key dialect.Key) bool {
	at := min(o.oldest(key), o.oldest(0))
	if key == 0 {
		for o.first < len(o.answered) && o.answered[o.first] {
			o.first++
		}
		at = o.first
	}
	if at >= len(o.answered) {
		return false
	}
	o.answered[at] = true
	return true
}

// oldest is the position of the oldest open call of a key, after all if there is none.
func (o *openCalls) oldest(key dialect.Key) int {
	list := o.byKey[key]
	for len(list) > 0 && o.answered[list[0]] {
		list = list[1:]
	}
	if len(list) == 0 {
		delete(o.byKey, key)
		return len(o.answered)
	}
	o.byKey[key] = list
	return list[0]
}

// leastBytes is the least size of a message that identifies a history: shorter ones occur in any history.
const leastBytes = 64

// HasWork reports whether a history has one of those messages that are work of an assistant or a tool.
// An agent that compacts its history itself keeps the end of it, with the same ids of calls. Equal work of
// another agent has other ids.
func (h *History) HasWork(messages []codec.Raw) bool {
	have := map[likeness]bool{}
	for _, m := range h.Messages {
		have[h.likeness(m)] = true
	}
	for _, m := range messages {
		if len(m) < leastBytes {
			continue
		}
		if _, work := h.calls(m); work && have[h.likeness(m)] {
			return true
		}
	}
	return false
}

// calls lists the ids of the calls and results of a message, and whether it is the work of an
// assistant or a tool.
func (h *History) calls(raw codec.Raw) (ids []string, work bool) {
	m, err := h.Format.Read(raw)
	if err != nil {
		return nil, false
	}
	work = m.Role == dialect.RoleAssistant || m.Role == dialect.RoleTool
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == dialect.PartCall || p.Kind == dialect.PartResult {
			ids, work = append(ids, p.CallID), true
		}
	}
	return ids, work
}

// Common is the number of equal messages in a history, from an index on, and at the beginning of a list.
func (h *History) Common(at int, messages []codec.Raw) int {
	for i := range messages {
		if at+i >= h.Len() || h.digest(at+i, at+i+1) != h.Format.DigestOf(messages[i:i+1]) {
			return i
		}
	}
	return len(messages)
}

// Digests are the digests of the sent messages.
func (h *History) Digests() map[events.Digest]bool {
	have := map[events.Digest]bool{}
	for i := range h.Messages {
		have[h.Format.DigestOf(h.Messages[i:i+1])] = true
	}
	return have
}

// Member names the first member in which two messages differ, "" for none.
func Member(a, b codec.Raw) string {
	of := maps.Collect(codec.Members(a))
	for name, v := range codec.Members(b) {
		if old, ok := of[name]; !ok || !bytes.Equal(old, v) {
			return name
		}
		delete(of, name)
	}
	for name := range codec.Members(a) {
		if _, ok := of[name]; ok {
			return name
		}
	}
	return ""
}

// Until is the history without the messages from an index on.
func (h *History) Until(i int) *History {
	out := *h
	out.Messages = h.Messages[:i-h.Before]
	return &out
}

// TurnEnd is the index after the turn that begins at an index: a model's answer, and all messages up to its
// next answer.
func TurnEnd(messages []dialect.Message, from int) int {
	for from < len(messages) && messages[from].Role == dialect.RoleAssistant {
		from++
	}
	for from < len(messages) && messages[from].Role != dialect.RoleAssistant {
		from++
	}
	return from
}

// turnBytes is the largest size of a turn of several messages: the events of others wait behind it.
const turnBytes = 1 << 20

// Split cuts the messages from an index on into turns of at most most bytes, and of as many messages and
// contents as a turn may have. A turn ends where no call awaits its result, if there is such a place in it.
// Without messages there is one empty turn. Large media are recorded by their hash, see
// [events.Format.Record]; a single message that is still too large is an error.
func (h *History) Split(from, most int) ([][]codec.Raw, error) {
	all := slices.Clone(h.From(from))
	for i := range all {
		all[i] = h.Format.Record(all[i], most)
	}
	bound := load{min(most, turnBytes), events.MaxTurnMessages, events.MaxTurnParts}
	for i, m := range all {
		if len(m) > most {
			return nil, events.NewInvalid(events.CodeTooLarge, fmt.Sprintf("messages[%d]", from-h.Before+i), fmt.Sprintf("has %d bytes, more than the %d of a turn", len(m), most))
		}
	}
	read, err := h.Format.ReadAll(all)
	if err != nil {
		return nil, err
	}
	loads := make([]load, len(all))
	for i := range all {
		loads[i] = load{len(all[i]) + 1, 1, len(read[i].Parts)}
		if n := loads[i].parts; n > bound.parts {
			return nil, events.NewInvalid(events.CodeTooLarge, fmt.Sprintf("messages[%d]", from-h.Before+i), fmt.Sprintf("has %d contents, more than the %d of a turn", n, bound.parts))
		}
	}
	var out [][]codec.Raw
	var open waits
	begin, legal := 0, 0
	var sum load
	for i := range all {
		for i > begin && sum.plus(loads[i]).exceeds(bound) {
			end := legal // the rest may still be too large
			if end <= begin {
				end = i
			}
			out = append(out, all[begin:end])
			begin, sum = end, load{}
			for _, l := range loads[begin:i] {
				sum = sum.plus(l)
			}
		}
		sum = sum.plus(loads[i])
		if open.add(&read[i]); open.n == 0 {
			legal = i + 1
		}
	}
	return append(out, all[begin:]), nil
}

// load is the size of messages in a turn.
type load struct{ bytes, messages, parts int }

func (l load) plus(m load) load {
	return load{l.bytes + m.bytes, l.messages + m.messages, l.parts + m.parts}
}

func (l load) exceeds(most load) bool {
	return l.bytes > most.bytes || l.messages > most.messages || l.parts > most.parts
}

// waits counts the calls that await their results.
type waits struct {
	of map[string]int // by id
	n  int
}

func (w *waits) add(m *dialect.Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == dialect.PartCall:
			if w.of == nil {
				w.of = map[string]int{}
			}
			w.of[p.CallID]++
			w.n++
		case p.Kind == dialect.PartResult && w.of[p.CallID] > 0:
			w.of[p.CallID]--
			w.n--
		}
	}
}
