package traits

import (
	"crypto/sha256"
	"encoding/binary"
)

// IDs is what a provider takes as the id of a call. The zero value takes any.
//
// Sources, read in 2026-11:
//   - Plain: platform.claude.com/docs/en/agents-and-tools/tool-use and the text of its 400,
//     "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"; ids of 128 characters are
//     taken (github.com/experientiallabs/experiential/pull/801, 2026-09).
//   - Plain, Max 64: docs.aws.amazon.com/bedrock/latest/APIReference, ToolUseBlock.
//   - Nine: github.com/mistralai/mistral-common, validator.py, "Tool call id was … but must be
//     a-z, A-Z, 0-9, with a length of 9."
//   - Max 64: Responses, "Invalid 'input[2].call_id': string too long. Expected a string with
//     maximum length 64".
//   - Max 40: chat completions of OpenAI, "Invalid 'messages[2].tool_calls[0].id': string too
//     long. Expected a string with maximum length 40"; newer models take 64
//     (github.com/openclaw/openclaw/pull/875, decolua/9router/pull/3167).
type IDs struct {
	Plain bool // letters, digits, _ and - alone
	Nine  bool // nine letters and digits
	Max   int  // most bytes, 0 for any number: one of the bounds of [IDClass]
}

// IDClass is what matters of an id for all [IDs]: bit 0 is set for signs that are not plain, the
// two above hold its length.
type IDClass uint8

// Lengths of ids, in the bits of a class behind the first.
const (
	idNine  IDClass = iota // nine letters and digits
	idShort                // up to 40 bytes
	idLong                 // up to 64
	idHuge
)

const (
	shortID = 40
	longID  = 64
	nineID  = 9

	// IDClasses is how many there are.
	IDClasses = 8
)

// ClassOf returns the class of an id.
func ClassOf[S string | []byte](id S) IDClass {
	signs, letters := IDClass(0), true
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '-':
			letters = false
		default:
			signs, letters = 1, false
		}
	}
	switch {
	case letters && len(id) == nineID:
		return idNine << 1
	case len(id) <= shortID:
		return idShort<<1 | signs
	case len(id) <= longID:
		return idLong<<1 | signs
	default:
		return idHuge<<1 | signs
	}
}

// Takes reports whether ids of a class are taken.
func (d IDs) Takes(c IDClass) bool {
	length := c >> 1
	switch {
	case d.Plain && c&1 != 0, d.Nine && length != idNine:
		return false
	case d.Max == 0 || length <= idShort:
		return true
	case d.Max == shortID:
		return false
	default:
		return length <= idLong
	}
}

// Map returns an id that is taken, in the place of one that is not, or of one that was used
// before: then salt is another one for each use. It is the same for the same id and salt, and
// no two are equal but by a collision of SHA-256: of 53 bits for Nine, of 128 bits else.
func (d IDs) Map(id, salt string) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const mappedID = 22
	sum := sha256.Sum256([]byte(id + "\x00" + salt))
	n := mappedID
	if d.Nine {
		n = nineID
	}
	out := make([]byte, 0, n)
	for at := 0; len(out) < n; at += 8 {
		for v, k := binary.BigEndian.Uint64(sum[at:]), 0; k < nineID && len(out) < n; v, k = v/uint64(len(letters)), k+1 {
			out = append(out, letters[v%uint64(len(letters))])
		}
	}
	return string(out)
}
