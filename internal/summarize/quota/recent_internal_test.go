package quota

import (
	"container/list"
	"fmt"
	"testing"
)

// Tenants without number take a bounded memory: the one whose last call is oldest is
// dropped first, one that keeps calling never.
func TestManyTenants(t *testing.T) {
	r := recent{map[string]*list.Element{}, list.New()}
	busy, idle := r.of("busy"), r.of("idle")
	for n := range maxTenants {
		r.of(fmt.Sprint("t", n))
		if r.of("busy") != busy {
			t.Fatalf("dropped after %d others", n)
		}
	}
	if r.of("idle") == idle || len(r.byName) != maxTenants || r.list.Len() != maxTenants {
		t.Errorf("%d others later %d are still known", maxTenants, len(r.byName))
	}
}
