package stage

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/idents"
)

// SpareLine is a spare line of a summary, without its text.
type SpareLine struct {
	At    events.Position
	Units int64        // counted units in the message of the summary
	Keys  []idents.Key // of identifiers that the summary does not have
}

// Spare are the spare lines of a summary.
type Spare []SpareLine

// IsZero reports whether JSON leaves them out.
func (s Spare) IsZero() bool { return len(s) == 0 }

// MarshalText writes them in a short form: a ledger is stored after each of its turns.
func (s Spare) MarshalText() ([]byte, error) {
	b := []byte{}
	for i := range s {
		l := &s[i]
		for _, n := range []int64{l.At.Turn, l.At.Index, l.At.Part, l.Units, int64(len(l.Keys))} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		for _, k := range l.Keys {
			b = binary.LittleEndian.AppendUint32(b, k)
		}
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

var errSpare = errors.New("spare lines cannot be read")

// UnmarshalText reads what MarshalText wrote.
func (s *Spare) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return errSpare
	}
	for *s = nil; len(b) > 0; {
		var n [5]uint64
		for i := range n {
			v, w := binary.Uvarint(b)
			if w <= 0 {
				return errSpare
			}
			n[i], b = v, b[w:]
		}
		if n[4] > uint64(len(b)/4) {
			return errSpare
		}
		l := SpareLine{At: events.Position{Turn: int64(n[0]), Index: int64(n[1]), Part: int64(n[2])}, Units: int64(n[3])}
		for ; n[4] > 0; n[4], b = n[4]-1, b[4:] {
			l.Keys = append(l.Keys, binary.LittleEndian.Uint32(b))
		}
		*s = append(*s, l)
	}
	return nil
}

// Use notes that an agent used identifiers, and returns the summary with them.
func (s *Summary) Use(keys []idents.Key) *Summary {
	used := s.Used
	for i := range s.Spare {
		if slices.ContainsFunc(s.Spare[i].Keys, func(k idents.Key) bool { return slices.Contains(keys, k) }) {
			used.Set(i)
		}
	}
	if used == s.Used {
		return s
	}
	out := *s // forks of a ledger share it
	out.Used = used
	return &out
}

// Clear returns the summary without any use.
func (s *Summary) Clear() *Summary {
	if s.Used == (measure.Spares{}) {
		return s
	}
	out := *s // forks of a ledger share it
	out.Used = measure.Spares{}
	return &out
}

// keepUsed adds lines in use, which left the view with the range of the summary, to the summary's message:
// the newest first, while they fit without removing anything else. It counts them.
// See docs/adr/0059.
func (d *Draft) keepUsed(s *Summary, m *Means) {
	at := d.lastPlaceholder()
	if at < 0 || d.entries[at].Kind != measure.KindSummary || d.entries[at].Seq != s.Seq {
		return
	}
	room := min(d.before-1, m.chosen()) - d.Repaired()
	had := d.rate.Entry(&d.entries[at])
	made := *s
	for _, i := range s.Used.List() {
		l := &s.Spare[i]
		if d.shows(at, l.At) {
			continue
		}
		d.missingLines++
		more := made
		more.Units += l.Units
		if e := more.entry(); d.rate.Entry(&e)-had > room {
			continue
		}
		d.keeps++
		made = more
		made.Kept.Set(int(i))
	}
	if made.Units == s.Units {
		return
	}
	d.alter(at, func(e *measure.Entry) { e.Text = uint32(made.Units); e.SetSpares(made.Kept) })
	for i := range d.edits {
		if x := &d.edits[i]; x.Op == events.OpCondense && x.Seq == uint64(s.Seq) {
			x.Units, x.Spare = made.Units, made.Kept.List()
		}
	}
}

// shows reports whether the kept entries of a summary include the content at a position.
func (d *Draft) shows(placeholder int, at events.Position) bool {
	kept := d.entries[placeholder+1:]
	for len(kept) > 0 && kept[0].Kind == measure.KindRestored {
		kept = kept[1:]
	}
	i, _ := slices.BinarySearchFunc(kept, measure.MessageOf(at), func(e measure.Entry, p events.Position) int { return e.Compare(p) })
	for ; i < len(kept) && kept[i].Compare(at) <= 0; i++ {
		if e := &kept[i]; e.Op == measure.OpNone && at.Part < int64(e.Part)+max(int64(e.Parts), 1) {
			return true
		}
	}
	return false
}
