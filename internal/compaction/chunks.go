package compaction

import (
	"slices"
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// chunkLen is the number of entries in a full chunk.
const chunkLen = 32

// chunks is a list of entries that grows and shrinks at its end. The first
// chunks are small, 4, 8 and 16 entries, since most sessions are short.
//
// A copy of the struct shares its entries. The copy may grow, since it writes only beyond the end of the
// original; cut copies the chunk that it changes.
type chunks struct {
	list [][]measure.Entry
	n    int
}

// chunkStart is the first position of chunk c, chunkOf its inverse.
func chunkStart(c int) int {
	if c < 3 {
		return 4 * (1<<c - 1)
	}
	return 28 + (c-3)*chunkLen
}

func chunkOf(i int) int {
	switch {
	case i >= 28:
		return 3 + (i-28)/chunkLen
	case i >= 12:
		return 2
	case i >= 4:
		return 1
	default:
		return 0
	}
}

// at returns the entry at a position below n.
func (c *chunks) at(i int) *measure.Entry {
	k := chunkOf(i)
	return &c.list[k][i-chunkStart(k)]
}

func (c *chunks) add(e measure.Entry) {
	if k := chunkOf(c.n); k == len(c.list) {
		c.list = append(c.list, make([]measure.Entry, chunkStart(k+1)-chunkStart(k)))
	}
	c.n++
	*c.at(c.n - 1) = e
}

// appendTo appends the entries of positions from ≤ i < to.
func (c *chunks) appendTo(out []measure.Entry, from, to int) []measure.Entry {
	for from < to {
		k := chunkOf(from)
		start := chunkStart(k)
		end := min(to, chunkStart(k+1))
		out = append(out, c.list[k][from-start:end-start]...)
		from = end
	}
	return out
}

// cut drops the entries from position n on.
func (c *chunks) cut(n int) {
	if n >= c.n {
		return
	}
	c.list, c.n = slices.Clone(c.list[:chunkOf(n)+1]), n
	last := &c.list[len(c.list)-1]
	*last = slices.Clone(*last)
}

// search returns the first position whose entry is not before a place of the session; n if there is none.
func (c *chunks) search(p events.Position) int {
	return sort.Search(c.n, func(i int) bool { return c.at(i).Compare(p) >= 0 })
}
