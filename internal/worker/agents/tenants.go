package agents

import (
	"sync"

	"compactd/internal/events"
	"compactd/internal/worker/query"
)

// Bounds of what is done at once. One tenant never has more than its share.
const (
	maxBodyBytes       = 96 << 20            // of events that are read or published
	maxTenantBodyBytes = events.MaxSyncBytes // so that the largest one has a place
	maxTenantEvents    = 256                 // that wait for their outcome
	maxTenantReads     = 16
)

// tenants counts what is under way, of all and of each.
type tenants struct {
	mu    sync.Mutex // guards the fields below
	bytes int
	each  map[string]*use
}

// use is what one tenant has under way.
type use struct{ bytes, events, reads int }

// take counts what a request needs, and returns what gives it back. It is refused beyond a
// bound: it never waits, so that clients that are slow keep no others waiting.
func (t *tenants) take(tenant string, need use) (giveBack func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.each[tenant]
	if u == nil {
		u = &use{}
	}
	if t.bytes+need.bytes > maxBodyBytes || u.bytes+need.bytes > maxTenantBodyBytes ||
		u.events+need.events > maxTenantEvents || u.reads+need.reads > maxTenantReads {
		return nil, query.ErrBusy
	}
	if t.each == nil {
		t.each = map[string]*use{}
	}
	t.each[tenant] = u
	t.add(u, need, 1)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.add(u, need, -1); *u == (use{}) {
			delete(t.each, tenant)
		}
	}, nil
}

func (t *tenants) add(u *use, need use, sign int) {
	t.bytes += sign * need.bytes
	u.bytes += sign * need.bytes
	u.events += sign * need.events
	u.reads += sign * need.reads
}
