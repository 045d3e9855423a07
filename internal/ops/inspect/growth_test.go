package inspect_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events/partitions"
	"compactd/internal/ops/inspect"
)

// A growth is reported with what is still to be split, and a worker that does not follow it is a problem. When each
// partition is split, it is over, and the lineage stays.
func TestGrowth(t *testing.T) {
	nc, js := dial(t, embedded.Config{})
	ensure(t, js)
	grown, err := topology.Grow(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	own(t, js, 3)
	if grown, err = grown.Split(1, 7); err == nil {
		_, err = topology.Record(t.Context(), js, grown)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := inspect.Measure(t.Context(), js, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := l.Write(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(table.String(), "\n\nthe log grows from 2 to 4 partitions; still to be split: 0\n") ||
		!strings.Contains(table.String(), " 0, to come ") || !strings.Contains(table.String(), " 1 at 7 ") {
		t.Error(table.String())
	}
	p := inspect.Target{Conn: nc}
	diagnose(t, p, "")
	own(t, js, 2)
	if grown, err = grown.Split(0, 9); err == nil {
		_, err = topology.Record(t.Context(), js, grown)
	}
	if err != nil {
		t.Fatal(err)
	}
	diagnose(t, p, "")
	r, err := inspect.Describe(t.Context(), js, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]partitions.Split{{Parent: 1, Child: 3, First: 7}}, r.Partitions[3].Lineage); diff != "" || r.Growth != nil {
		t.Errorf("%+v: %s", r.Growth, diff)
	}
}
