package inspect_test

import (
	"strings"
	"testing"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/embedded"
	"compactd/internal/ops/inspect"
)

// A partition whose worker is gone is reported from one that is served.
func TestLeased(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	claim := commit.Claim{Partition: 1, Owner: "a", LogCreated: 1}
	if _, _, err := commit.TakeOver(t.Context(), nc, claim); err != nil {
		t.Fatal(err)
	}
	shown := func(leased bool, last string) {
		t.Helper()
		r, err := inspect.Describe(t.Context(), js, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var table strings.Builder
		if err := r.Write(&table); err != nil {
			t.Fatal(err)
		}
		if got := r.Partitions[1].Leased; got != leased || !strings.HasSuffix(table.String(), last+"\n") {
			t.Errorf("leased %t, want %t and %q:\n%s", got, leased, last, table.String())
		}
	}
	shown(false, "none, last a")
	lease, err := coord.NewLeases(js, time.Minute).Acquire(t.Context(), 1, coord.Holder{Member: "m", Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	shown(true, "  a")
	if err := coord.NewLeases(js, time.Minute).Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	shown(false, "none, last a")
}
