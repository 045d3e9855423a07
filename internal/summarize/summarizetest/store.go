package summarizetest

import (
	"context"
	"sync"

	"compactd/internal/summarize/quota"
)

// store is a [quota.Store] of this process alone.
type store struct {
	mu   sync.Mutex
	kept map[string]entry
}

type entry struct {
	value    []byte
	revision uint64
}

// InMemory returns a store of this process alone.
func InMemory() quota.Store { return &store{kept: map[string]entry{}} }

func (s *store) Load(_ context.Context, tenant string) ([]byte, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.kept[tenant]
	return e.value, e.revision, nil
}

func (s *store) Save(_ context.Context, tenant string, value []byte, after uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[tenant].revision != after {
		return false, nil
	}
	s.kept[tenant] = entry{value, after + 1}
	return true, nil
}
