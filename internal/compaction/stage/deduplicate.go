package stage

import (
	"iter"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// Deduplicate replaces earlier reads of a file by pointers to the latest one. A read, also a failed one, is
// replaced only if a later successful read covers it: the whole file, or the same lines. Agents read large
// files in pieces, and one piece does not contain another. Nothing changes unless the read files, the kept
// reads included, shrink by the share minimum.
func (d *Draft) Deduplicate(minimum measure.PPM) {
	kept := make([]bool, len(d.entries))
	d.list = d.list[:0] // newest first
	var saved, touched measure.Tokens
	for i, later := range d.rereads() {
		if later < 0 || d.entries[i].Op == measure.OpDeduplicate || pinned(d.entries[i]) {
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

// disowned lists the placeholders whose read is no longer after them: truncated, or retracted.
func (d *Draft) disowned() []int {
	if d.pointers == 0 {
		return nil
	}
	if !d.searched {
		d.lost, d.searched = d.lost[:0], true
		for i, later := range d.rereads() {
			if d.entries[i].Op == measure.OpDeduplicate && later < 0 {
				d.lost = append(d.lost, i)
			}
		}
		slices.Reverse(d.lost)
	}
	return d.lost
}

// read identifies the content of a read.
type read struct{ path, variant dialect.Key }

// rereads iterates backwards over reads and placeholders of reads, each with the latest later read that
// covers it, the whole file or the same lines, or −1.
func (d *Draft) rereads() iter.Seq2[int, int] {
	return func(yield func(i, later int) bool) {
		if d.whole == nil {
			d.whole, d.lines = map[dialect.Key]int{}, map[read]int{}
		}
		clear(d.whole)
		clear(d.lines)
		for i := len(d.entries) - 1; i >= 0; i-- {
			e := &d.entries[i]
			if !e.Tried() && e.Op != measure.OpDeduplicate {
				continue
			}
			own, whole := read{e.Path, e.Variant}, d.whole[e.Path]-1
			same := whole
			if e.Variant != 0 {
				same = d.lines[own] - 1
			}
			switch {
			case !e.Reads() || same >= 0:
			case e.Variant == 0:
				d.whole[e.Path] = i + 1
			default:
				d.lines[own] = i + 1
			}
			if !yield(i, max(same, whole)) {
				return
			}
		}
	}
}
