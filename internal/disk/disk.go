package disk

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Space returns what is free for every user, and the size, of the disk that holds
// path, or will when path is created; in bytes.
func Space(path string) (free, size uint64, err error) {
	var st unix.Statfs_t
	for {
		err = unix.Statfs(path, &st)
		parent := filepath.Dir(path)
		if !errors.Is(err, unix.ENOENT) || parent == path {
			break
		}
		path = parent
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read free space of %s: %w", path, err)
	}
	block := uint64(st.Bsize)
	return uint64(st.Bavail) * block, st.Blocks * block, nil //nolint:unconvert // the types of the fields depend on the platform
}

// Scarce reports whether less is free than a fiftieth, or than 512 MiB where that
// is less.
func Scarce(free, size uint64) bool { return free < min(size/50, 512<<20) }
