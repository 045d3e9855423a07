package partition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"compactd/internal/broker/commit"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
	"compactd/internal/worker/payload"
)

// owner is a partition's worker, as partition.go is: the same decider, the same
// rules for markers, commits and checkpoints, in steps that a seed puts in order.
type owner struct {
	s         *simulation
	partition int
	epoch     uint64
	config    *compaction.Config
	decider   *decide.Decider
	decided   position
	committed compaction.Seq
	fence     uint64
	queue     []group
	disk      *simulatedDisk
	pending   *checkpoint
	ended     bool
}

func newOwner(s *simulation, p int, c *compaction.Config, d *simulatedDisk) *owner {
	o := &owner{s: s, partition: p, config: c, decider: decide.New(c), disk: d}
	o.decider.Store = d
	return o
}

// open is partition.open: fence the former owner, resume from the disk, and apply
// what was told up to the marker.
func (o *owner) open() {
	s := o.s
	last, found := s.last(o.partition)
	if found.marker == nil {
		s.violated("OUTCOMES ends at %d without a marker", last)
		o.end()
		return
	}
	m := *found.marker
	o.epoch = m.Epoch + 1
	if o.fence = o.store(nil, position{compaction.Seq(m.Cursor), m.Chain, m.LastID, m.LastTime}, last); o.fence == 0 {
		o.end()
		return
	}
	marker := position{compaction.Seq(m.Cursor), m.Chain, m.LastID, m.LastTime}
	if len(s.log) < int(m.Cursor) {
		marker = position{seq: compaction.Seq(len(s.log))}
		if o.fence = o.store(nil, marker, o.fence); o.fence == 0 {
			o.end()
			return
		}
	}
	if s.flaw != lostDiskTaken && !o.disk.fits(s.log, marker.seq) {
		o.disk = newDisk()
		o.decider.Store = o.disk
	}
	if s.flaw == markerIgnored && s.odds(20) {
		marker = position{}
	}
	o.committed = marker.seq
	mark := o.disk.mark
	o.decided = position{compaction.Seq(mark.Cursor), mark.Chain, mark.LastID, mark.LastTime}
	if mark.Cursor > 0 {
		s.counts.Resumed++
	}
	s.note("owner %d of partition %d, config %.6s: disk at %d, marker at %d", o.epoch, o.partition, o.config.Hash(), mark.Cursor, m.Cursor)
	o.replay(marker)
}

// replay is partition.replay.
func (o *owner) replay(marker position) {
	s, r := o.s, outcomelog.Index{}
	for _, c := range s.outcomes[o.disk.mark.Outcomes:o.fence] {
		if c.partition != o.partition {
			continue
		}
		if c.kind != "" {
			if err := r.Add(c.kind, c.data); err != nil {
				s.violated("read outcome: %w", err)
			}
		}
		if c.marker != nil && (s.flaw != lostEventsTold || compaction.Seq(c.marker.Cursor) >= r.Last) {
			r.ApplyMarker(*c.marker)
		}
	}
	for e := range o.unread(marker.seq) {
		if s.odds(1) {
			o.crash("while it replays")
			return
		}
		s.counts.Replays++
		if s.flaw != presentConfig && s.flaw != decidedAnew {
			o.decider.Config = configNamed(r.ConfigAt(e.Seq))
		}
		switch {
		case s.flaw == rewindsNotReplayed && e.Kind == events.KindRewind:
		case s.flaw == decidedAnew:
			o.decider.Process(e)
		default:
			if err := o.decider.ApplyRecorded(e, r.Outcomes[e.Seq]); err != nil {
				s.violated("replay %d: %w", e.Seq, err)
			}
		}
		o.decider.Events++
		o.decided = positionAfter(o.decided, e, storedAt(&e))
	}
	o.decider.Config = o.config
	if marker.chain != 0 && o.decided.chain != marker.chain {
		s.violated("the log has another hash at the marker, %d", marker.seq)
	}
	o.decided.seq, o.decided.chain = marker.seq, cmp.Or(marker.chain, o.decided.chain)
}

// unread lists the events of the partition behind what is decided, up to a
// sequence.
func (o *owner) unread(to compaction.Seq) func(func(decide.Event) bool) {
	return func(yield func(decide.Event) bool) {
		for _, e := range o.s.log[min(o.decided.seq, to):to] {
			if e.Partition == o.partition && !yield(e) {
				return
			}
		}
	}
}

// step is what one of an owner's goroutines does next.
func (o *owner) step() {
	switch n := o.s.IntN(100); {
	case o.ended:
	case n < 45:
		o.read(1 + o.s.IntN(4))
	case n < 70:
		o.commit(o.s.IntN(len(o.queue) + 1))
	case n < 85:
		o.collect()
	default:
		if o.pending != nil {
			o.commit(len(o.queue)) // else its time may never come
		}
		o.save()
	}
}

// read decides the next events.
func (o *owner) read(n int) {
	for e := range o.unread(compaction.Seq(len(o.s.log))) {
		if n--; n < 0 {
			return
		}
		o.decide(e)
	}
}

// decide is partition.receive.
func (o *owner) decide(e decide.Event) {
	s := o.s
	read := e
	if s.flaw == staleSummaryTaken && e.Kind == events.KindSummary {
		read.Data = s.relabel(e)
	}
	outs, text := o.decider.Process(read)
	o.decider.Events++
	o.decided = positionAfter(o.decided, e, storedAt(&e))
	if text {
		s.texts[e.Seq] = read
	}
	if len(outs) == 0 || s.flaw == outcomeLost && s.odds(5) {
		return
	}
	g := group{end: o.decided}
	for _, out := range outs {
		g.outcomes = append(g.outcomes, emitted{address: e.OutcomeAddress(), outcome: out})
	}
	o.queue = append(o.queue, g)
}

// commit is partition.commit for the first n groups of the queue; without any it
// commits a marker at the end of what is decided.
func (o *owner) commit(n int) {
	end := o.decided
	if n < len(o.queue) {
		if n == 0 {
			return
		}
		end = o.queue[n-1].end
	}
	if end.seq <= o.committed {
		return
	}
	var messages []commitment
	for _, g := range o.queue[:n] {
		for _, t := range g.outcomes {
			messages = append(messages, commitment{kind: t.outcome.Kind, address: t.address, data: o.payload(t.outcome), cause: g.end.seq})
		}
	}
	if o.s.odds(2) {
		o.crash("before a commit")
		return
	}
	fence := o.store(messages, end, o.fence)
	if fence == 0 {
		o.s.counts.Fenced++
		o.end()
		return
	}
	o.hear(messages, n)
	if o.s.odds(2) {
		o.crash("after a commit")
		return
	}
	o.fence, o.committed, o.queue = fence, end.seq, o.queue[n:]
}

// payload is partition.body: the tenant is over a bound now and then.
func (o *owner) payload(out compaction.Outcome) []byte {
	c, ok := out.Body.(*events.Compacted)
	if !ok || out.View == nil || !o.s.odds(20) {
		return o.s.body(out)
	}
	o.s.counts.Omitted++
	if o.s.flaw == editsOmitted {
		without := *c
		without.Edits = []events.Edit{}
		c = &without
	}
	data, err := payload.WithoutMessages(c, payload.LimitNote())
	if err != nil {
		o.s.violated("write outcome: %w", err)
	}
	return data
}

// store sends a commit until it is known whether it is stored, as
// commit.Committer does; 0 is that another owner has the partition.
func (o *owner) store(messages []commitment, end position, fence uint64) uint64 {
	s := o.s
	s.commits++
	id := s.commits
	m := commit.Marker{
		Cursor: uint64(end.seq), Chain: end.chain, LastID: end.id, LastTime: end.time,
		Owner: fmt.Sprint("owner ", o.epoch), Epoch: o.epoch, Config: o.config.Hash(),
	}
	for {
		seq, ok := s.store(o.partition, fence, messages, m, id)
		if !ok || !s.odds(10) {
			return seq
		}
		s.counts.LostAcks++
		last, found := s.last(o.partition)
		if s.flaw == answerGuessed {
			fence = last
			continue
		}
		if found.commit == id {
			return last
		}
	}
}

// hear counts what was told, and has agents and summarizers hear of it.
func (o *owner) hear(messages []commitment, n int) {
	for _, c := range messages {
		o.s.counts.Outcomes++
		o.s.note("told %s %s %.200s", c.kind, c.address.Session, c.data)
	}
	for _, g := range o.queue[:n] {
		for _, t := range g.outcomes {
			for _, a := range o.s.speakers {
				if a.address == t.address {
					a.hear(t.outcome)
				}
			}
		}
	}
}

// collect is partition.collect.
func (o *owner) collect() {
	if o.pending != nil || len(o.decider.Dirty) == 0 {
		return
	}
	c := &checkpoint{end: o.decided, outcomes: o.fence}
	if o.s.flaw == changeForgotten && len(o.decider.Dirty) > 1 {
		o.decider.Dirty[0].Dirty = false
		o.decider.Dirty = o.decider.Dirty[1:]
	}
	var err error
	if c.changes, c.written, err = o.decider.Collect(); err != nil {
		o.s.violated("collect: %w", err)
	}
	o.pending = c
	if o.s.flaw == checkpointAhead {
		o.write()
	}
}

// save is partition.save: nothing is written before its border is committed.
func (o *owner) save() {
	if o.ended || o.pending == nil || o.committed < o.pending.end.seq {
		return
	}
	if o.s.odds(10) {
		o.crash("before a checkpoint")
		return
	}
	o.write()
	if o.s.odds(10) {
		o.crash("after a checkpoint")
	}
}

func (o *owner) write() {
	c, s := o.pending, o.s
	o.pending = nil
	end, outcomes := c.end, c.outcomes
	if s.flaw == checkpointOfNow {
		end = o.decided
	}
	if s.flaw == outcomesSkipped {
		outcomes = o.fence
	}
	o.disk.checkpoint(kv.Position{
		Cursor: uint64(end.seq), Chain: end.chain, LastID: end.id, LastTime: end.time, Outcomes: outcomes,
	}, c.changes, s.flaw)
	s.note("checkpoint of owner %d at %d, %d ledgers", o.epoch, end.seq, len(c.changes))
	s.counts.Checkpoints++
	o.decider.MarkStored(c.written)
	if s.flaw == unsavedEvicted {
		for _, k := range o.decider.Dirty {
			k.Dirty = false
		}
		o.decider.Dirty = nil
	}
	if s.odds(50) {
		s.counts.Evicted += o.decider.Evict(0, 0)
	}
}

// settle decides and stores everything, checkpoint included. It is false when the
// owner did not live to see it.
func (o *owner) settle() bool {
	for more := true; more && !o.ended; more = o.committed < o.decided.seq { // a summary may answer a commit
		o.commit(len(o.queue))
		o.read(len(o.s.log))
	}
	for !o.ended && (o.pending != nil || len(o.decider.Dirty) > 0) {
		o.collect()
		o.save()
	}
	return !o.ended
}

func (o *owner) crash(where string) {
	o.s.note("owner %d of partition %d dies %s", o.epoch, o.partition, where)
	o.s.counts.Crashes++
	o.end()
}

// end leaves nothing but the disk.
func (o *owner) end() {
	o.ended = true
	o.s.zombies = slices.DeleteFunc(o.s.zombies, func(z *owner) bool { return z == o })
	if o.s.current[o.partition] == o {
		o.s.current[o.partition] = nil
	}
	o.s.disks[o.partition] = append(o.s.disks[o.partition], o.disk)
}

// body is what goes out: the payload with the history it tells.
func (s *simulation) body(o compaction.Outcome) []byte {
	if c, ok := o.Body.(*events.Compacted); ok && o.View != nil {
		full := *c
		full.Messages = s.render(o.View)
		o.Body = full
	}
	data, err := events.Marshal(o.Body)
	if err != nil {
		s.violated("write outcome: %w", err)
	}
	return data
}

func (s *simulation) render(v *compaction.View) []events.Raw {
	raw, err := compaction.Render(v, func(seq compaction.Seq) ([]events.Message, error) {
		e, ok := s.texts[seq]
		if !ok {
			return nil, fmt.Errorf("no text at %d", seq)
		}
		return payload.Texts(e.Kind, e.Data)
	})
	if err != nil {
		s.violated("render: %w", err)
	}
	return raw
}

// simulatedDisk is the file of a partition, as package kv keeps it.
type simulatedDisk struct {
	mark kv.Position
	rows map[events.Address]map[string][]byte
}

func newDisk() *simulatedDisk { return &simulatedDisk{rows: map[events.Address]map[string][]byte{}} }

func (d *simulatedDisk) clone() *simulatedDisk {
	c := &simulatedDisk{mark: d.mark, rows: map[events.Address]map[string][]byte{}}
	for a, rows := range d.rows {
		c.rows[a] = maps.Clone(rows)
	}
	return c
}

// fits is partition.fits: a disk may stand on events that the log has lost, or on
// others of their sequences.
func (d *simulatedDisk) fits(log []decide.Event, marker compaction.Seq) bool {
	at := compaction.Seq(d.mark.Cursor)
	return at == 0 || at <= marker && log[at-1].Time == d.mark.LastTime
}

// Load is kv.Store.Load.
func (d *simulatedDisk) Load(a events.Address) ([]compaction.Row, error) {
	var out []compaction.Row
	for name, data := range d.rows[a] {
		out = append(out, compaction.Row{Name: name, Data: data})
	}
	slices.SortFunc(out, func(a, b compaction.Row) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// List is kv.Store.List.
func (d *simulatedDisk) List(tenant, after string, n int) ([]string, error) {
	var out []string
	for a := range d.rows {
		if a.Tenant == tenant && a.Session > after {
			out = append(out, a.Session)
		}
	}
	slices.Sort(out)
	return out[:min(n, len(out))], nil
}

// checkpoint is kv.Store.Checkpoint.
func (d *simulatedDisk) checkpoint(m kv.Position, changes []kv.Change, f flaw) {
	d.mark = m
	for _, c := range changes {
		if (c.Drop || c.Replace) && f != dropIgnored {
			delete(d.rows, c.Address)
		}
		for _, r := range c.Rows {
			if d.rows[c.Address] == nil {
				d.rows[c.Address] = map[string][]byte{}
			}
			d.rows[c.Address][r.Name] = r.Data
		}
	}
}
