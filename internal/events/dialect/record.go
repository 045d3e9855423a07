package dialect

import (
	"bytes"
	"encoding/base64"
	"slices"

	"compactd/internal/events/codec"
	"compactd/internal/events/media"
)

// A message that is recorded may have references in the place of large media. One that goes out
// to a provider never has: see [media.Ref].

// LargeMedia is the size from which media are recorded by a reference, in bytes: pictures that a
// tool takes of a screen are smaller for the most part, and a turn has room for eleven.
const LargeMedia = 256 << 10

// LeastMessage, as the most that a message may have, replaces all its media.
const LeastMessage = 1

// leastMedia is the size below which a reference saves nothing that matters.
const leastMedia = 4 << 10

// value is a value of a message: raw[from:to].
type value struct{ from, to int }

// values lists those of a message that may be inline media, in their order.
func (d *Dialect) values(raw codec.Raw) (out []value) {
	w := Reader{Walker: codec.Walk(raw)}
	w.OnMedia = func(from, to int) { out = append(out, value{from, to}) }
	_, _ = d.Read(&w) // a message that it cannot read has none behind that place
	return out
}

// Record returns a message with references in the place of large media, and of smaller ones, the
// largest first, while it has more than most bytes. Its identity and its price stay.
func (d *Dialect) Record(raw codec.Raw, most int) codec.Raw {
	if len(raw) <= min(most, LargeMedia) {
		return raw
	}
	all := d.values(raw)
	slices.SortStableFunc(all, func(a, b value) int { return (b.to - b.from) - (a.to - a.from) })
	size := len(raw)
	var changes []change
	for _, v := range all {
		if n := v.to - v.from; n < leastMedia || n/4*3 <= LargeMedia && size <= most {
			continue
		}
		text, ok := media.Refer(raw[v.from:v.to])
		if !ok {
			continue
		}
		if ref, _ := media.RefOf(text); ref.Bytes <= LargeMedia && size <= most {
			continue
		}
		changes = append(changes, change{v, text})
		size += len(text) - (v.to - v.from)
	}
	return replaced(raw, changes)
}

// change is another text in the place of a value.
type change struct {
	value
	text codec.Raw
}

func replaced(raw codec.Raw, changes []change) codec.Raw {
	if len(changes) == 0 {
		return raw
	}
	slices.SortFunc(changes, func(a, b change) int { return a.from - b.from })
	var out codec.Raw
	at := 0
	for _, c := range changes {
		if c.from < at { // within the one before, whose block was replaced
			continue
		}
		out = append(append(out, raw[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, raw[at:]...)
}

// refs lists the references of a message.
func (d *Dialect) refs(raw codec.Raw) (out []value, refs []media.Ref) {
	if !bytes.Contains(raw, []byte("sha256:")) {
		return nil, nil
	}
	for _, v := range d.values(raw) {
		if r, ok := media.RefOf(raw[v.from:v.to]); ok {
			out, refs = append(out, v), append(refs, r)
		}
	}
	return out, refs
}

// Sendable returns a message for a provider: a text stands in the place of each block that is a
// reference, and where the dialect has no place for a text, a picture of one pixel.
func (d *Dialect) Sendable(raw codec.Raw) codec.Raw {
	found, refs := d.refs(raw)
	if len(found) == 0 {
		return raw
	}
	blocks := blocksOf(raw, found)
	var changes []change
	for i, v := range found {
		text := refs[i].Text()
		switch b := blocks[i]; {
		case b.to == 0 && bytes.HasPrefix(raw[v.from:], []byte(`"data:`)):
			changes = append(changes, change{v, codec.Quote(blank)})
		case b.to == 0:
			changes = append(changes, change{v, codec.Quote(blank[len(blankHead):])})
		case d == &gemini && b.nested: // parts of a functionResponse are files alone
			changes = append(changes, change{b.value, textFile(text)})
		default:
			changes = append(changes, change{b.value, d.textBlock(raw, text)})
		}
	}
	return replaced(raw, changes)
}

// block is an object that is an element of an array: in every dialect that of a medium.
type block struct {
	value
	nested bool // it is in another one
}

// blocksOf returns for each value the innermost block that it is in. One without is zero.
func blocksOf(raw codec.Raw, values []value) []block {
	out := make([]block, len(values))
	w, within := codec.Walk(raw), 0 // blocks around w
	var read func()
	read = func() {
		switch w.Kind() {
		case '{':
			w.Object(func([]byte) { read() })
		case '[':
			w.Array(func() {
				if w.Kind() != '{' {
					read()
					return
				}
				from := w.Offset()
				within++
				read()
				within--
				i, _ := slices.BinarySearchFunc(values, from, func(v value, at int) int { return v.from - at })
				for ; i < len(values) && values[i].from < w.Offset(); i++ {
					if out[i].to == 0 {
						out[i] = block{value{from, w.Offset()}, within > 0}
					}
				}
			})
		default:
			w.Value()
		}
	}
	read()
	return out
}

// textBlock is a text as a block of a message of the dialect.
func (d *Dialect) textBlock(raw codec.Raw, text string) codec.Raw {
	switch d {
	case &gemini, &bedrock:
		return codec.WriteObject([]codec.Member{{Name: "text", Value: codec.Quote(text)}})
	case &responses:
		role := RoleUser
		if codec.String(codec.Get(raw, "role")) == string(RoleAssistant) {
			role = RoleAssistant
		}
		return responsesText(role, text)
	default:
		return textBlock(text)
	}
}

// textFile is a text as a file of a functionResponse: the types that it may have are PNG, JPEG,
// WebP, PDF and text (ai.google.dev/gemini-api/docs/function-calling, November 2026).
func textFile(text string) codec.Raw {
	data := codec.WriteObject([]codec.Member{
		{Name: "mimeType", Value: codec.Raw(`"text/plain"`)}, {Name: "data", Value: codec.Quote(base64.StdEncoding.EncodeToString([]byte(text)))},
	})
	return codec.WriteObject([]codec.Member{{Name: "inlineData", Value: data}})
}
