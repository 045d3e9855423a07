package validate

import (
	"bytes"

	"compactd/internal/events/codec"
)

// A message is read once, in one pass, into what the rules need of it: its shape. Nothing of
// its texts is kept.

// readMessage calls member for each member of a message. It reports whether the message is no
// object of valid JSON, or has a member of another type than member requested. Half surrogates
// are not valid: providers refuse a request that holds one.
func readMessage(raw codec.Raw, member func(r *codec.Strict, key []byte)) (bad bool) {
	err := codec.ReadStrict(raw, func(r *codec.Strict) { bad = readObject(r, member) })
	return bad || err != nil
}

// readObject is readMessage for the next value: a block, or what is in one.
func readObject(r *codec.Strict, member func(r *codec.Strict, key []byte)) (bad bool) {
	outer := r.Wrong
	r.Wrong = false
	is := r.Object(func(key []byte) { member(r, key) })
	bad, r.Wrong = !is || r.Wrong, outer
	return bad
}

// words is what a rule needs of a text.
type words int8

const (
	noText words = iota
	blankText
	someText
)

// readWords reads a text.
func readWords(r *codec.Strict) words {
	switch quoted := r.Quoted(); {
	case quoted == nil:
		return noText
	case blank(quoted):
		return blankText
	default:
		return someText
	}
}

// blank reports whether a string is white space.
func blank(quoted codec.Raw) bool {
	for piece := range codec.Pieces(quoted) {
		if len(bytes.TrimSpace(piece)) > 0 {
			return false
		}
	}
	return true
}

// content is a value that is a string or an array.
type content struct {
	kind  codec.Kind
	empty bool // an array without elements
}

// absent reports whether there is none, or null.
func (c content) absent() bool { return c.kind == 0 || c.kind == 'n' }

// readContent reads a value, and calls element for those of an array, to read each.
func readContent(r *codec.Strict, element func()) content {
	c := content{kind: r.Kind()}
	if c.kind != '[' {
		r.Skip()
		return c
	}
	c.empty = true
	r.Array(func() {
		c.empty = false
		element()
	})
	return c
}

// readRoled reads a message of a role and an array of blocks, the member name.
func readRoled[B any](raw codec.Raw, name string, block func(*codec.Strict) B) (role string, blocks []B, bad bool) {
	bad = readMessage(raw, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "role":
			role = r.String()
		case name:
			blocks = nil
			r.Array(func() { blocks = append(blocks, block(r)) })
		default:
			r.Skip()
		}
	})
	return role, blocks, bad
}
