package render

import (
	"bytes"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// rank is where a message belongs in its exchange.
type rank uint8

const (
	ahead   rank = iota // the system's, while calls await their results
	speech              // of the assistant, with its calls
	results             // of the calls
	answers             // placeholders for results that there are none of
	rest                // all else, up to the next assistant
)

// add puts a message into the open exchange, or begins the next one: with the
// placeholders for the results that its calls are missing, and the placeholder calls of
// its results.
func (r *renderer) add(m message, missing, calls []message) error {
	if m.role == measure.RoleSystem {
		r.put(rest, m)
		return nil
	}
	if m.role == measure.RoleAssistant {
		if r.dialect.Exchange != dialect.ByRun || slices.Contains(r.ranks, results) || slices.Contains(r.ranks, rest) {
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
		if !r.calls() {
			if err := r.flush(); err != nil {
				return err
			}
		}
		if r.dialect.Exchange != dialect.ByRun { // before an exchange whose calls may be open
			if r.open < len(r.out) {
				r.placed(m, r.open)
			}
			r.out = slices.Insert(r.out, r.open, call, m)
			r.open += 2
			return nil
		}
		r.put(speech, call)
	}
	switch {
	case m.role == measure.RoleAssistant:
	case slices.Contains(r.ranks, speech) && (m.role == measure.RoleTool || m.results):
		r.put(results, m)
	default:
		r.put(rest, m)
	}
	return nil
}

// put adds a message to the open exchange.
func (r *renderer) put(at rank, m message) {
	r.out, r.ranks = append(r.out, m), append(r.ranks, at)
}

// calls reports whether the open exchange has a call.
func (r *renderer) calls() bool {
	for i, at := range r.ranks {
		if at == speech && r.out[r.open+i].calls {
			return true
		}
	}
	return false
}

// flush ends the open exchange: its messages come into their places, and where
// roles alternate equal neighbours become one message.
func (r *renderer) flush() error {
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
	r.open, r.ranks = len(r.out), r.ranks[:0]
	return nil
}

func (r *renderer) sort() {
	came := slices.Clone(r.out[r.open:])
	r.out = r.out[:r.open]
	for at := ahead; at <= rest; at++ {
		for i, m := range came {
			if r.ranks[i] != at {
				continue
			}
			if slices.ContainsFunc(r.ranks[:i], func(x rank) bool { return x > at }) {
				r.placed(m, len(r.out))
			}
			r.out = append(r.out, m)
		}
	}
}

func (r *renderer) join() (err error) {
	n := r.done
	for i := r.done; i < len(r.out); i++ {
		switch {
		case n > 0 && r.joins(&r.out[n-1], &r.out[i]):
			r.joined(&r.out[n-1], &r.out[i])
			if r.out[n-1], err = r.merge(r.out[n-1], r.out[i]); err != nil {
				return err
			}
			continue
		case n < i:
			r.out[n] = r.out[i]
		}
		n++
	}
	r.out, r.done = r.out[:n], n
	return nil
}

// merge joins two messages of one role; results come first.
func (r *renderer) merge(a, b message) (message, error) {
	m, err := r.readRaw(a.raw)
	if err != nil {
		return a, err
	}
	behind, err := r.readRaw(b.raw)
	if err != nil {
		return a, err
	}
	m.Parts, m.Edited = slices.Concat(m.Parts, behind.Parts), true
	if m.Raw, err = withMembers(m.Raw, b.raw); err != nil {
		return a, err
	}
	slices.SortStableFunc(m.Parts, byRank)
	out, err := r.made(a.role, m)
	if err == nil {
		out.raw, err = withRefs(out.raw, a.raw, b.raw)
	}
	out.first, out.last = a.first, a.last
	switch {
	case out.first.Turn == 0:
		out.first, out.last = b.first, b.last
	case b.first.Turn > 0:
		out.first = earlier(out.first, b.first)
		if out.last.Compare(b.last) < 0 {
			out.last = b.last
		}
	}
	return out, err
}

// worded are members of an assistant's message that have something beside its content: text, or a
// list of blocks.
var worded = []string{"reasoning_content", "reasoning", "refusal", "reasoning_details"}

// withMembers gives a message the members of the one behind it. Of a member that both have the
// first stays, with the words of the second behind it where it is worded.
func withMembers(raw, behind events.Raw) (events.Raw, error) {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		return raw, err
	}
	more, err := codec.ReadObject(behind)
	if err != nil {
		return raw, err
	}
	for _, x := range more {
		v := codec.Lookup(ms, x.Name)
		switch {
		case x.Name == ref: // see withRefs
		case v.Kind() == 0 || v.Kind() == 'n' || string(v) == `""`:
			ms = codec.SetMember(ms, x.Name, x.Value)
		case !slices.Contains(worded, x.Name):
		case v.Kind() == '[' && x.Value.Kind() == '[':
			one, err := codec.ReadArray(v)
			if err != nil {
				return raw, err
			}
			two, err := codec.ReadArray(x.Value)
			if err != nil {
				return raw, err
			}
			ms = codec.SetMember(ms, x.Name, codec.WriteArray(append(one, two...)))
		case v.Kind() == '"' && x.Value.Kind() == '"' && string(x.Value) != `""`:
			ms = codec.SetMember(ms, x.Name, codec.Quote(string(codec.TextBytes(v))+"\n\n"+string(codec.TextBytes(x.Value))))
		}
	}
	return codec.WriteObject(ms), nil
}

// ref is the member that belongs to the agent: what is in it comes back.
const ref = "ref"

// withRefs gives a message that was made of two what their agent had in ref: both in a list,
// where both have it.
func withRefs(raw, a, b events.Raw) (events.Raw, error) {
	var refs []events.Raw
	for _, from := range []events.Raw{a, b} {
		if !bytes.Contains(from, []byte(`"ref"`)) {
			continue
		}
		ms, err := codec.ReadObject(from)
		if err != nil {
			return raw, err
		}
		switch v := codec.Lookup(ms, ref); v.Kind() {
		case 0:
		case '[': // of one that was made of two
			list, err := codec.ReadArray(v)
			if err != nil {
				return raw, err
			}
			refs = append(refs, list...)
		default:
			refs = append(refs, v)
		}
	}
	switch len(refs) {
	case 0:
		return raw, nil
	case 1:
		return codec.WithMember(raw, ref, refs[0])
	}
	return codec.WithMember(raw, ref, codec.WriteArray(refs))
}

func earlier(a, b events.Position) events.Position {
	if b.Compare(a) < 0 {
		return b
	}
	return a
}

func byRank(x, y events.Part) int { return rankOf(x) - rankOf(y) }

func rankOf(p events.Part) int {
	if p.Kind == events.PartResult {
		return 0
	}
	return 1
}
