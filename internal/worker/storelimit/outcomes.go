package storelimit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/worker/observe"
)

// A compaction copies text, so an event of 20 bytes may lead to an outcome of 6 MiB.
// Two limits keep one tenant from filling OUTCOMES for the others:
//
//   - bytes of session.compacted per hour, of which a quarter may be stored within ten
//     minutes: an embedded server keeps newly stored messages in memory for some
//     seconds. A worker grants a part in proportion to its share of the partitions;
//   - a share of OUTCOMES: at most timesFree times the free space. So one tenant takes
//     at most four fifths of the stream, two take four ninths each, and some space is
//     left for small tenants.
//
// Beyond these limits compactions of the tenant are published without their messages. Stored bytes
// count: a new owner of a partition reads back the sizes of the last hour, so neither a restart
// nor a hand-over resets the count. The limits are part of rendering, like the size limit of an
// outcome: no decision depends on them, and the outcome records them.

const (
	window      = time.Hour
	windowSlots = 6 // of an hour
	slotTime    = window / windowSlots

	// mostTenants limits the tenants that are counted one by one.
	mostTenants = 256

	// The default limit per hour is one hourParts-th of the bound of OUTCOMES, at least
	// leastHour.
	hourParts = 64
	leastHour = 256 << 20

	// The limit per slot is one burstParts-th of the limit per hour, at least leastBurst:
	// a few of the largest outcomes.
	burstParts = 4
	leastBurst = 16 << 20

	reportEvery = 10 * time.Minute // between reports about one tenant over a limit
)

// tally counts bytes by tenant. It holds at most mostTenants: a further tenant replaces the one with
// the lowest count and takes over its count, so that no tenant is counted too low. A nil tally counts nothing.
type tally map[string]int64

func (t tally) add(tenant string, bytes int64) {
	if t == nil {
		return
	}
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

// hour counts the stored bytes of a partition's tenants in the last hour, in slots of ten minutes,
// and in the current slot.
type hour struct {
	slots [windowSlots + 1]tally
	at    int64 // number of the current slot
}

func slotOf(at time.Time) int64 { return at.UnixNano() / int64(slotTime) }

// advance moves to the current slot.
func (h *hour) advance(now int64) {
	for h.at = max(h.at, now-int64(len(h.slots))); h.at < now; {
		h.at++
		h.slots[h.at%int64(len(h.slots))] = nil
	}
}

// add counts bytes stored in a slot. It ignores bytes older than an hour. Bytes of a slot ahead of the
// local clock count in the current slot.
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

// ofSlot returns the bytes of a tenant in the current slot.
func (h *hour) ofSlot(tenant string) int64 { return h.slots[h.at%int64(len(h.slots))][tenant] }

// Outcomes limits the bytes that a tenant may store in OUTCOMES, in one worker.
type Outcomes struct {
	share            // its mutex also guards the fields behind the blank line
	perHour    int64 // as configured: 0 means the default, negative no limit
	partitions func() int
	assigned   func() int // number that this worker should serve
	limited    func(observe.OutcomesLimited)

	hours    map[int]*hour        // by partition: counted for own ones, read for others
	own      map[int]bool         // partitions that this worker counts
	read     uint64               // sequence of OUTCOMES up to which the other partitions were read
	reported map[string]time.Time // tenants over a limit, and the time of the last report
}

// Config configures the limits of one worker.
type Config struct {
	JS jetstream.JetStream
	// PerHour limits the bytes of session.compacted of a tenant per hour: 0 means the default,
	// negative no limit.
	PerHour    int64
	Partitions func() int // of the log, which may grow
	Assigned   func() int // number of partitions that this worker should serve
	Held, Most int64      // size and bound of OUTCOMES, in bytes; Most is 0 or less without a bound
	Limited    func(observe.OutcomesLimited)
}

// NewOutcomes returns limits that have counted nothing yet.
func NewOutcomes(c Config) *Outcomes {
	return &Outcomes{
		share: share{
			js: c.JS, stream: topology.OutcomesStream, held: c.Held, most: c.Most, pending: map[int]int64{}, since: tally{},
			count: func(ctx context.Context, last uint64, found tally) error {
				return stream.ReadCompactionSizes(ctx, c.JS, 1, last, func(o stream.CompactionSize) { found.add(o.Tenant, o.Bytes) })
			},
		},
		perHour: c.PerHour, partitions: c.Partitions, assigned: c.Assigned, limited: c.Limited,
		hours: map[int]*hour{}, own: map[int]bool{}, reported: map[string]time.Time{},
	}
}

// Run follows the size of OUTCOMES until ctx ends, if there is a limit.
func (q *Outcomes) Run(ctx context.Context) {
	if q.perHour >= 0 {
		q.share.Run(ctx)
	}
}

// Serve begins to count a partition, whose outcomes end at the sequence fence. Unless already done, it
// reads back the outcomes of the last hour, of all partitions: bytes that another worker
// granted count after a hand-over.
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
		case q.own[id]: // Charge counts it
		case found[id] == nil:
			delete(q.hours, id)
		default:
			q.hours[id] = found[id]
		}
	}
	q.own[partition], q.read = true, state.Last
	return nil
}

// Release ends the counting of a partition, which another worker continues. The bytes counted so far
// remain.
func (q *Outcomes) Release(partition int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.own, partition)
	delete(q.pending, partition)
}

// Rendered counts bytes of outcomes that the next commit of a partition will store. Until [Outcomes.Stored],
// no read of OUTCOMES is taken to include them, however long the commit takes.
func (q *Outcomes) Rendered(partition int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.added += bytes
	q.pending[partition] += bytes
}

// Stored records that a commit stored bytes of Rendered.
func (q *Outcomes) Stored(partition int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending[partition] -= bytes
}

// Over returns the reason to publish an outcome without its messages, or "". It reports a tenant over
// a limit once every reportEvery.
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
	if q.perHour < 0 {
		return observe.OutcomesLimited{}
	}
	lately, own, now := q.lately(tenant)
	most, n := q.hourly()
	if lately+bytes > most {
		return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedHour, Bytes: lately, Bound: most}
	}
	if own+bytes > n {
		return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedHour, Bytes: own, Bound: n}
	}
	if n = max(n/burstParts, min(n, leastBurst)); now+bytes > n {
		return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedBurst, Bytes: now, Bound: n}
	}
	held := max(q.tenants[tenant], lately) // lately counts until OUTCOMES is counted
	if n = timesFree * q.free(); q.nearFull() && held+bytes > n {
		return observe.OutcomesLimited{Tenant: tenant, Reason: observe.OmittedShare, Bytes: held, Bound: n}
	}
	return observe.OutcomesLimited{}
}

// reportDue reports whether a report about a tenant over a limit is due.
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

// Charge counts an outcome before its commit.
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
	q.charge(tenant, bytes)
}

// lately returns the bytes of a tenant in the last hour that this worker has counted or read: in all
// partitions, in its own, and in its own in the current slot. The caller holds mu.
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

// LastHour returns the bytes of a tenant in the last hour, in a partition that this worker counts.
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

// Hourly returns the limit of a tenant per hour, in all partitions; 0 means no limit.
func (q *Outcomes) Hourly() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, _ := q.hourly()
	return max(all, 0)
}

// hourly returns the limit of a tenant per hour, and this worker's part of it; negative means no limit.
// The caller holds mu.
func (q *Outcomes) hourly() (all, own int64) {
	if q.perHour < 0 {
		return -1, -1
	}
	n := cmp.Or(q.perHour, max(q.most/hourParts, leastHour))
	return n, n * int64(q.assigned()) / int64(q.partitions())
}
