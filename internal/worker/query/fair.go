package query

import (
	"context"
	"sync"
)

// tenantPlaces bound what one tenant does at once, so that it leaves places to others.
type tenantPlaces struct {
	most int

	mu       sync.Mutex // guards byTenant
	byTenant map[string]*tenantPlace
}

// tenantPlace are the places of a tenant, while one is used or awaited.
type tenantPlace struct {
	places
	users int
}

func newTenantPlaces(most int) *tenantPlaces {
	return &tenantPlaces{most: most, byTenant: map[string]*tenantPlace{}}
}

// take returns what gives a place back; [ErrBusy] when all of the tenant are taken.
func (p *tenantPlaces) take(tenant string) (release func(), err error) {
	of := p.use(tenant)
	if !of.take() {
		p.leave(tenant)
		return nil, ErrBusy
	}
	return func() { of.release(); p.leave(tenant) }, nil
}

// await is take that waits for a place until ctx ends, and returns why it did.
func (p *tenantPlaces) await(ctx context.Context, tenant string) (release func(), err error) {
	of := p.use(tenant)
	if err := of.await(ctx); err != nil {
		p.leave(tenant)
		return nil, err
	}
	return func() { of.release(); p.leave(tenant) }, nil
}

func (p *tenantPlaces) use(tenant string) *tenantPlace {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.byTenant[tenant]
	if of == nil {
		of = &tenantPlace{places: make(places, p.most)}
		p.byTenant[tenant] = of
	}
	of.users++
	return of
}

func (p *tenantPlaces) leave(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := p.byTenant[tenant]; of.users == 1 {
		delete(p.byTenant, tenant)
	} else {
		of.users--
	}
}
