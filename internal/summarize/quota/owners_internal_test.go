package quota

import (
	"fmt"
	"testing"
)

// Tenants without number take a bounded memory, and one that keeps calling is not dropped.
func TestManyTenants(t *testing.T) {
	q := New(Limits{CallsPerMinute: 1}, nil)
	busy := q.of("busy")
	for n := range 2 * maxTenants {
		q.of(fmt.Sprint("t", n))
		if q.of("busy") != busy {
			t.Fatalf("dropped after %d others", n)
		}
	}
	if q.owners.CleanUp(); q.owners.EstimatedSize() > maxTenants {
		t.Errorf("%d tenants are still known", q.owners.EstimatedSize())
	}
}
