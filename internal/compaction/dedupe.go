package compaction

import "compactd/internal/events"

// Deduplicate lets earlier reads of a file point to the latest one. A read is
// replaced only when a later successful read covers it: the whole file, or the
// same lines. It changes nothing when the reads it touches, the kept ones
// included, would not shrink by at least the share minimum.
func (d *Draft) Deduplicate(minimum PPM) {
	latest := d.latestReads()
	kept := make([]bool, len(d.entries))
	var replace []int
	var saved, touched Tokens
	for i := range d.entries {
		e := &d.entries[i]
		later := latest.after(i, e)
		if !e.reads() || later < 0 {
			continue
		}
		s := d.saving(i, opDeduplicate)
		if s <= 0 {
			continue
		}
		replace = append(replace, i)
		saved += s
		touched += d.rate.Entry(e)
		if !kept[later] {
			kept[later] = true
			touched += d.rate.Entry(&d.entries[later])
		}
	}
	if saved*million < touched*Tokens(minimum) {
		return
	}
	for _, i := range replace {
		d.edit(i, events.OpDeduplicate)
	}
}

// referred marks the reads that the placeholder of an earlier one points to.
func (d *Draft) referred() []bool {
	latest := d.latestReads()
	out := make([]bool, len(d.entries))
	for i := range d.entries {
		if e := &d.entries[i]; e.Op == opDeduplicate {
			if k := latest.after(i, e); k >= 0 {
				out[k] = true
			}
		}
	}
	return out
}

// read identifies what a read reads.
type read struct{ path, variant Key }

// reads holds the position of the latest read of each file and variant.
type reads map[read]int

func (d *Draft) latestReads() reads {
	r := reads{}
	for i := range d.entries {
		if e := &d.entries[i]; e.reads() {
			r[read{e.Path, e.Variant}] = i
		}
	}
	return r
}

// after returns the latest read after position i that covers the read e, or −1.
func (r reads) after(i int, e *Entry) int {
	best := -1
	for _, variant := range []Key{0, e.Variant} {
		if k, ok := r[read{e.Path, variant}]; ok && k > i {
			best = max(best, k)
		}
	}
	return best
}
