package partition

import (
	"os"
	"testing"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/topology"
)

// A partition that is opened again restores a snapshot while the upload of its former opening goes on.
func TestRestoreDuringUpload(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})}
	dir := t.TempDir()
	set, _, stop := env.serve("a", 0, dir)
	env.snapshot(set, 0, env.turn("s", 1))
	stop()
	path := set.fileOptions(0).Path
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	const upload = "a copy that is read"
	if err := os.WriteFile(path+copySuffix, []byte(upload), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, at, _ := env.serve("b", 0, dir); at.Snapshot == 0 {
		t.Errorf("no snapshot is restored: %+v", at)
	}
	if data, err := os.ReadFile(path + copySuffix); err != nil || string(data) != upload {
		t.Errorf("the copy is %.40q, %v", data, err)
	}
}
