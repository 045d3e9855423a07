package render

import (
	"bytes"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// join joins the neighbours of the open exchange, and the message before it, where the dialect demands it. A
// joined content is written when no other message can join it.
func (r *renderer) join() error {
	n := r.done
	for i := r.done; i < len(r.out); i++ {
		switch {
		case n > 0 && r.joins(&r.out[n-1], &r.out[i]):
			r.joined(&r.out[n-1], &r.out[i])
			if err := r.append(n-1, &r.out[i]); err != nil {
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

// append joins a message to the one at n.
func (r *renderer) append(n int, m *message) error {
	u := &r.union
	if u.at != n || u.parts == nil {
		if err := r.writeUnion(); err != nil {
			return err
		}
		if err := u.begin(r, n); err != nil {
			return err
		}
	}
	if err := u.add(r, m); err != nil {
		return err
	}
	to := &r.out[n]
	switch {
	case to.first.Turn == 0:
		to.first, to.last = m.first, m.last
	case m.first.Turn > 0:
		to.first = earlier(to.first, m.first)
		if to.last.Compare(m.last) < 0 {
			to.last = m.last
		}
	}
	return nil
}

// writeUnion writes the joined message, if there is one.
func (r *renderer) writeUnion() error {
	u := &r.union
	if u.parts == nil {
		return nil
	}
	raw, err := u.write(r)
	if err == nil {
		r.out[u.at].raw = raw
	}
	*u = union{}
	return err
}

// union is a message joined from several of one role.
type union struct {
	at      int // in out
	message dialect.Message
	parts   []dialect.Part
	members []codec.Member // of the first, and further ones of the others
	words   []worded       // members of these that join the words of several
	refs    []codec.Raw    // the agent's values in ref
}

// worded is a member with text or blocks beside the content.
type worded struct {
	name   string
	values []codec.Raw // all of one kind
}

// wordedMembers are the names of worded members of an assistant's message.
var wordedMembers = []string{"reasoning_content", "reasoning", "refusal", "reasoning_details"}

// readMembers reads a message, and its members.
func (r *renderer) readMembers(raw codec.Raw) (dialect.Message, []codec.Member, error) {
	m, err := r.readRaw(raw)
	if err != nil {
		return m, nil, err
	}
	members, err := codec.ReadObject(raw)
	return m, members, err
}

// begin begins the union with the message at n.
func (u *union) begin(r *renderer, n int) error {
	from := &r.out[n]
	m, members, err := r.readMembers(from.raw)
	if err != nil {
		return err
	}
	*u = union{at: n, message: m, parts: append([]dialect.Part{}, m.Parts...), members: slices.Clone(members)}
	from.calls, from.results, from.paused, from.resumed, from.untouched = false, false, 0, 0, false
	from.holdsParts(m.Parts)
	return u.refer(from.raw)
}

// add joins a message. A member that exists already keeps its first value. In a worded member, the words of
// later values follow it.
func (u *union) add(r *renderer, from *message) error {
	m, members, err := r.readMembers(from.raw)
	if err != nil {
		return err
	}
	u.parts = append(u.parts, m.Parts...)
	r.out[u.at].holdsParts(m.Parts)
	for _, x := range members {
		v := codec.Lookup(u.members, x.Name)
		switch {
		case x.Name == ref: // see refer
		case v.Kind() == 0 || v.Kind() == 'n' || string(v) == `""`:
			u.members = codec.SetMember(u.members, x.Name, x.Value)
		case slices.Contains(wordedMembers, x.Name) && v.Kind() == x.Value.Kind() && (v.Kind() == '[' || v.Kind() == '"' && string(x.Value) != `""`):
			u.add1(x.Name, v, x.Value)
		}
	}
	return u.refer(from.raw)
}

// add1 adds a value to a worded member.
func (u *union) add1(name string, first, value codec.Raw) {
	i := slices.IndexFunc(u.words, func(w worded) bool { return w.name == name })
	if i < 0 {
		i, u.words = len(u.words), append(u.words, worded{name, []codec.Raw{first}})
	}
	u.words[i].values = append(u.words[i].values, value)
}

// ref is the member that belongs to the agent: its value is returned.
const ref = "ref"

// refer adds a message's value of ref. A list there is from an earlier union.
func (u *union) refer(from codec.Raw) error {
	if len(u.refs) == 1 {
		if err := u.flatten(u.refs[0], 0); err != nil {
			return err
		}
	}
	if !bytes.Contains(from, []byte(`"ref"`)) {
		return nil
	}
	members, err := codec.ReadObject(from)
	if err != nil {
		return err
	}
	if v := codec.Lookup(members, ref); v.Kind() != 0 {
		return u.flatten(v, len(u.refs))
	}
	return nil
}

// flatten cuts refs to its first n, and appends a value, or the elements of a value that is a list.
func (u *union) flatten(v codec.Raw, n int) error {
	list := []codec.Raw{v}
	if v.Kind() == '[' {
		var err error
		if list, err = codec.ReadArray(v); err != nil {
			return err
		}
	}
	if u.refs = append(u.refs[:n], list...); len(u.refs) > 0 {
		u.members = codec.SetMember(u.members, ref, u.refs[0]) // keeps its place until all are written
	}
	return nil
}

// write writes the message, results first.
func (u *union) write(r *renderer) (codec.Raw, error) {
	for _, w := range u.words {
		u.members = codec.SetMember(u.members, w.name, w.write())
	}
	m := u.message
	m.Raw, m.Parts, m.Edited = codec.WriteObject(u.members), u.parts, true
	slices.SortStableFunc(m.Parts, byRank)
	raw, err := r.view.Format.Write(m)
	switch {
	case err != nil || len(u.refs) == 0:
		return raw, err
	case len(u.refs) == 1:
		return codec.WithMember(raw, ref, u.refs[0])
	default:
		return codec.WithMember(raw, ref, codec.WriteArray(u.refs))
	}
}

// write returns all values as one.
func (w *worded) write() codec.Raw {
	if w.values[0].Kind() == '[' {
		var all []codec.Raw
		for _, v := range w.values {
			list, _ := codec.ReadArray(v) // it was read before, as part of its message
			all = append(all, list...)
		}
		return codec.WriteArray(all)
	}
	texts := make([]string, len(w.values))
	for i, v := range w.values {
		texts[i] = string(codec.TextBytes(v))
	}
	return codec.Quote(strings.Join(texts, "\n\n"))
}

func earlier(a, b events.Position) events.Position {
	if b.Compare(a) < 0 {
		return b
	}
	return a
}
