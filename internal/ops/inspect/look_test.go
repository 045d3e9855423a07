package inspect_test

import (
	"strings"
	"testing"

	"compactd/internal/broker/commit"
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
	shown(true, "  a")
	release(t, js, own(t, js, 1))
	shown(false, "none, last a")
}
