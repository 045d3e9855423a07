package validate

import (
	"bytes"
	"slices"

	"compactd/internal/events/codec"
)

var (
	// contents are the members of a message that have blocks of media.
	contents = []string{"content", "parts", "output"}
	// mediaMembers hold media in a block.
	mediaMembers = []string{"data", "url", "image_url", "file_data", "bytes", "image"}
	// foreign are members with what a tool takes or gives: a hash in them is the tool's.
	foreign = []string{"input", "args", "arguments", "response", "json", "result", "text"}
)

// references reports media of which only the hash is there: that is a rule of every dialect with
// media.
func (c *checker) references(messages []codec.Raw) {
	for i, raw := range messages {
		if bytes.Contains(raw, []byte("sha256:")) && codec.Check(raw) == nil && raw.Kind() == '{' && refers(raw) {
			c.report(mediaByHash, i, "media are a reference, which no provider takes")
		}
	}
}

func refers(raw codec.Raw) (found bool) {
	generated := bytes.Contains(raw, []byte(`"image_generation_call"`))
	w := codec.Walk(raw)
	w.Object(func(key []byte) {
		name := string(key)
		switch {
		case slices.Contains(contents, name):
			found = blockRefers(&w, "") || found
		case generated && name == "result":
			found = isReference(w.Value()) || found
		default:
			w.Value()
		}
	})
	return found
}

// blockRefers reads the value of a member of a block, or blocks.
func blockRefers(w *codec.Walker, name string) (found bool) {
	kind := w.Kind()
	switch {
	case kind == '[':
		w.Array(func() { found = blockRefers(w, "") || found })
	case kind != '{' || name == "value": // JSON that a tool gave
		return isReference(w.Value()) && slices.Contains(mediaMembers, name)
	default:
		w.Object(func(key []byte) {
			if name := string(key); slices.Contains(foreign, name) {
				w.Value()
			} else {
				found = blockRefers(w, name) || found
			}
		})
	}
	return found
}

func isReference(v codec.Raw) bool {
	in, ok := codec.InlineOf(codec.TextBytes(v))
	digits, _ := in.Hash()
	return ok && digits != nil
}
