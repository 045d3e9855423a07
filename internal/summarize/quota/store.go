package quota

import (
	"container/list"
	"context"
)

// Store keeps the used share of each tenant, for all workers of a fleet.
type Store interface {
	// Load returns the value of a tenant, nil for none, and its revision.
	Load(ctx context.Context, tenant string) (value []byte, revision uint64, err error)
	// Save writes the value of a tenant if its revision is still after. It is false if another worker has
	// written since.
	Save(ctx context.Context, tenant string, value []byte, after uint64) (saved bool, err error)
}

// maxTenants bounds the tenants in a worker's memory, about 300 bytes each.
const maxTenants = 10_000

// recent has the tenants used last. It is for one goroutine at a time.
type recent struct {
	byName map[string]*list.Element
	list   *list.List // of *tenant; the front was used last
}

// of returns a tenant, a new one if it is missing.
func (r *recent) of(name string) *tenant {
	if e, ok := r.byName[name]; ok {
		r.list.MoveToFront(e)
		return e.Value.(*tenant)
	}
	if r.list.Len() >= maxTenants {
		delete(r.byName, r.list.Remove(r.list.Back()).(*tenant).name)
	}
	t := &tenant{name: name}
	r.byName[name] = r.list.PushFront(t)
	return t
}
