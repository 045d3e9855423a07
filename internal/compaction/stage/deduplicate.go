package stage

import (
	"iter"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Deduplicate lets earlier reads of a file point to the latest one. A read is
// replaced, also one that failed, only when a later successful read covers it: the
// whole file, or the same lines. It changes nothing when the reads it touches, the kept ones
// included, would not shrink by at least the share minimum.
// See docs/adr/0002.
func (d *Draft) Deduplicate(minimum measure.PPM) {
	kept := make([]bool, len(d.entries))
	d.list = d.list[:0] // newest first
	var saved, touched measure.Tokens
	for i, later := range d.rereads() {
		if later < 0 || d.entries[i].Op == measure.OpDeduplicate {
			continue
		}
		s := d.saving(i, events.OpDeduplicate)
		if s <= 0 {
			continue
		}
		d.list = append(d.list, i)
		saved += s
		touched += d.costs[i]
		if !kept[later] {
			kept[later] = true
			touched += d.costs[later]
		}
	}
	if saved*measure.Million < touched*measure.Tokens(minimum) {
		return
	}
	slices.Reverse(d.list)
	d.edit(events.OpDeduplicate, d.list)
}

// referred marks the reads that the placeholder of an earlier one points to.
func (d *Draft) referred() []bool {
	out := make([]bool, len(d.entries))
	if d.pointers == 0 {
		return out
	}
	for i, later := range d.rereads() {
		if d.entries[i].Op == measure.OpDeduplicate && later >= 0 {
			out[later] = true
		}
	}
	return out
}

// disowned lists the placeholders whose read is no longer below them: truncated,
// or retracted.
func (d *Draft) disowned() []int {
	if d.pointers == 0 {
		return nil
	}
	var out []int
	for i, later := range d.rereads() {
		if d.entries[i].Op == measure.OpDeduplicate && later < 0 {
			out = append(out, i)
		}
	}
	slices.Reverse(out)
	return out
}

// read identifies what a read reads.
type read struct{ path, variant measure.Key }

// rereads walks back over the reads and the placeholders of reads. Each comes with
// the latest read below it that covers it, the whole file or the same lines, or
// with −1.
func (d *Draft) rereads() iter.Seq2[int, int] {
	return func(yield func(i, later int) bool) {
		if d.latest == nil {
			d.latest = map[read]int{}
		}
		clear(d.latest)
		find := func(r read) int {
			if i, ok := d.latest[r]; ok {
				return i
			}
			return -1
		}
		for i := len(d.entries) - 1; i >= 0; i-- {
			e := &d.entries[i]
			if !e.Tried() && e.Op != measure.OpDeduplicate {
				continue
			}
			own := read{e.Path, e.Variant}
			same := find(own)
			if e.Reads() && same < 0 {
				d.latest[own] = i
			}
			later := same
			if e.Variant != 0 {
				later = max(same, find(read{path: e.Path}))
			}
			if !yield(i, later) {
				return
			}
		}
	}
}
