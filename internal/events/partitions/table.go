package partitions

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Most is the highest number of partitions that a log may have.
const Most = 1024

// Table has the partitions of a log, and the place at which each was split. The zero value is no log.
type Table struct {
	first  int        // partitions that the log began with
	splits [][]uint64 // of each growth, by parent: the first sequence after its split, 0 before it
}

// New returns the table of a log that has n partitions and never grew.
func New(n int) Table { return Table{first: n} }

// First is the number of partitions that the log began with.
func (t Table) First() int { return t.first }

// Count is the number of partitions; those that a growth under way makes count.
func (t Table) Count() int { return t.first << len(t.splits) }

// Of is the partition that decides the next event of a session.
func (t Table) Of(a events.Address) int { return t.At(a, math.MaxUint64) }

// At is the partition that decides the event of a session at a sequence.
func (t Table) At(a events.Address, seq uint64) int {
	hash := events.HashOf(a)
	p := int(hash % uint32(t.first))
	for i, growth := range t.splits {
		if growth[p] == 0 || seq < growth[p] {
			return p
		}
		p = int(hash % uint32(t.first<<(i+1)))
	}
	return p
}

// Path lists the partitions under whose subjects a session may have messages, in their order.
func (t Table) Path(a events.Address) []int {
	path := make([]int, 0, len(t.splits)+1)
	for i := range len(t.splits) + 1 {
		path = append(path, events.PartitionOf(a, t.first<<i))
	}
	return slices.Compact(path)
}

// Sources lists the partitions under whose subjects events of p after a sequence may be stored, in order: p,
// its ancestors, and later children of these, since a truncated log may have such events in the place of
// others.
func (t Table) Sources(p int, after uint64) []int {
	out := []int{p}
	for i := range len(t.splits) + 1 {
		n := t.first << i
		of := p % n
		if out = append(out, of); i == len(t.splits) {
			continue
		}
		if split := t.splits[i][of]; split > 0 && after+1 < split {
			out = t.descend(out, of, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// descend appends the descendants of a partition among n, and itself.
func (t Table) descend(out []int, p, n int) []int {
	for q := p; q < t.Count(); q += n {
		out = append(out, q)
	}
	return out
}

// Kin lists the partitions under whose subjects the sessions that p ever had may have messages, in order: p, those it
// was split off from, and those that it is split into.
func (t Table) Kin(p int) []int {
	out := []int{p}
	for i := range len(t.splits) + 1 {
		n := t.first << i
		if out = append(out, p%n); p < n {
			out = t.descend(out, p, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Families lists the descendants of each first partition: each session stays in one of the lists.
func (t Table) Families() [][]int {
	out := make([][]int, t.first)
	for p := range t.Count() {
		out[p%t.first] = append(out[p%t.first], p)
	}
	return out
}

// Split is the division of a partition: from First on Parent or Child decides an event, whichever its session
// has.
type Split struct {
	Parent int    `json:"parent"`
	Child  int    `json:"child"`
	First  uint64 `json:"first"`
}

// Moves reports whether a session of the parent belongs to the child.
func (s Split) Moves(a events.Address) bool {
	return events.PartitionOf(a, 2*(s.Child-s.Parent)) == s.Child
}

// Lineage lists the splits that led to a partition, in order. The last one made the partition, and has no
// First until it happens.
func (t Table) Lineage(p int) (out []Split) {
	for i := range t.splits {
		n := t.first << i
		if parent := p % n; parent != p%(2*n) {
			out = append(out, Split{parent, p % (2 * n), t.splits[i][parent]})
		}
	}
	return out
}

// Decides reports whether a partition decides events: a new one only from its split on.
func (t Table) Decides(p int) bool {
	lineage := t.Lineage(p)
	return len(lineage) == 0 || lineage[len(lineage)-1].First > 0
}

// Newest is the newest split of a partition, as parent or as child; the zero value for none.
func (t Table) Newest(p int) (last Split) {
	for i, growth := range t.splits {
		if n := t.first << i; p < 2*n && growth[p%n] > 0 {
			last = Split{p % n, p%n + n, growth[p%n]}
		}
	}
	return last
}

// Unsplit lists the partitions that the growth under way has not split; none without one.
func (t Table) Unsplit() (out []int) {
	if len(t.splits) == 0 {
		return nil
	}
	for p, first := range t.splits[len(t.splits)-1] {
		if first == 0 {
			out = append(out, p)
		}
	}
	return out
}

var (
	// ErrGrowing: a growth is under way; the next one may begin when each partition is split.
	ErrGrowing = errors.New("a growth of the log is under way")
	// ErrMost: the log would have more than [Most] partitions.
	ErrMost = fmt.Errorf("a log has at most %d partitions", Most)
	// ErrSplit: the partition cannot be split, or was split elsewhere.
	ErrSplit = errors.New("the partition cannot be split there")
)

// Grow begins to double the partitions.
func (t Table) Grow() (Table, error) {
	switch {
	case len(t.Unsplit()) > 0:
		return t, ErrGrowing
	case 2*t.Count() > Most:
		return t, ErrMost
	}
	return Table{t.first, append(slices.Clone(t.splits), make([]uint64, t.Count()))}, nil
}

// Split divides a partition of the growth under way from a sequence on. It may be repeated.
func (t Table) Split(p int, first uint64) (Table, error) {
	last := len(t.splits) - 1
	if last < 0 || p < 0 || p >= len(t.splits[last]) || first == 0 {
		return t, ErrSplit
	}
	if was := t.splits[last][p]; was == first {
		return t, nil
	} else if was != 0 {
		return t, fmt.Errorf("%w: partition %d was split at %d, not %d", ErrSplit, p, was, first)
	}
	out := Table{t.first, slices.Clone(t.splits)}
	out.splits[last] = slices.Clone(out.splits[last])
	out.splits[last][p] = first
	return out, out.check()
}

// With is the table with a split that a marker has, and with the growth that the split belongs to.
func (t Table) With(s Split) (_ Table, err error) {
	n := s.Child - s.Parent
	if s == (Split{}) || s.Parent >= 0 && n > s.Parent && s.Child < t.Count() && slices.Contains(t.Lineage(s.Child), s) {
		return t, nil
	}
	if n == t.Count() {
		if t, err = t.Grow(); err != nil {
			return t, err
		}
	}
	if 2*n != t.Count() {
		return t, fmt.Errorf("%w: partitions %d and %d are not of a growth to %d", ErrSplit, s.Parent, s.Child, t.Count())
	}
	return t.Split(s.Parent, s.First)
}

// check finds tables that no growth leads to.
func (t Table) check() error {
	if t.first < 1 || t.first > Most || t.Count() > Most {
		return fmt.Errorf("%d partitions are not 1 to %d", t.Count(), Most)
	}
	for i, growth := range t.splits {
		n := t.first << i
		if len(growth) != n {
			return fmt.Errorf("a growth from %d partitions has %d splits", n, len(growth))
		}
		for p, first := range growth {
			if first == 0 && i < len(t.splits)-1 {
				return fmt.Errorf("%w: partition %d of %d has no split", ErrGrowing, p, n)
			}
			if i > 0 && first > 0 && first < t.splits[i-1][p%(n/2)] {
				return fmt.Errorf("%w: partition %d of %d was split at %d, before it was made", ErrSplit, p, n, first)
			}
		}
	}
	return nil
}

// text is the stored form of a table.
type text struct {
	First  int        `json:"first"`
	Splits [][]uint64 `json:"splits,omitzero"`
}

// String is the stored form, for [Parse].
func (t Table) String() string {
	b, err := codec.Marshal(text{t.first, t.splits})
	if err != nil {
		panic(err) // numbers can be written
	}
	return string(b)
}

// Parse reads a [Table.String].
func Parse(s string) (Table, error) {
	var x text
	if err := codec.Unmarshal([]byte(s), &x); err != nil {
		return Table{}, fmt.Errorf("read partitions: %w", err)
	}
	t := Table{x.First, x.Splits}
	if err := t.check(); err != nil {
		return Table{}, fmt.Errorf("read partitions: %w", err)
	}
	return t, nil
}

// Merge is a table with the growths and splits of two, which several readers found of one log.
func (t Table) Merge(u Table) (Table, error) {
	if t.first != u.first {
		return t, fmt.Errorf("%w: a log began with %d partitions or with %d", ErrSplit, t.first, u.first)
	}
	out := Table{t.first, slices.Repeat([][]uint64{nil}, max(len(t.splits), len(u.splits)))}
	for i := range out.splits {
		out.splits[i] = make([]uint64, t.first<<i)
	}
	for _, growths := range [][][]uint64{t.splits, u.splits} {
		for i, growth := range growths {
			for p, first := range growth {
				was := &out.splits[i][p]
				if first != 0 && *was != 0 && first != *was {
					return t, fmt.Errorf("%w: partition %d of %d was split at %d or at %d", ErrSplit, p, len(growth), *was, first)
				}
				*was = max(*was, first)
			}
		}
	}
	if err := out.check(); err != nil {
		return t, err
	}
	return out, nil
}

// Equal reports whether two tables are the same.
func (t Table) Equal(u Table) bool {
	return t.first == u.first && slices.EqualFunc(t.splits, u.splits, slices.Equal)
}
