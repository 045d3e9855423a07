package observe

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// starting logs the acquisitions of a start in one line, and later ones in a line each. `worker
// inspect` shows the details of each partition.
type starting struct {
	log zerolog.Logger

	mu    sync.Mutex // guards the fields below
	held  []PartitionAcquired
	ended bool
}

// acquired logs an acquisition, but holds it back until the start ends.
func (s *starting) acquired(e PartitionAcquired) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held = append(s.held, e); s.ended {
		s.flush()
	}
}

// end ends the start, and writes the held acquisitions.
func (s *starting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.flush()
}

// write writes the held acquisitions, before a line that must come after them.
func (s *starting) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *starting) flush() {
	held := s.held
	s.held = nil
	switch len(held) {
	case 0:
	case 1:
		e := held[0]
		s.log.Info().Int(fieldPartition, e.Partition).Uint64(fieldEpoch, e.Epoch).Uint64(fieldCursor, uint64(e.Cursor)).
			Uint64(fieldSnapshot, uint64(e.Snapshot)).Int(fieldEvents, e.Replayed).Int(fieldSessions, e.Sessions).Dur(fieldTook, e.Took).Msg("partition acquired")
	default:
		logAllAcquired(s.log, held)
	}
}

// logAllAcquired logs the numbers of the partitions, the highest epoch, the sums, and the
// longest time.
func logAllAcquired(log zerolog.Logger, all []PartitionAcquired) {
	var epoch uint64
	var restored, events, sessions int
	var took time.Duration
	ids := make([]int, len(all))
	for i, e := range all {
		ids[i] = e.Partition
		epoch, took = max(epoch, e.Epoch), max(took, e.Took)
		events, sessions = events+e.Replayed, sessions+e.Sessions
		if e.Snapshot > 0 {
			restored++
		}
	}
	log.Info().Str(fieldAcquired, ranges(ids)).Int(fieldCount, len(all)).Uint64(fieldEpoch, epoch).Int(fieldRestored, restored).
		Int(fieldEvents, events).Int(fieldSessions, sessions).Dur(fieldTook, took).Msg("partitions acquired")
}

// ranges formats numbers in order, with consecutive ones as a range: 0-3,6.
func ranges(ids []int) string {
	ids = slices.Sorted(slices.Values(ids))
	var b strings.Builder
	for i := 0; i < len(ids); {
		last := i
		for last+1 < len(ids) && ids[last+1] == ids[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ids[i]))
		if last > i {
			b.WriteString("-" + strconv.Itoa(ids[last]))
		}
		i = last + 1
	}
	return b.String()
}
