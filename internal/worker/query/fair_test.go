package query

import (
	"context"
	"errors"
	"testing"
)

// E7: a tenant has its places, not those of others, and gives them back. Tenants without a
// place take no memory.
func TestTenantPlaces(t *testing.T) {
	p := newTenantPlaces(2)
	one, err := p.take("a")
	if err != nil {
		t.Fatal(err)
	}
	two, err := p.await(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.take("a"); !errors.Is(err, ErrBusy) {
		t.Errorf("a third place: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrBusy)
	if _, err := p.await(ctx, "a"); !errors.Is(err, ErrBusy) {
		t.Errorf("a third place that is awaited: %v", err)
	}
	other, err := p.take("b")
	if err != nil {
		t.Fatalf("another tenant: %v", err)
	}
	one()
	if again, err := p.take("a"); err != nil {
		t.Errorf("a place that was given back: %v", err)
	} else {
		again()
	}
	two()
	other()
	if len(p.byTenant) != 0 {
		t.Errorf("%d tenants are kept", len(p.byTenant))
	}
}
