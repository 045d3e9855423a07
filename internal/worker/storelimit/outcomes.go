package storelimit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/worker/observe"
)

// A compaction copies text, so an event of 20 bytes may lead to an outcome of 6 MiB.
// Two bounds keep one tenant from filling OUTCOMES for the others:
//
//   - an hour's bytes of session.compacted, of which a quarter may come within ten
//     minutes: an embedded server keeps what it has just stored in memory for some
//     seconds. A worker grants the part of it that its share of the partitions is of
//     all;
//   - a share of OUTCOMES: at most timesFree times what is free, so that one tenant
//     takes four fifths of the stream at most, two take four ninths each, and some is
//     left for those who need little.
//
// Beyond them compactions of the tenant are published without their messages. The bytes that
// OUTCOMES holds count: a new owner of a partition reads back the sizes of the last hour, so
// neither a restart nor a hand-over begins a new one. This is part of rendering, as the size
// limit of an outcome is: no decision depends on it, and the outcome records it.

const (
	window      = time.Hour
	windowSlots = 6 // of an hour
	slotTime    = window / windowSlots

	// mostTenants bounds the tenants that are counted one by one.
	mostTenants = 256

	// The default of an hour's bytes is this part of what OUTCOMES may hold, and
	// leastHour at least.
	hourParts = 64
	leastHour = 256 << 20

	// Of an hour's bytes a slot has this part, and a few of the largest outcomes.
	burstParts = 4
	leastBurst = 16 << 20

	timesFree = 4
	// The last twentieth of OUTCOMES is for outcomes without messages.
	reserveParts = 20

	lookEvery   = 2 * time.Second  // at how full a stream is, while this worker adds to it
	restLooks   = 10               // of its looks one is taken while it adds nothing
	countEvery  = 10 * time.Minute // who holds what, while it is that full
	reportEvery = 10 * time.Minute // of one tenant that is over a bound
)

// tally counts bytes by tenant. It holds mostTenants at most: one more takes the
// place of the least, and its count, so that no tenant is ever counted too low.
type tally map[string]int64

func (t tally) add(tenant string, bytes int64) {
	if _, ok := t[tenant]; !ok && len(t) >= mostTenants {
		least, first := "", true
		for name, n := range t {
			if first || n < t[least] || n == t[least] && name < least {
				least, first = name, false
			}
		}
		t[tenant] = t[least]
		delete(t, least)
	}
	t[tenant] += bytes
}

// hour counts what the tenants of a partition have had stored in the last hour, in
// slots of ten minutes, and in the one that is running.
type hour struct {
	slots [windowSlots + 1]tally
	at    int64 // number of the slot that is running
}

func slotOf(at time.Time) int64 { return at.UnixNano() / int64(slotTime) }

// advance makes room for the slot that is running.
func (h *hour) advance(now int64) {
	for h.at = max(h.at, now-int64(len(h.slots))); h.at < now; {
		h.at++
		h.slots[h.at%int64(len(h.slots))] = nil
	}
}

// add counts bytes that were stored at a slot; what is older than an hour is not
// counted, and what the clock here has not reached yet is counted as now.
func (h *hour) add(tenant string, bytes, slot int64) {
	slot = min(slot, h.at)
	if h.at-slot >= int64(len(h.slots)) {
		return
	}
	t := &h.slots[slot%int64(len(h.slots))]
	if *t == nil {
		*t = tally{}
	}
	t.add(tenant, bytes)
}

func (h *hour) of(tenant string) (n int64) {
	for _, t := range h.slots {
		n += t[tenant]
	}
	return n
}

// ofSlot is what a tenant has had stored in the slot that is running.
func (h *hour) ofSlot(tenant string) int64 { return h.slots[h.at%int64(len(h.slots))][tenant] }

// Outcomes bounds the bytes of OUTCOMES that a tenant may store, in one worker.
type Outcomes struct {
	js         jetstream.JetStream
	perHour    int64 // as it was requested: 0 is the default, negative is no bound
	partitions func() int
	assigned   func() int // how many this worker should serve
	limited    func(observe.OutcomesLimited)

	mu       sync.Mutex    // guards the fields below
	hours    map[int]*hour // by partition: of its own, and of others as they were read
	own      map[int]bool  // partitions that this worker counts
	read     uint64        // sequence of OUTCOMES up to which the others are
	held     int64         // bytes that OUTCOMES held when it was read
	unread   int64         // bytes rendered since, which that reading may lack
	pending  map[int]int64 // of the bytes rendered those that are not known to be stored, by partition
	most     int64         // that it may hold; 0 or less without a bound
	tenants  tally         // of held; nil while no worker can be over a share
	counted  time.Time
	reported map[string]time.Time // tenants over a bound, and when that was last reported
}

// Config describes the bounds of one worker.
type Config struct {
	JS jetstream.JetStream
	// PerHour is how many bytes of session.compacted a tenant may have stored in an hour: 0
	// is the default, negative is no bound.
	PerHour    int64
	Partitions func() int // of the log, which may grow
	Assigned   func() int // how many partitions this worker should serve
	Held, Most int64      // bytes that OUTCOMES holds, and may hold; Most is 0 or less without a bound
	Limited    func(observe.OutcomesLimited)
}

// NewOutcomes returns bounds that count nothing yet.
func NewOutcomes(c Config) *Outcomes {
	return &Outcomes{
		js: c.JS, perHour: c.PerHour, partitions: c.Partitions, assigned: c.Assigned, limited: c.Limited,
		hours: map[int]*hour{}, own: map[int]bool{}, held: c.Held, most: c.Most, pending: map[int]int64{}, reported: map[string]time.Time{},
	}
}

// Run keeps up with what OUTCOMES holds until ctx ends.
func (q *Outcomes) Run(ctx context.Context) { keepLooking(ctx, q.look, q.adds) }

// adds reports bytes that the last reading may lack.
func (q *Outcomes) adds() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unread > 0
}

// keepLooking looks again and again until ctx ends.
func keepLooking(ctx context.Context, look func(context.Context), adds func() bool) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%restLooks == 0 || adds() {
			look(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads how full OUTCOMES is, and, when it is so full that a tenant may be over
// its share, who holds it. A failed read is repeated at the next look.
func (q *Outcomes) look(ctx context.Context) {
	stored := q.beginRead()
	state, err := topology.State(ctx, q.js, topology.OutcomesStream)
	if err != nil {
		return
	}
	q.mu.Lock()
	q.held, q.most = int64(state.Bytes), state.MaxBytes
	q.unread -= stored
	nearFull := q.share() >= 0
	if !nearFull {
		q.tenants = nil
	}
	due := nearFull && (q.tenants == nil || time.Since(q.counted) >= countEvery)
	q.mu.Unlock()
	if !due {
		return
	}
	found := tally{}
	if stream.ReadCompactionSizes(ctx, q.js, 1, state.Last, func(c stream.CompactionSize) { found.add(c.Tenant, c.Bytes) }) != nil {
		return
	}
	q.mu.Lock()
	q.tenants, q.counted = found, time.Now()
	q.mu.Unlock()
}

// beginRead returns how many of the unread bytes are stored, so that a reading of OUTCOMES
// that begins now includes them.
func (q *Outcomes) beginRead() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	stored := q.unread
	for _, bytes := range q.pending {
		stored -= bytes
	}
	return stored
}

// Serve counts a partition from now on, whose outcomes end at a sequence. Unless they
// have been, it reads back those of the last hour: of all partitions, since what another
// worker has granted counts where a partition is handed over.
func (q *Outcomes) Serve(ctx context.Context, partition int, fence uint64) error {
	q.mu.Lock()
	if q.own[partition] || q.read >= fence {
		q.own[partition] = true
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	before, err := stream.LastUntil(ctx, q.js, topology.OutcomesStream, time.Now().Add(-window))
	if err != nil {
		return fmt.Errorf("read outcomes of the last hour: %w", err)
	}
	state, err := topology.State(ctx, q.js, topology.OutcomesStream)
	if err != nil {
		return fmt.Errorf("read outcomes of the last hour: %w", err)
	}
	found, now := map[int]*hour{}, slotOf(time.Now())
	err = stream.ReadCompactionSizes(ctx, q.js, before+1, state.Last, func(c stream.CompactionSize) {
		if found[c.Partition] == nil {
			found[c.Partition] = &hour{at: now}
		}
		found[c.Partition].add(c.Tenant, c.Bytes, slotOf(c.Time))
	})
	if err != nil {
		return fmt.Errorf("read outcomes of the last hour: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.partitions() {
		switch {
		case q.own[id]: // it is counted as it is committed
		case found[id] == nil:
			delete(q.hours, id)
		default:
			q.hours[id] = found[id]
		}
	}
	q.own[partition], q.read = true, state.Last
	return nil
}

// Release leaves the counting of a partition to another worker. Its bytes so far go on
// counting.
func (q *Outcomes) Release(partition int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.own, partition)
	delete(q.pending, partition)
}

// Rendered counts bytes of outcomes that the next commit of a partition will store, and
// Stored that a commit has stored them. Until then no reading of OUTCOMES includes them,
// however long the commit takes.
func (q *Outcomes) Rendered(partition int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unread += bytes
	q.pending[partition] += bytes
}

// Stored is described at Rendered.
func (q *Outcomes) Stored(partition int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending[partition] -= bytes
}

// Over returns why an outcome of so many bytes goes out without its messages, "" if it
// goes out whole. It passes on once in tellEvery that a tenant is over a bound.
func (q *Outcomes) Over(tenant string, bytes int64) string {
	e := q.exceeded(tenant, bytes)
	if e.Reason != "" && q.reportDue(tenant) {
		q.limited(e)
	}
	return e.Reason
}

func (q *Outcomes) exceeded(tenant string, bytes int64) observe.OutcomesLimited {
	q.mu.Lock()
	defer q.mu.Unlock()
	lately, own, now := q.lately(tenant)
	if most, n := q.hourly(); n >= 0 {
		if lately+bytes > most {
			return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedHour, Bytes: lately, Bound: most}
		}
		if own+bytes > n {
			return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedHour, Bytes: own, Bound: n}
		}
		if n = max(n/burstParts, min(n, leastBurst)); now+bytes > n {
			return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedBurst, Bytes: now, Bound: n}
		}
	}
	held := max(q.tenants[tenant], lately) // the latter until all is counted
	if n := q.share(); n >= 0 && held+bytes > n {
		return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedShare, Bytes: held, Bound: n}
	}
	return observe.OutcomesLimited{}
}

// reportDue reports whether it is time to pass on that a tenant is over a bound.
func (q *Outcomes) reportDue(tenant string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(q.reported, func(_ string, at time.Time) bool { return now.Sub(at) >= reportEvery })
	if _, ok := q.reported[tenant]; ok || len(q.reported) >= mostTenants {
		return false
	}
	q.reported[tenant] = now
	return true
}

// Charge counts an outcome that is about to be committed.
func (q *Outcomes) Charge(partition int, tenant string, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := slotOf(time.Now())
	h := q.hours[partition]
	if h == nil {
		h = &hour{at: now}
		q.hours[partition] = h
	}
	h.advance(now)
	h.add(tenant, bytes, now)
	if q.tenants != nil {
		q.tenants.add(tenant, bytes)
	}
}

// lately is what a tenant has had stored in the last hour, as far as this worker can see,
// what of it in its own partitions, and there in the slot that is running; mu is held.
func (q *Outcomes) lately(tenant string) (n, own, slot int64) {
	now := slotOf(time.Now())
	for id, h := range q.hours {
		h.advance(now)
		n += h.of(tenant)
		if q.own[id] {
			own, slot = own+h.of(tenant), slot+h.ofSlot(tenant)
		}
	}
	return n, own, slot
}

// LastHour is what a tenant has had stored in the last hour in a partition that this worker counts.
func (q *Outcomes) LastHour(partition int, tenant string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hours[partition]
	if h == nil {
		return 0
	}
	h.advance(slotOf(time.Now()))
	return h.of(tenant)
}

// Hourly is what a tenant may have stored in an hour, in all partitions; 0 is no bound.
func (q *Outcomes) Hourly() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, _ := q.hourly()
	return max(all, 0)
}

// hourly is what a tenant may have stored in an hour, and what of it this worker
// grants, negative for no bound; mu is held.
func (q *Outcomes) hourly() (all, own int64) {
	if q.perHour < 0 {
		return -1, -1
	}
	n := cmp.Or(q.perHour, max(q.most/hourParts, leastHour))
	return n, n * int64(q.assigned()) / int64(q.partitions())
}

// share is what a tenant may hold of OUTCOMES, negative while no worker can be over it;
// mu is held.
func (q *Outcomes) share() int64 {
	if q.perHour < 0 || q.most <= 0 || q.held+q.unread <= timesFree*q.free() {
		return -1
	}
	return timesFree * q.free()
}

// free is what OUTCOMES has room for beside the reserve; mu is held.
func (q *Outcomes) free() int64 { return max(0, q.most-q.most/reserveParts-q.held-q.unread) }
