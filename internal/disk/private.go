package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ExposedError reports that other users of the machine may read or change a directory.
type ExposedError struct {
	Path string
	Mode fs.FileMode
}

func (e *ExposedError) Error() string {
	return fmt.Sprintf("directory %s has mode %04o: other users of this machine may read or change the conversations in it", e.Path, e.Mode.Perm())
}

// Hint is what to do.
func (e *ExposedError) Hint() string {
	return fmt.Sprintf("Run: chmod 700 %s. Where its mode is given, as with a mounted volume, name a directory below it: the worker creates that with mode 0700.", e.Path)
}

// Private returns an [*ExposedError] for the first of some directories that users other
// than its owner and group may enter. Directories that do not exist are passed over.
func Private(paths ...string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("check who may read %s: %w", path, err)
		}
		if info.IsDir() && info.Mode().Perm()&0o007 != 0 {
			return &ExposedError{path, info.Mode()}
		}
	}
	return nil
}
