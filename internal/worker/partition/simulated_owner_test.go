package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/erase"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/partitions"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/syncs"
)

// owner is a partition's worker, as partition.go is: the same ledgers and queue, the same
// rules for markers, commits and checkpoints, in steps that a seed puts in order.
type owner struct {
	s         *simulation
	partition int
	epoch     uint64
	set       *Set // of this owner alone: its config
	ledgers   *ledgers
	queue     *queue
	committed measure.Seq
	fence     uint64
	disk      *simulatedDisk
	pending   *checkpoint
	eraser    *eraser
	found     commit.Marker // when it took the partition over
	truncated bool          // the log had lost events by then
	ended     bool

	syncer  *syncs.Syncer
	sources []int            // whose subjects it reads
	stored  partitions.Split // as the last marker has it

	busy map[events.Address]bool // sessions of which a sync is answered
	call syncCall
}

func newOwner(s *simulation, p int, c *compaction.Config, d *simulatedDisk) *owner {
	set := &Set{config: Config{Compaction: c}}
	set.install(s.table)
	o := &owner{s: s, partition: p, set: set, ledgers: &ledgers{scope: scope{p, set}, life: &lifecycle{}}, queue: newQueue(math.MaxInt, math.MaxInt), disk: d}
	o.eraser = &eraser{scope: scope{p, set}, ledgers: o.ledgers, queue: o.queue, stores: simulatedStores{o}, added: make(chan struct{}, 1)}
	o.ledgers.life.enter(serving)
	set.slot(p).served.Store(&Partition{eraser: o.eraser})
	return o
}

// open is recovery.run: fence the former owner, resume from the disk, and apply what was
// published up to the marker.
func (o *owner) open() {
	s := o.s
	begins, ok := o.awaitSplit()
	if !ok {
		s.counts.Unborn++
		o.end()
		return
	}
	last, found := s.last(o.partition)
	if found.marker == nil {
		s.violated("OUTCOMES ends at %d without a marker", last)
		o.end()
		return
	}
	if last == 0 && begins.Split.First > 0 {
		s.counts.Children++
		found = commitment{marker: &begins}
	}
	m := *found.marker
	o.epoch = m.Epoch + 1
	if s.flaw != splitUnknown {
		o.learn(m.Split)
	}
	o.found = m
	marker := positionOfMarker(m)
	marker.split = o.table().Newest(o.partition)
	if o.fence = o.store(nil, marker, last); o.fence == 0 {
		o.end()
		return
	}
	var end uint64
	if end, o.truncated = s.truncated(m); o.truncated {
		if marker = o.ledgers.rolledBack(marker, end); s.flaw == belowSplit {
			marker.seq = measure.Seq(end)
		}
		if marker.seq > 0 {
			marker.time = s.log[marker.seq-1].Time
		}
		if o.fence = o.store(nil, marker, o.fence); o.fence == 0 {
			o.end()
			return
		}
	}
	if s.flaw != lostDiskTaken && !o.disk.fits(s.log, s.gone, marker.seq) || o.disk.at.Outcomes >= o.fence {
		o.disk = newDisk()
	}
	if s.flaw == markerIgnored && s.odds(20) {
		marker = position{}
	}
	o.committed, o.stored = marker.seq, marker.split
	if o.disk.at.Cursor > 0 {
		s.counts.Resumed++
	}
	s.note("owner %d of partition %d, config %.6s: disk at %d, marker at %d, of %d", o.epoch, o.partition, o.set.config.Compaction.Hash(), o.disk.at.Cursor, m.Cursor, marker.seq)
	o.replay(marker)
}

// truncated is recovery.findTruncation.
func (s *simulation) truncated(m commit.Marker) (end uint64, _ bool) {
	last := uint64(len(s.log))
	if m.LastTime == 0 {
		return last, m.Cursor > last
	}
	if m.Cursor <= last && (s.gone[measure.Seq(m.Cursor)] || s.log[m.Cursor-1].Time <= m.LastTime) {
		return 0, false
	}
	for last > 0 && s.log[last-1].Time > m.LastTime {
		last--
	}
	return last, true
}

// replay is recovery.replay.
func (o *owner) replay(marker position) {
	err := o.applyRecorded(marker)
	if errors.Is(err, errOtherChain) && o.disk.at.Cursor > 0 {
		o.disk = newDisk()
		err = o.applyRecorded(marker)
	}
	if err != nil {
		o.s.violated("replay of partition %d up to %d: %w", o.partition, marker.seq, err)
	}
	if o.ended {
		return
	}
	o.queue.begin(o.ledgers.position())
	o.sources = o.table().Sources(o.partition, uint64(marker.seq))
	if o.s.flaw == parentUnread {
		o.sources = []int{o.partition}
	}
	_ = o.eraser.find(context.Background()) // the simulation answers
}

// applyRecorded is recovery.applyRecorded.
func (o *owner) applyRecorded(marker position) error {
	s, at := o.s, o.disk.at
	o.disk.forgetful = s.flaw == lineagesLost
	if o.ledgers.resume(o.disk, at, marker.split); s.flaw == splitMissed {
		o.ledgers.begin(o.disk, positionOfFile(at))
	}
	if uint64(marker.seq) <= at.Cursor {
		return nil
	}
	recorded := inherit(o.partition, o.table(), at.Cursor)
	o.sources = o.table().Sources(o.partition, at.Cursor)
	whole, err := o.ledgers.unerased(at.Cursor, marker.seq, func(in []int) (uint64, error) { return s.lastErasure(in), nil })
	if err != nil {
		return err
	}
	for p := range recorded.by {
		recorded.by[p] = &outcomelog.Index{}
		if p != o.partition || o.truncated {
			recorded.by[p].Chains = map[measure.Seq]uint64{}
		}
	}
	for _, c := range s.outcomes[at.Outcomes:o.fence] {
		r := recorded.by[c.partition]
		if r == nil || c.gone {
			continue
		}
		if c.kind != "" && c.kind != events.KindErased {
			if err := r.Add(c.kind, c.data); err != nil {
				return err
			}
		}
		if c.marker != nil && (s.flaw != lostEventsReplayed || measure.Seq(c.marker.Cursor) >= r.Last) {
			r.ApplyMarker(*c.marker)
		}
	}
	recorded.compare((whole || s.flaw == erasedMissed) && (at.Cursor == 0 || at.Chain != 0))
	marker.chain = cmp.Or(marker.chain, recorded.chainAt(marker.seq))
	named := func(hash string) (*compaction.Config, error) {
		if s.flaw == presentConfig {
			return o.set.config.Compaction, nil
		}
		return configNamed(hash), nil
	}
	for e := range o.unread(marker.seq) {
		if s.odds(1) {
			o.crash("while it replays")
			return nil
		}
		s.counts.Replays++
		switch by, applies := recorded.of(e); {
		case s.flaw == parentIgnored && by != recorded.by[o.partition]:
			o.ledgers.skip(e, storedAt(&e))
			continue
		case s.flaw == rewindsNotReplayed && applies && e.Kind == events.KindRewind:
			o.ledgers.advance(e, storedAt(&e))
			continue
		case s.flaw == decidedAgain && applies:
			_, _, _, _ = o.ledgers.decide(e, storedAt(&e))
			continue
		}
		if _, err := recorded.apply(o.ledgers, e, storedAt(&e), named, func(err error) { s.violated("replay %d: %w", e.Seq, err) }); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	if recorded.misses(o.ledgers.position(), marker) {
		return errOtherChain
	}
	o.ledgers.reach(marker)
	return nil
}

// unread lists the events of the partition behind what is decided, up to a
// sequence.
func (o *owner) unread(to measure.Seq) func(func(decide.Event) bool) {
	return func(yield func(decide.Event) bool) {
		for _, e := range o.s.log[min(o.ledgers.position().seq, to):to] {
			if slices.Contains(o.sources, e.Partition) && !o.s.gone[e.Seq] && !yield(e) {
				return
			}
		}
	}
}

// step is what one of an owner's goroutines does next.
func (o *owner) step() {
	switch n := o.s.IntN(100); {
	case o.ended:
	case n < 4:
		o.fill()
	case n < 45:
		o.read(1 + o.s.IntN(4))
	case n < 70:
		o.commit(o.s.IntN(o.queued() + 1))
	case n < 82:
		o.collect()
	case n < 88:
		o.eraseNext()
	case n < 93:
		o.copy()
	default:
		if o.pending != nil {
			o.commit(o.queued()) // else its time may never come
		}
		o.save()
	}
}

// queued is how many groups the queue holds.
func (o *owner) queued() int {
	groups, _ := o.queue.head()
	return len(groups)
}

// anyConfig is one of the configs that operators set.
func (s *simulation) anyConfig() *compaction.Config {
	c := simulatedConfigs()
	return c[s.IntN(len(c))]
}

// read decides the next events. The config in force may change before each of them.
func (o *owner) read(n int) {
	for e := range o.unread(measure.Seq(len(o.s.log))) {
		if n--; n < 0 || o.ended {
			return
		}
		if o.s.odds(2) {
			o.set.changed.Store(o.s.anyConfig())
			o.s.counts.Reconfigured++
		}
		o.decide(e)
	}
}

// decide is intake.receive.
func (o *owner) decide(e decide.Event) {
	s := o.s
	if own := o.ledgers.decides(e); !own && s.flaw != subjectTrusted || s.flaw == subjectTrusted && e.Partition != o.partition {
		s.counts.Skipped++
		o.queue.push(o.ledgers.skip(e, storedAt(&e)), e.Address)
		return
	}
	read, before := e, o.ledgers.position()
	if s.flaw == staleSummaryTaken && e.Kind == events.KindSummary {
		read.Data = s.relabel(e)
	}
	g, text, _, err := o.ledgers.decide(read, storedAt(&e))
	if err != nil {
		s.violated("load ledger at %d: %w", e.Seq, err)
	}
	if s.flaw == staleSummaryTaken {
		g.end = positionAfter(before, e, storedAt(&e))
		o.ledgers.decided = g.end
	}
	if text {
		s.texts[e.Seq] = read
	}
	if s.flaw == epochsJoined {
		o.queue.end.config = g.end.config
	}
	if s.flaw == outcomeLost && len(g.outcomes) > 0 && s.odds(5) {
		g.outcomes = nil
	}
	if relate(context.Background(), simulatedFamily{o, e}, e, g.forked) == nil {
		o.queue.push(g, e.Address)
	}
}

// commit is committer.commit for the first n groups of the queue; without any it
// commits a marker at the end of what is decided.
func (o *owner) commit(n int) {
	if o.ended {
		return
	}
	groups, end := o.queue.head()
	if n < len(groups) {
		if n == 0 {
			return
		}
		end = groups[n-1].end
	}
	if n == 0 && end.seq <= o.committed {
		return
	}
	var messages []commitment
	for _, g := range groups[:n] {
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
	o.publish(messages, groups[:n])
	if o.s.odds(2) {
		o.crash("after a commit")
		return
	}
	o.fence, o.committed = fence, end.seq
	var emitted []emitted
	for _, g := range groups[:n] {
		emitted = append(emitted, g.outcomes...)
	}
	o.queue.remove(n)
	if o.stored != end.split {
		o.stored = end.split
		o.learn(end.split)
	}
	if o.ledgers.exposes(emitted) {
		if o.s.odds(20) {
			o.crash("before a marker alone")
		} else if fence = o.store(nil, end, o.fence); fence == 0 {
			o.end()
		} else {
			o.fence = fence
		}
	}
}

// payload is committer.renderOutcome: the tenant is over a bound now and then.
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
	data, err := payload.WithoutMessages(c, events.NoteOf(events.CodeOutcomesLimit))
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
		Owner: fmt.Sprint("owner ", o.epoch), Epoch: o.epoch, Config: cmp.Or(end.config, o.set.Compaction().Hash()), Split: end.split,
	}
	if m.Taken = o.fence == 0; m.Taken && o.found.Config != m.Config {
		m.Before = o.found.Config
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

// publish counts what was committed, and has agents and summarizers receive it.
func (o *owner) publish(messages []commitment, groups []group) {
	for _, c := range messages {
		o.s.counts.Outcomes++
		o.s.note("published %s %s %.200s", c.kind, c.address.Session, c.data)
	}
	for _, g := range groups {
		for _, t := range g.outcomes {
			switch b := t.outcome.Body.(type) {
			case *events.Forgotten:
				o.eraser.add(erasure{Erasure: erase.Erasure{Forgotten: *b, Address: t.address}, behind: b.Seq})
			case *events.Erased:
				o.s.erased(t.address, b.Seq)
			}
			for _, a := range o.s.agents {
				if a.address == t.address {
					a.receive(t.outcome, o.partition)
				}
			}
		}
	}
}

// collect is checkpointer.collect.
func (o *owner) collect() {
	d := o.ledgers.decider
	if behind := o.stored; behind.First > 0 {
		if o.s.flaw == shedBelow {
			behind.Parent = -1
		}
		if err := o.ledgers.dropOthers(behind, 1+o.s.IntN(3)); err != nil {
			o.s.violated("drop: %w", err)
		}
	}
	if some, _ := o.ledgers.changed(); o.pending != nil || !some {
		return
	}
	if o.s.flaw == changeOmitted && len(d.Dirty) > 1 {
		d.Dirty[0].Dirty = false
		d.Dirty = d.Dirty[1:]
	}
	var err error
	if o.pending, err = o.ledgers.collect(); err != nil {
		o.s.violated("collect: %w", err)
	}
	o.pending.outcomes = o.fence
	if o.s.flaw == checkpointAhead {
		o.write()
	}
}

// save is checkpointer.save: nothing is written before its position is committed.
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
		end = o.ledgers.position()
	}
	if s.flaw == outcomesSkipped {
		outcomes = o.fence
	}
	if s.frail {
		o.disk.before = o.disk.clone()
	}
	o.disk.checkpoint(kv.Position{
		Cursor: uint64(end.seq), Chain: end.chain, LastID: end.id, LastTime: end.time, Outcomes: outcomes,
	}, c.changes, s.flaw)
	s.note("checkpoint of owner %d at %d, %d ledgers", o.epoch, end.seq, len(c.changes))
	s.counts.Checkpoints++
	if d := o.ledgers.decider; s.flaw == unsavedEvicted {
		for _, k := range d.Dirty {
			k.Dirty = false
		}
		d.Dirty = nil
	}
	if o.set.config.MaxLedgers = math.MaxInt32; s.odds(50) {
		o.set.config.MaxLedgers = 0
	}
	o.set.config.MaxLedgerBytes = o.set.config.MaxLedgers
	evicted, _ := o.ledgers.stored(c)
	s.counts.Evicted += evicted
	if c.dropped {
		s.counts.Moved++
		o.eraser.add(droppedAt(uint64(end.seq)))
	}
}

// finish decides and stores everything, and erases what is to be erased. It is false when the
// owner crashed before that.
func (o *owner) finish() bool {
	o.fill()
	for more := true; more && !o.ended && o.s.found == nil; more = more || o.queued() > 0 {
		o.storeAll()
		if more = len(o.eraser.due) > 0 && !o.ended; more && !o.eraseNext() && !o.ended {
			o.s.violated("partition %d at %d: an erasure waits for a checkpoint that nothing brings", o.partition, o.ledgers.position().seq)
		}
	}
	return !o.ended
}

// storeAll decides and stores everything, checkpoint included.
func (o *owner) storeAll() {
	for more := true; more && !o.ended; more = o.committed < o.ledgers.position().seq || o.queued() > 0 { // a summary may answer a commit
		o.commit(o.queued())
		o.read(len(o.s.log))
	}
	for more := true; more && !o.ended; more = o.pending != nil || len(o.ledgers.decider.Dirty) > 0 || !o.ledgers.dropped.all && o.stored.First > 0 && o.ledgers.toFill().First == 0 {
		o.collect()
		o.save()
	}
}

func (o *owner) crash(where string) {
	o.s.note("owner %d of partition %d crashes %s", o.epoch, o.partition, where)
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

// body is what is published: the payload with its history.
func (s *simulation) body(o compaction.Outcome) []byte {
	if c, ok := o.Body.(*events.Compacted); ok && o.View != nil {
		full := *c
		full.Messages = s.render(o.View)
		o.Body = full
	}
	data, err := codec.Marshal(o.Body)
	if err != nil {
		s.violated("write outcome: %w", err)
	}
	return data
}

func (s *simulation) render(v *render.View) []codec.Raw {
	raw, _, err := render.Render(v, func(seq measure.Seq) ([]dialect.Message, error) {
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
	at   kv.Position
	rows map[events.Address]map[string][]byte

	pages     map[events.Address]uint64 // of rows that it had, up to an event at least
	before    *simulatedDisk            // as it was at the checkpoint before, where a power loss can bring it back; nil for none
	outlived  bool                      // an erasure: its worker was down
	forgetful bool                      // it loses what a ledger remembers of lineages
}

// withoutLineages is the header of a ledger without them.
func withoutLineages(data []byte) []byte {
	var h map[string]codec.Raw
	if err := codec.Unmarshal(data, &h); err != nil {
		panic(err)
	}
	delete(h, "lineages")
	data, err := codec.Marshal(h)
	if err != nil {
		panic(err)
	}
	return data
}

func newDisk() *simulatedDisk {
	return &simulatedDisk{rows: map[events.Address]map[string][]byte{}, pages: map[events.Address]uint64{}}
}

func (d *simulatedDisk) clone() *simulatedDisk {
	c := newDisk()
	c.at, c.pages, c.outlived = d.at, maps.Clone(d.pages), d.outlived
	for a, rows := range d.rows {
		c.rows[a] = maps.Clone(rows)
	}
	return c
}

// fits is recovery.mismatch: a disk may be at events that the log has lost, or at
// others of their sequences.
func (d *simulatedDisk) fits(log []decide.Event, gone map[measure.Seq]bool, marker measure.Seq) bool {
	at := measure.Seq(d.at.Cursor)
	return at == 0 || at <= marker && (gone[at] || log[at-1].Time == d.at.LastTime)
}

// Load is kv.Store.Load.
func (d *simulatedDisk) Release() {}

func (d *simulatedDisk) Load(a events.Address) ([]compaction.Row, error) {
	var out []compaction.Row
	for name, data := range d.rows[a] {
		if d.forgetful && name == "h" {
			data = withoutLineages(data)
		}
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

// After is kv.Store.After.
func (d *simulatedDisk) After(a events.Address, n int) ([]events.Address, error) {
	var out []events.Address
	for b := range d.rows {
		if b.String() > a.String() {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b events.Address) int { return cmp.Compare(a.String(), b.String()) })
	return out[:min(n, len(out))], nil
}

// checkpoint is kv.Store.Checkpoint.
func (d *simulatedDisk) checkpoint(m kv.Position, changes []kv.Change, f flaw) {
	before := d.at.Cursor
	d.at = m
	for _, c := range changes {
		if _, there := d.pages[c.Address]; !there && d.rows[c.Address] != nil {
			d.pages[c.Address] = before
		}
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
