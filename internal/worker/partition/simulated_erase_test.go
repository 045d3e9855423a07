package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"compactd/internal/broker/erase"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/decide"
)

// Sessions that are erased: the eraser of the product overwrites log, outcomes, disks and copies of the simulation, and may
// crash before each of them. Summarizers may be late with what quotes a session.

// errNotYet: the disk has no checkpoint of an erasure yet.
var errNotYet = errors.New("no checkpoint yet")

// simulatedStores are what an owner erases.
type simulatedStores struct{ o *owner }

// between is where an erasure may be cut off.
func (s simulatedStores) between() error {
	if s.o.ended {
		return errUnserved
	}
	if s.o.s.odds(5) {
		s.o.crash("while it erases")
		return errUnserved
	}
	return nil
}

// pending is erase.Pending.
func (s simulatedStores) pending(context.Context) (out []erase.Erasure, _ error) {
	if s.o.s.flaw == erasureUnresumed {
		return nil, nil
	}
	for _, c := range s.o.s.outcomes {
		if c.partition != s.o.partition || c.gone || c.kind != events.KindForgotten && c.kind != events.KindErased {
			continue
		}
		e := erase.Erasure{Address: c.address}
		if err := codec.Unmarshal(c.data, &e.Forgotten); err != nil { // both kinds have the sequence
			return nil, err
		}
		out = slices.DeleteFunc(out, func(x erase.Erasure) bool {
			return x.Address == c.address && (c.kind == events.KindForgotten || x.CausedBy == e.CausedBy)
		})
		if c.kind == events.KindForgotten {
			out = append(out, e)
		}
	}
	return out, nil
}

func (s simulatedStores) lastForget(_ context.Context, in []int) (uint64, error) {
	return s.o.s.lastForget(in), nil
}

// streams is erase.Erase.
func (s simulatedStores) streams(_ context.Context, e erase.Erasure) (outcomes, log int64, err error) {
	if err := s.between(); err != nil {
		return 0, 0, err
	}
	sim, answer := s.o.s, 0
	elsewhere := func(p int) bool { return sim.flaw == erasedHere && p != s.o.partition }
	for i, c := range sim.outcomes {
		if c.kind == events.KindForgotten && c.address == e.Address {
			answer = i
		}
	}
	held := false
	for i := range sim.outcomes[:answer] {
		c := &sim.outcomes[i]
		if c.kind == "" || c.address != e.Address || c.gone || elsewhere(c.partition) {
			continue
		}
		if newest, _ := sim.last(c.partition); newest == uint64(i+1) {
			if sim.current[c.partition] == nil {
				sim.takeOver(c.partition)
			}
			if newest, _ = sim.last(c.partition); newest == uint64(i+1) {
				held = true
				continue
			}
		}
		c.gone = true
		outcomes++
	}
	if err := s.between(); err != nil {
		return outcomes, 0, err
	}
	until := int64(math.MaxInt64)
	if n := uint64(len(sim.log)); e.Seq > n || sim.log[e.Seq-1].Kind != events.KindForget || sim.log[e.Seq-1].Address != e.Address {
		until = sim.outcomes[answer].time // the log lost the session.forget
		if uint64(sim.outcomes[answer].cause) != e.Seq {
			e.Seq = 1
		}
	}
	for _, x := range sim.log[:min(e.Seq-1, uint64(len(sim.log)))] {
		if x.Address == e.Address && !sim.gone[x.Seq] && !elsewhere(x.Partition) && x.Time <= until {
			sim.gone[x.Seq] = true
			log++
		}
	}
	sim.counts.Overwritten += int(outcomes + log)
	sim.note("%s is erased up to %d: %d events, %d outcomes", e.Session, e.Seq, log, outcomes)
	if held {
		return outcomes, log, erase.ErrNewest
	}
	return outcomes, log, s.between()
}

func (s simulatedStores) exists() bool { return true }

func (s simulatedStores) await(_ context.Context, seq measure.Seq) error {
	if measure.Seq(s.o.disk.at.Cursor) >= seq {
		return nil
	}
	if some, _ := s.o.ledgers.changed(); len(s.o.s.torn) > 0 && !some && s.o.pending == nil {
		return nil // nothing replaced a lost session.forget: the next turn would bring the checkpoint
	}
	return errNotYet
}

func (s simulatedStores) scrub() (int64, error) {
	if err := s.between(); err != nil {
		return 0, err
	}
	if s.o.s.flaw != pagesLeft {
		s.o.s.counts.Scrubbed++
		s.o.disk.scrub()
	}
	return 0, s.between()
}

func (s simulatedStores) hold(context.Context) (func(), error) { return func() {}, nil }

func (s simulatedStores) copies(context.Context) error {
	if s.o.s.flaw != copiesLeft {
		clear(s.o.s.copies)
	}
	return s.between()
}

// eraseNext does the next erasure that is due; false if that is to be done again.
func (o *owner) eraseNext() bool {
	due, ok := o.eraser.take()
	if !ok {
		return true
	}
	err := o.eraser.erase(context.Background(), due)
	if err != nil {
		due.resumed = true
		o.eraser.add(due)
	}
	return err == nil
}

// erasing reports whether there is something to erase.
func (s *simulation) erasing() bool {
	return slices.ContainsFunc(s.current, func(o *owner) bool { return o != nil && (len(o.eraser.due) > 0 || o.queued() > 0) })
}

// copy makes a snapshot of the disk.
func (o *owner) copy() {
	if o.s.current[o.partition] == o && o.disk.at.Cursor > 0 && !o.ledgers.dropsAt(o.disk.at.Cursor) {
		o.s.copies[o.partition] = o.disk.clone()
	}
}

// erased is that workers receive a session.erased: those that serve a partition which the session was in, and those that have an
// old disk of one. Some of these are down.
func (s *simulation) erased(a events.Address, seq uint64) {
	s.counts.Erasures++
	for _, id := range s.table.Path(a) {
		if s.flaw == elsewhereIgnored {
			continue
		}
		if o := s.current[id]; o != nil {
			o.set.erasedBy(o.table().At(a, seq), id, seq)
		}
		s.disks[id] = slices.DeleteFunc(s.disks[id], func(d *simulatedDisk) bool {
			d.outlived = s.odds(50)
			return !d.outlived
		})
	}
}

// unpruned reports whether a disk may have something of an erased session.
func (s *simulation) unpruned(p int, d *simulatedDisk) bool {
	return d.at.Cursor < s.lastForget(s.known().Kin(p))
}

// pruned is a disk as a worker has it that starts, or had it when it was running.
func (s *simulation) pruned(p int, d *simulatedDisk) *simulatedDisk {
	if !d.outlived && s.odds(70) {
		return d
	}
	if s.unpruned(p, d) {
		return newDisk()
	}
	d.outlived = false
	d.scrub()
	return d
}

// scrub is kv.Store.Scrub.
func (d *simulatedDisk) scrub() { clear(d.pages) }

// lastForget is erase.LastForget for all sessions.
func (s *simulation) lastForget(in []int) uint64 {
	return s.lastForgetOf(func(e decide.Event) bool { return slices.Contains(in, e.Partition) })
}

// lastErasure is Set.lastErasure.
func (s *simulation) lastErasure(in []int) uint64 {
	last := s.lastForget(in)
	for _, p := range in {
		for _, c := range slices.Backward(s.outcomes) {
			if c.partition == p && c.kind == events.KindForgotten && !c.gone {
				last = max(last, uint64(c.cause))
				break
			}
		}
	}
	return last
}

func (s *simulation) lastForgetOf(where func(decide.Event) bool) uint64 {
	for _, e := range slices.Backward(s.log) {
		if e.Kind == events.KindForget && !s.gone[e.Seq] && where(e) {
			return uint64(e.Seq)
		}
	}
	return 0
}

// simulatedJob is a job, and the partition that requested it.
type simulatedJob struct {
	*events.Job
	partition int
}

func (a *agent) forget() {
	a.s.counts.ForgetEvents++
	a.ask(events.KindForget, `"v":1`)
	a.number = 0
}

// meanwhile the operator may erase the session.
func (a *agent) meanwhile() {
	if a.s.erases && a.s.odds(4) {
		a.forget()
	}
}

// lastForget is erase.LastForgetOf.
func (a *agent) lastForget() uint64 {
	return a.s.lastForgetOf(func(e decide.Event) bool { return e.Address == a.address })
}

// summarized publishes a summary, as jobs.Pool does with erase.PublishUnlessErased: unless the session was erased since the
// job was requested.
func (a *agent) summarized(job simulatedJob, m message) {
	s := a.s
	fence := func() uint64 {
		return s.lastForgetOf(func(e decide.Event) bool { return e.Address == a.address && e.Partition == job.partition })
	}
	since := a.lastForget()
	if since > job.CausedBy.Seq {
		a.repeat(job, job.CausedBy.Seq)
		return
	}
	a.meanwhile()
	under := fence()
	if a.lastForget() > since && s.flaw != summaryUnfenced {
		return
	}
	a.meanwhile()
	if fence() != under && s.flaw != summaryUnfenced {
		return
	}
	a.publish(m)
	a.meanwhile()
	if s.erases && s.odds(20) { // it crashes
		a.undone = append(a.undone, job)
		return
	}
	a.repeat(job, since)
}

// redeliver delivers jobs again that were not acknowledged.
func (a *agent) redeliver() {
	for _, job := range a.undone {
		a.repeat(job, job.CausedBy.Seq)
	}
	a.undone = nil
}

// repeat is erase.Repeat.
func (a *agent) repeat(job simulatedJob, since uint64) {
	last := a.lastForget()
	if last <= since || a.s.flaw == forgetNotRepeated {
		return
	}
	for _, e := range a.s.log[last:] {
		if e.Address == a.address && e.Kind == events.KindSummary && !a.s.gone[e.Seq] && jobOf(e) == job.ID {
			a.s.counts.Repeated++
			if a.s.counts.Growths == 0 {
				a.s.violated("the summary at %d is behind the erasure at %d, though one subject has all erasures", e.Seq, last)
			}
			id := "late-" + job.ID
			a.publish(message{events.KindForget, id, fmt.Appendf(nil, `{"v":1,"id":%q}`, id)})
			return
		}
	}
}

// jobOf is the job that a summary answers.
func jobOf(e decide.Event) string {
	s, err := events.DecodeSummary(e.Data)
	if err != nil {
		panic(err) // the simulation published it
	}
	return s.Job
}

// wantErased checks that nothing is left of what was erased.
func (s *simulation) wantErased() error {
	last := map[events.Address]measure.Seq{}
	for _, e := range s.log {
		if e.Kind == events.KindForget {
			last[e.Address] = e.Seq
		}
	}
	if len(last) == 0 {
		return nil
	}
	causes := map[string]measure.Seq{}
	for _, a := range s.agents {
		for _, j := range a.jobs {
			causes[j.ID] = measure.Seq(j.CausedBy.Seq)
		}
	}
	for _, e := range s.log {
		from := e.Seq
		if e.Kind == events.KindSummary {
			from = causes[jobOf(e)]
		}
		if from < last[e.Address] && !s.gone[e.Seq] && !(e.Kind == events.KindSummary && s.counts.EventsLost > 0) {
			return fmt.Errorf("%s was erased at %d, and event %d (%s) quotes it", e.Address, last[e.Address], e.Seq, e.Kind)
		}
	}
	for _, c := range s.outcomes {
		if done := c.kind == "" || c.kind == events.KindForgotten || c.kind == events.KindErased; !done && !c.gone && c.cause < last[c.address] {
			return fmt.Errorf("%s was erased at %d, and the %s of event %d is left", c.address, last[c.address], c.kind, c.cause)
		}
	}
	for p, o := range s.current {
		var disks []*simulatedDisk
		if disks = append(disks, s.copies[p]); o != nil {
			disks = append(disks, o.disk)
		}
		for _, d := range disks {
			for a, forget := range last {
				if d == nil {
					continue
				}
				if at, left := d.pages[a]; left && at < uint64(forget) || d.rows[a] != nil && d.at.Cursor < uint64(forget) {
					return fmt.Errorf("%s was erased at %d, and a disk of partition %d at %d has it: copy %t, in a page %t", a, forget, p, d.at.Cursor, d == s.copies[p], left)
				}
			}
		}
	}
	return nil
}
