package storelimit

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
)

const (
	timesFree = 4
	// The last twentieth of a stream is reserved: in OUTCOMES for outcomes without messages, in SESSIONS for
	// events other than turns.
	reserveParts = 20

	lookEvery  = 2 * time.Second  // between reads of a stream's size while this worker adds to it
	restLooks  = 10               // one read in restLooks while it adds nothing
	countEvery = 10 * time.Minute // between counts of a full stream by tenant
)

// share keeps one tenant from filling a stream for the others: it holds at most timesFree times the free space.
type share struct {
	js     jetstream.JetStream
	stream string
	count  func(ctx context.Context, last uint64, found tally) error // adds the bytes of each tenant up to a sequence

	mu      sync.Mutex    // guards the fields below, and those of the limit around it
	held    int64         // bytes in the stream at the last read
	most    int64         // bound of the stream; 0 or less without a bound
	added   int64         // bytes since, which that read may lack
	pending map[int]int64 // of them: not known to be stored, by partition
	since   tally         // of bytes added since the last read began
	tenants tally         // of held and added; nil while no tenant can be over its share
	counted time.Time
}

// Run follows the size of the stream until ctx ends.
func (s *share) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%restLooks == 0 || s.adds() {
			s.look(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// adds reports whether the last read may lack bytes.
func (s *share) adds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added > 0
}

// look reads the size of the stream. If a tenant may be over its share, it also counts the bytes of
// each tenant. The next look repeats a failed read.
func (s *share) look(ctx context.Context) {
	stored := s.beginRead()
	state, err := topology.State(ctx, s.js, s.stream)
	if err != nil || !s.endRead(int64(state.Bytes), state.MaxBytes, stored) {
		return
	}
	if found := (tally{}); s.count(ctx, state.Last, found) == nil {
		s.setTenants(found)
	}
}

// beginRead returns the added bytes that are stored: a read of the stream that begins now includes them.
func (s *share) beginRead() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = tally{}
	stored := s.added
	for _, bytes := range s.pending {
		stored -= bytes
	}
	return stored
}

// endRead records a read, and reports whether the bytes of each tenant should be counted.
func (s *share) endRead(held, most, stored int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.most, s.added = held, most, s.added-stored
	if s.tenants != nil && time.Since(s.counted) < countEvery {
		return false
	}
	if !s.nearFull() {
		s.tenants = nil // it still counts bytes that have expired since
		return false
	}
	return true
}

// setTenants records the bytes of each tenant up to the last read.
func (s *share) setTenants(found tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant, bytes := range s.since { // some bytes may count twice
		found.add(tenant, bytes)
	}
	s.tenants, s.counted = found, time.Now()
}

// charge counts bytes for a tenant. The caller holds mu.
func (s *share) charge(tenant string, bytes int64) {
	s.since.add(tenant, bytes)
	s.tenants.add(tenant, bytes)
}

// nearFull reports whether a tenant can be over its share. The caller holds mu.
func (s *share) nearFull() bool { return s.most > 0 && s.held+s.added > timesFree*s.free() }

// free returns the free space above the reserve. The caller holds mu.
func (s *share) free() int64 { return max(0, s.most-s.most/reserveParts-s.held-s.added) }
