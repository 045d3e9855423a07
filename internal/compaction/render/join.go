package render

import (
	"bytes"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// join makes neighbours of the open exchange, and the message before it, one message where the
// dialect demands it. The content of what they become is written once no other can join it.
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

// append makes a message a part of the one at n.
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

// writeUnion writes the message that others have become a part of, if there is one.
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

// union is a message of one role that is made of several.
type union struct {
	at      int // in out
	message events.Message
	parts   []events.Part
	members []codec.Member // of the first, and those that others have beside
	words   []worded       // members of these that have the words of several
	refs    []events.Raw   // what the agent had in ref
}

// worded is a member that has something beside the content: text, or a list of blocks.
type worded struct {
	name   string
	values []events.Raw // all of one kind
}

// wordedMembers are the names of such members of an assistant's message.
var wordedMembers = []string{"reasoning_content", "reasoning", "refusal", "reasoning_details"}

// readMembers reads a message, and its members.
func (r *renderer) readMembers(raw events.Raw) (events.Message, []codec.Member, error) {
	m, err := r.readRaw(raw)
	if err != nil {
		return m, nil, err
	}
	members, err := codec.ReadObject(raw)
	return m, members, err
}

// begin starts with the message at n.
func (u *union) begin(r *renderer, n int) error {
	from := &r.out[n]
	m, members, err := r.readMembers(from.raw)
	if err != nil {
		return err
	}
	*u = union{at: n, message: m, parts: append([]events.Part{}, m.Parts...), members: slices.Clone(members)}
	from.calls, from.results, from.paused, from.resumed, from.untouched = false, false, 0, 0, false
	from.holdsParts(m.Parts)
	return u.refer(from.raw)
}

// add takes a message behind those it has. Of a member that it has already the first stays, with
// the words of the others behind it where it is worded.
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

// add1 puts a value behind those of a worded member.
func (u *union) add1(name string, first, value events.Raw) {
	i := slices.IndexFunc(u.words, func(w worded) bool { return w.name == name })
	if i < 0 {
		i, u.words = len(u.words), append(u.words, worded{name, []events.Raw{first}})
	}
	u.words[i].values = append(u.words[i].values, value)
}

// ref is the member that belongs to the agent: what is in it comes back.
const ref = "ref"

// refer takes what a message has in ref. A list there is one that was made of several.
func (u *union) refer(from events.Raw) error {
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

// flatten puts a value, or the elements of a list, behind the first n of refs.
func (u *union) flatten(v events.Raw, n int) error {
	list := []events.Raw{v}
	if v.Kind() == '[' {
		var err error
		if list, err = codec.ReadArray(v); err != nil {
			return err
		}
	}
	if u.refs = append(u.refs[:n], list...); len(u.refs) > 0 {
		u.members = codec.SetMember(u.members, ref, u.refs[0]) // its place, until all are written
	}
	return nil
}

// write writes the message; results come first.
func (u *union) write(r *renderer) (events.Raw, error) {
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

// write is all of them as one value.
func (w *worded) write() events.Raw {
	if w.values[0].Kind() == '[' {
		var all []events.Raw
		for _, v := range w.values {
			list, _ := codec.ReadArray(v) // it was read before, as a part of its message
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
