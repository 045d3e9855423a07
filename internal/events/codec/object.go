package codec

import (
	"iter"
	"math"
	"slices"
	"strings"
)

// Member is one key of an object with its value.
type Member struct {
	Name  string
	Value Raw
}

// ReadObject lists an object's keys in their order, duplicates included. Values
// are parts of raw, not copies.
func ReadObject(raw Raw) ([]Member, error) { return AppendMembers(make([]Member, 0, 4), raw) }

// AppendMembers is ReadObject into a slice of the caller, which needs no allocation if the list does not
// escape.
func AppendMembers(out []Member, raw Raw) ([]Member, error) {
	return AppendFirst(out, raw, math.MaxInt)
}

// AppendFirst is AppendMembers for an object of any length: out gets most members at most.
func AppendFirst(out []Member, raw Raw, most int) ([]Member, error) {
	w := Walker{raw: raw}
	w.Object(func(key []byte) {
		if len(out) == most {
			w.Value()
			return
		}
		out = append(out, Member{NameOf(key), w.Value()})
	})
	return out, w.End()
}

// FewMembers exceeds the members of most objects.
const FewMembers = 12

// Names finds members with an earlier name. The zero value is ready for one list.
type Names struct{ seen map[string]bool }

// Repeated reports whether the name of ms[i] occurs before it. The caller goes through
// the list in order.
func (n *Names) Repeated(ms []Member, i int) bool {
	if len(ms) <= FewMembers { // for a few a linear search is quicker
		return slices.ContainsFunc(ms[:i], func(m Member) bool { return m.Name == ms[i].Name })
	}
	if n.seen == nil {
		n.seen = make(map[string]bool, len(ms))
	}
	repeated := n.seen[ms[i].Name]
	n.seen[ms[i].Name] = true
	return repeated
}

// ReadArray lists an array's elements as parts of raw.
func ReadArray(raw Raw) ([]Raw, error) { return ReadFirst(raw, math.MaxInt) }

// ReadFirst is ReadArray for an array of any length: it lists most elements at most.
func ReadFirst(raw Raw, most int) ([]Raw, error) {
	out := []Raw{}
	w := Walker{raw: raw}
	w.Array(func() {
		if v := w.Value(); len(out) < most {
			out = append(out, v)
		}
	})
	return out, w.End()
}

// usual are the names of usual keys, by their length.
var usual = func() (t [32][]string) {
	for name := range strings.FieldsSeq("role content type text id name path file_path messages model turn usage generation provider " +
		"input_tokens output_tokens max_output_tokens cache_creation_input_tokens cache_read_input_tokens " +
		"v format replaces_from system tools policy expect forked_from") {
		t[len(name)] = append(t[len(name)], name)
	}
	return t
}()

// NameOf is the name of a key, of the usual ones without a copy.
func NameOf(key []byte) string {
	if len(key) < len(usual) {
		for _, name := range usual[len(key)] {
			if name == string(key) {
				return name
			}
		}
	}
	return string(key)
}

// SetMember sets the value of a name, in its place if it exists.
func SetMember(ms []Member, name string, value Raw) []Member {
	found := false
	for i := range ms {
		if ms[i].Name == name {
			ms[i].Value, found = value, true
		}
	}
	if !found {
		ms = append(ms, Member{name, value})
	}
	return ms
}

// Lookup returns the value of name, nil when it is absent. The last duplicate
// wins, as with most readers of JSON.
func Lookup(ms []Member, name string) Raw {
	for _, m := range slices.Backward(ms) {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Get returns the value of a member of an object, as [Lookup] does; nil for anything but an object.
func Get(raw Raw, name string) Raw {
	var room [FewMembers]Member
	ms, err := AppendMembers(room[:0], raw)
	if err != nil {
		return nil
	}
	return Lookup(ms, name)
}

// Elements lists the elements of an array; anything else has none.
func Elements(raw Raw) []Raw {
	out, err := ReadArray(raw)
	if err != nil {
		return nil
	}
	return out
}

// String is the text of a string, "" for anything else.
func String(raw Raw) string {
	s, _ := Text(raw)
	return s
}

// IsSet reports whether a member is there and not null.
func IsSet(v Raw) bool { return v != nil && v.Kind() != 'n' }

// Size is how many bytes values have together.
func Size[T ~[]byte](values []T) (n int) {
	for _, v := range values {
		n += len(v)
	}
	return n
}

// WithMember returns the object raw with the value of name set, in its place if it exists. The values of all
// other members keep their bytes.
func WithMember(raw Raw, name string, value Raw) (Raw, error) {
	return AppendWith(nil, raw, name, func(out Raw) (Raw, error) { return append(out, value...), nil })
}

// AppendWith appends the object raw to out, changed as by [WithMember]. value appends the value; it returns
// its buffer even with an error.
func AppendWith(out, raw Raw, name string, value func(out Raw) (Raw, error)) (Raw, error) {
	var err error
	found := false
	out = append(out, '{')
	w := Walker{raw: raw}
	w.Object(func(key []byte) {
		v := w.Value()
		if out = appendKey(out, key); string(key) != name {
			out = append(out, v...)
		} else if found = true; err == nil {
			out, err = value(out)
		}
	})
	if !found {
		out, err = value(appendKey(out, name))
	}
	if end := w.End(); end != nil {
		err = end
	}
	return append(out, '}'), err
}

// WriteObject writes members in their order.
func WriteObject(ms []Member) Raw {
	size := 2
	for _, m := range ms {
		size += len(m.Name) + len(m.Value) + len(`"":,`)
	}
	return AppendObject(make(Raw, 0, size), ms)
}

// AppendObject is WriteObject behind what out holds.
func AppendObject(out Raw, ms []Member) Raw {
	out = append(out, '{')
	for _, m := range ms {
		out = append(appendKey(out, m.Name), m.Value...)
	}
	return append(out, '}')
}

// appendKey begins the next member of the object that out ends with. No value ends
// like the beginning of an object.
func appendKey[S string | []byte](out Raw, name S) Raw {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(appendName(out, name), ':')
}

// appendName is AppendQuote for a key; most keys have nothing to escape.
func appendName[S string | []byte](out Raw, name S) Raw {
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < 'a' || c > 'z') {
			return AppendQuote(out, name)
		}
	}
	return append(append(append(out, '"'), name...), '"')
}

// WriteArray writes elements in their order.
func WriteArray(elems []Raw) Raw {
	size := 2
	for _, e := range elems {
		size += len(e) + 1
	}
	out := append(make(Raw, 0, size), '[')
	for i, e := range elems {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// Members lists the keys of a JSON object in their order, duplicates included.
// Anything but an object has none.
func Members(raw Raw) iter.Seq2[string, Raw] {
	return func(yield func(string, Raw) bool) {
		var room [FewMembers]Member
		ms, err := AppendMembers(room[:0], raw)
		if err != nil {
			return
		}
		for _, m := range ms {
			if !yield(m.Name, m.Value) {
				return
			}
		}
	}
}

// MapStrings returns a valid value in which change has replaced each string that is not the name of a member.
// Everything else keeps its bytes.
func MapStrings(raw Raw, change func(quoted Raw) Raw) Raw {
	out := make(Raw, 0, len(raw))
	for w := (Walker{raw: raw}); w.at < len(raw); {
		start := w.at
		if raw[start] != '"' {
			w.at++
			out = append(out, raw[start])
			continue
		}
		w.skipString()
		value, end := w.from(start), w.at
		if w.Kind() != ':' {
			value = change(value)
		}
		w.at, out = end, append(out, value...)
	}
	return out
}
