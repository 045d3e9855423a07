package partition

import (
	"maps"
	"slices"

	"compactd/internal/broker/commit"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// The growth of a log, in steps that a seed puts in order: the request, splits, children, the change of
// the transform, which a server may not have noticed.

// transform is that of the server which stores an event.
func (s *simulation) transform() int {
	n := len(s.transforms)
	if n > 1 && s.odds(30) {
		s.counts.Stale++
		return s.transforms[s.IntN(n)]
	}
	return s.transforms[n-1]
}

// grow takes the next step of a growth: at most two.
func (s *simulation) grow() {
	unsplit := s.table.Unsplit()
	switch {
	case len(unsplit) == 0 && s.transforms[len(s.transforms)-1] == s.table.Count() && len(s.transforms) < 3:
		s.table, _ = s.table.Grow()
		for range s.table.Count() - len(s.current) {
			s.current, s.disks, s.copies = append(s.current, nil), append(s.disks, nil), append(s.copies, nil)
		}
		s.counts.Growths++
		s.note("the log grows to %d", s.table.Count())
	case len(unsplit) > 0:
		p := unsplit[s.IntN(len(unsplit))]
		if s.current[p] == nil {
			s.takeOver(p)
		}
		if o := s.current[p]; o != nil {
			if s.frail { // else there is little below a split
				o.read(2 + s.IntN(4))
			}
			if o.split(); s.frail && s.odds(70) {
				o.commit(o.queued())
			}
		}
		s.complete()
	}
}

// known is the table with the splits that markers have.
func (s *simulation) known() partitions.Table {
	t := s.table
	for _, p := range t.Unsplit() {
		if _, last := s.last(p); last.marker != nil {
			var err error
			if t, err = t.With(last.marker.Split); err != nil {
				s.violated("split %d: %w", p, err)
			}
		}
	}
	return t
}

// anySplit is the first sequence behind one of the splits, 0 for none.
func (s *simulation) anySplit() uint64 { return s.known().Newest(s.IntN(len(s.current))).First }

// complete changes table and transform once every partition is split.
func (s *simulation) complete() {
	if t := s.known(); len(t.Unsplit()) == 0 && s.odds(70) {
		s.table, s.transforms = t, append(s.transforms, t.Count())
		s.note("the transform is of %d", t.Count())
	}
}

// born reports whether a partition may be served: its parent is split.
func (s *simulation) born(p int) bool {
	l := s.known().Lineage(p)
	return len(l) == 0 || l[len(l)-1].First > 0
}

// prepared is a disk for a child: its parent's, as it was before the split.
func (s *simulation) prepared(p int, d *simulatedDisk) *simulatedDisk {
	l := s.known().Lineage(p)
	if len(l) == 0 {
		return d
	}
	split := l[len(l)-1]
	for _, of := range append(slices.Clone(s.disks[split.Parent]), s.copies[split.Parent]) {
		if of == nil || of.at.Cursor >= split.First || of != s.copies[split.Parent] && of.at.Cursor+1 == split.First || s.unpruned(split.Parent, of) {
			continue
		}
		d = of.clone()
		maps.DeleteFunc(d.rows, func(a events.Address, _ map[string][]byte) bool { return !split.Moves(a) })
		d.scrub()
		break
	}
	return d
}

func (o *owner) table() partitions.Table { return o.set.Table() }

// learn takes a split into the table that a marker has.
func (o *owner) learn(split partitions.Split) {
	if err := o.set.learn(split); err != nil {
		o.s.violated("learn: %w", err)
	}
}

// lineage are the splits that the partition came from.
func (o *owner) lineage() []partitions.Split { return o.table().Lineage(o.partition) }

// birth is the last of them; the zero value for a partition that the log began with.
func (o *owner) birth() partitions.Split {
	l := o.lineage()
	if len(l) == 0 {
		return partitions.Split{}
	}
	return l[len(l)-1]
}

// awaitSplit is recovery.awaitSplit: what a partition begins from that was split off. It is false while its parent has
// not decided up to the split.
func (o *owner) awaitSplit() (begins commit.Marker, ok bool) {
	s, birth := o.s, o.birth()
	if birth.Child == 0 {
		return begins, true
	}
	_, parent := s.last(birth.Parent)
	if parent.marker == nil {
		return begins, false
	}
	o.learn(parent.marker.Split)
	m, birth := *parent.marker, o.birth()
	if _, stale := s.truncated(m); birth.First == 0 || m.Cursor+1 < birth.First || stale && s.flaw != staleParent || birth.First-1 > uint64(len(s.log)) {
		return begins, false
	}
	begins = commit.Marker{Cursor: birth.First - 1, Epoch: m.Epoch, Split: birth}
	if begins.Cursor > 0 {
		begins.LastTime = s.log[begins.Cursor-1].Time
	}
	if s.flaw == splitMoved {
		begins.Cursor, begins.Chain = m.Cursor, m.Chain
	}
	return begins, true
}

// split divides the partition between two events, unless it is split.
func (o *owner) split() {
	if o.ended {
		return
	}
	if err := o.set.update(o.s.table.Merge); err != nil {
		o.s.violated("read the table: %w", err)
	}
	before := o.ledgers.position().split
	if err := (&intake{ledgers: o.ledgers, queue: o.queue}).split(); err != nil {
		o.s.violated("split %d: %w", o.partition, err)
	}
	if o.ledgers.position().split == before {
		return
	}
	o.s.counts.Splits++
	o.s.note("partition %d is split behind %d", o.partition, o.ledgers.position().seq)
	if o.s.flaw == shedEarly {
		o.stored = o.ledgers.position().split
		o.learn(o.stored)
		o.collect()
		o.save()
	}
}

// fill is Partition.fill.
func (o *owner) fill() {
	split := o.ledgers.toFill()
	for last := uint64(0); split.First > 0 && last+1 < split.First; last = uint64(len(o.s.log)) {
		if o.s.odds(5) {
			o.crash("while it fills the log")
			return
		}
		a, data, err := o.ledgers.filler()
		if err != nil {
			o.s.violated("fill the log: %w", err)
		}
		o.s.publish(events.KindBranch, a, "", data)
		o.s.counts.Filled++
	}
}
