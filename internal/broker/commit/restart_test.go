package commit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/topology"
)

// A stored message is there after a restart, and streams keep their creation time.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	w := openEnv(t, dir, topology.Config{Partitions: 4})
	w.Turn("a", "one")
	c := w.takeOver("first")
	if err := c.Commit(t.Context(), budgets(3, "x"), Marker{Cursor: 1, LastID: "e1"}); err != nil {
		t.Fatal(err)
	}
	before, marker := w.Streams.Log.Created, w.marker(1)
	w.NC.Close()
	w.Srv.Stop()

	w = openEnv(t, dir, topology.Config{})
	if !w.Streams.Log.Created.Equal(before) {
		t.Errorf("log created %s, was %s", w.Streams.Log.Created, before)
	}
	if w.Streams.Log.Last != 1 || w.Streams.Outcomes.Last != 4 {
		t.Errorf("last sequences are %d and %d", w.Streams.Log.Last, w.Streams.Outcomes.Last)
	}
	if diff := cmp.Diff(marker, w.marker(1), cmp.AllowUnexported(Stored{})); diff != "" {
		t.Error(diff)
	}
}
