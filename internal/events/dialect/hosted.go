package dialect

import (
	"bytes"
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

// A provider carries out calls of its own tools itself: the call and its result are blocks of the
// assistant's message. The provider refuses one without the other, and a result that was changed:
// Anthropic signs it. A run of such blocks with all results of its calls is cleared as a whole.
// Sources, read in November 2026: platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools,
// ai.google.dev/api/caching#Part, and of ai 6.0 src/prompt/content-part.ts.

// HostedKind is the kind of a part of a tool that the provider carries out.
type HostedKind uint8

// The kinds; 0 is none.
const (
	HostedCall   HostedKind = iota + 1
	HostedResult            // of a call, in its message or in the assistant's next one
	HostedCites             // a text that refers to results by their index
)

// Hosted is a part of a tool that the provider carries out.
type Hosted struct {
	Kind HostedKind
	ID   Key // of the call
	Tool Key // of a call
}

// hosted marks a part as such a call or result, if it has an id.
func (w *Reader) hosted(p *Part, kind HostedKind, id, name codec.Raw) {
	if text := codec.TextBytes(id); len(text) > 0 {
		p.Hosted = Hosted{kind, CallKeyOf(text), KeyOf(codec.TextBytes(name))}
	}
}

// maxHosted bounds the parts of a run, and with it the search for the end of one.
const maxHosted = 64

// HostedEnd returns the end of the run of hosted parts that begins with the call at i: after the result that
// closes the last open call of the run. It is 0 if the message has no such result, or another part comes
// before it.
func HostedEnd(parts []Part, i int) int {
	var open []Key
	for k := i; k < min(len(parts), i+maxHosted); k++ {
		switch h := &parts[k].Hosted; h.Kind {
		case HostedCall:
			open = append(open, h.ID)
		case HostedResult:
			at := slices.Index(open, h.ID)
			if at < 0 {
				return 0
			}
			if open = slices.Delete(open, at, at+1); len(open) == 0 {
				return k + 1
			}
		default:
			return 0
		}
	}
	return 0
}

// HostedText is the text of a run of hosted parts, by which its original is looked up: a JSON array.
func HostedText(parts []Part) string {
	blocks := make([]string, len(parts))
	for i := range parts {
		blocks[i] = string(parts[i].Raw)
	}
	return "[" + strings.Join(blocks, ",") + "]"
}

// encryptedIndex is the member of a citation that refers to a result.
const encryptedIndex = "encrypted_index"

// WithoutCitations returns the block of a text without the citations that refer to results.
func WithoutCitations(raw codec.Raw) codec.Raw {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		return raw
	}
	list, err := codec.ReadArray(codec.Lookup(ms, "citations"))
	if err != nil {
		return raw
	}
	list = slices.DeleteFunc(list, func(c codec.Raw) bool { return bytes.Contains(c, []byte(encryptedIndex)) })
	if len(list) == 0 {
		return codec.WriteObject(without(ms, "citations"))
	}
	return codec.WriteObject(codec.SetMember(ms, "citations", codec.WriteArray(list)))
}
