package disk_test

import (
	"path/filepath"
	"testing"

	"compactd/internal/disk"
)

// A directory that is not there yet has the room of the one it will be made in.
func TestSpace(t *testing.T) {
	dir := t.TempDir()
	_, want, err := disk.Space(dir)
	if err != nil || want == 0 {
		t.Fatalf("size %d, %v", want, err)
	}
	free, size, err := disk.Space(filepath.Join(dir, "a", "b"))
	if err != nil || size != want || free > size {
		t.Errorf("%d of %d free, %v; want of %d", free, size, err, want)
	}
	if _, _, err := disk.Space("a\x00b"); err == nil {
		t.Error("a path that cannot be has room")
	}
}

func TestScarce(t *testing.T) {
	for _, c := range []struct {
		free, size uint64
		want       bool
	}{
		{0, 0, false}, // nothing is known
		{0, 8 << 20, true},
		{8<<20/50 - 1, 8 << 20, true},
		{8 << 20 / 50, 8 << 20, false},
		{512<<20 - 1, 1 << 40, true},
		{512 << 20, 1 << 40, false},
	} {
		if got := disk.Scarce(c.free, c.size); got != c.want {
			t.Errorf("%d of %d: %t", c.free, c.size, got)
		}
	}
}
