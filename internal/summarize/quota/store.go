package quota

import (
	"container/list"
	"context"
	"sync"
)

// Store keeps what each tenant has used, for all workers of a fleet.
type Store interface {
	// Load returns the value of a tenant, nil for none, and its revision.
	Load(ctx context.Context, tenant string) (value []byte, revision uint64, err error)
	// Save writes the value of a tenant whose revision is still after. It is false where
	// another worker has written since.
	Save(ctx context.Context, tenant string, value []byte, after uint64) (saved bool, err error)
}

// maxTenants bounds the tenants that a worker keeps something of, about 300 bytes each.
const maxTenants = 10_000

// recent are values of the tenants that were used last. It is for one goroutine at a time.
type recent[V any] struct {
	byName map[string]*list.Element
	list   *list.List // of *named[V]; the front was used last
}

type named[V any] struct {
	name  string
	value V
}

func newRecent[V any]() *recent[V] { return &recent[V]{map[string]*list.Element{}, list.New()} }

// of returns the value of a tenant, the zero value of one that is not there.
func (r *recent[V]) of(tenant string) *V {
	if e, ok := r.byName[tenant]; ok {
		r.list.MoveToFront(e)
		return &e.Value.(*named[V]).value
	}
	if r.list.Len() >= maxTenants {
		oldest := r.list.Remove(r.list.Back()).(*named[V])
		delete(r.byName, oldest.name)
	}
	n := &named[V]{name: tenant}
	r.byName[tenant] = r.list.PushFront(n)
	return &n.value
}

// memory is a store of this process alone.
type memory struct {
	mu   sync.Mutex
	kept *recent[entry]
}

type entry struct {
	value    []byte
	revision uint64
}

// InMemory returns a store of this process alone, of the 10,000 tenants that called last.
func InMemory() Store { return &memory{kept: newRecent[entry]()} }

func (m *memory) Load(_ context.Context, tenant string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.kept.of(tenant)
	return e.value, e.revision, nil
}

func (m *memory) Save(_ context.Context, tenant string, value []byte, after uint64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.kept.of(tenant)
	if e.revision != after {
		return false, nil
	}
	*e = entry{value, after + 1}
	return true, nil
}
