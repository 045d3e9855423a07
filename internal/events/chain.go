package events

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"compactd/internal/events/codec"
)

// With is the digest of a session with one more turn, whose messages have the digest turn. A session without
// turns has the zero digest. See docs/format/identity.md.
func (d Digest) With(turn Digest, messages int) Digest {
	var b [2*len(Digest{}) + 4]byte
	copy(b[:], d[:])
	copy(b[len(d):], turn[:])
	binary.BigEndian.PutUint32(b[2*len(d):], uint32(messages))
	return digestOf(b[:])
}

// String is the digest in hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

var errDigest = errors.New("is not 32 hexadecimal digits")

// ParseDigest reads what String writes.
func ParseDigest(s string) (d Digest, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) {
		return d, errDigest
	}
	return Digest(b), nil
}

// MarshalText is String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDigest.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}

// Link is a turn in the chain of a session: it identifies the session up to the turn.
type Link struct {
	Digest Digest // of the messages of the turn
	Whole  Digest // of the session up to the turn
	End    uint32 // messages of the session up to the turn
	Seq    uint64 // of the turn in the log
}

// Start is the number of messages before turn i of a chain, counted from 0.
func Start(chain []Link, i int) int {
	if i == 0 {
		return 0
	}
	return int(chain[i-1].End)
}

// DigestOf is the digest of a list of messages. They are JSON without half surrogates, as [DecodeTurn]
// returns them. Messages that the dialect cannot read also have a digest, which no turn has.
func (f Format) DigestOf(messages []codec.Raw) Digest {
	var d Decoder
	d.turn.Dialect = f
	d.messages(d.walk(codec.WriteArray(messages)))
	return d.turn.Digest
}

// expect reads the base of a turn.
func (e *envelope) expect() *Expect {
	if turn, digest, ok := numberAndDigest[Expect](e, "expect", nil, "turn", "digest"); ok {
		return &Expect{Turn: turn, Digest: digest}
	}
	return nil
}

// numberAndDigest reads a required field, an object of a number and a digest.
func numberAndDigest[T any](e *envelope, name string, in *T, number, digest string) (n int64, d Digest, ok bool) {
	ms, ok := object(e, name, in)
	if !ok {
		return 0, d, false
	}
	given := false
	for _, f := range ms {
		switch f.Name {
		case number:
			n = e.countOf(name+".", f.Name, f.Value, 0, MaxNumber)
		case digest:
			given = true
			d = e.digestOf(name+".", f.Name, f.Value)
		}
	}
	if !given {
		e.problems.add(CodeMissingField, name+"."+digest, "is required")
	}
	return n, d, true
}

// fork reads the place where a session branched off.
func (e *envelope) fork(in *Fork) *Fork {
	ms, ok := object(e, "forked_from", in)
	if !ok {
		return nil
	}
	x := &Fork{}
	for _, f := range ms {
		switch f.Name {
		case "session":
			x.Session = e.boundedText("forked_from.", f.Name, f.Value, MaxIDLen)
		case "turn":
			x.Turn = e.countOf("forked_from.", f.Name, f.Value, 0, MaxNumber)
		}
	}
	if !ValidSession(x.Session) {
		e.problems.add(CodeBadID, "forked_from.session", badSession)
	}
	return x
}

// object reads a field that is an object, and whether it is there. Without a payload it reads in.
func object[T any](e *envelope, name string, in *T) ([]codec.Member, bool) {
	v, ok := takeOr(e, name, in)
	if !ok || e.tooLarge(name, v) {
		return nil, false
	}
	ms, err := codec.ReadObject(v)
	if err != nil {
		e.problems.add(CodeBadType, name, "must be an object")
		return nil, false
	}
	var names codec.Names
	for i, f := range ms {
		if names.Repeated(ms, i) {
			e.problems.add(CodeDuplicateKey, name+"."+fieldName(f.Name), "occurs twice")
		}
	}
	return ms, true
}

// tooLarge notes an object that is larger than a turn.
func (e *envelope) tooLarge(name string, v codec.Raw) bool {
	if len(v) <= MaxTurnBytes {
		return false
	}
	e.problems.add(CodeTooLarge, name, "has more than %d bytes", MaxTurnBytes)
	return true
}

func (e *envelope) digestOf(parent, name string, v codec.Raw) Digest {
	d, err := ParseDigest(e.textOf(parent, name, v))
	if err != nil {
		e.problems.add(CodeBadType, fmt.Sprint(parent, name), "%v", err)
	}
	return d
}

// Bytes of a content hash: first the sequence, then the beginning of the SHA-256.
const (
	hashSeqBytes = 5
	hashBytes    = 12
)

// ContentHash names a text of the turn at a sequence of the log, in 24 hexadecimal digits. It finds the turn,
// and only a caller with the text can make it. It needs no store, and is the same at every worker.
func ContentHash(seq uint64, text string) string {
	var b [hashBytes]byte
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], seq)
	copy(b[:hashSeqBytes], n[8-hashSeqBytes:])
	sum := sha256.Sum256([]byte(text))
	copy(b[hashSeqBytes:], sum[:])
	return hex.EncodeToString(b[:])
}

var errContentHash = errors.New("is not 24 hexadecimal digits in lower case")

// SeqOfContent is the sequence in what [ContentHash] makes.
func SeqOfContent(hash string) (seq uint64, err error) {
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) != hashBytes || hex.EncodeToString(b) != hash {
		return 0, errContentHash
	}
	var n [8]byte
	copy(n[8-hashSeqBytes:], b[:hashSeqBytes])
	return binary.BigEndian.Uint64(n[:]), nil
}
