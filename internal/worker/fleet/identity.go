package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nuid"
	"golang.org/x/sys/unix"

	"compactd/internal/events"
	"compactd/internal/kv"
)

// identityFile holds the name of a worker, beside its ledgers. A process that starts on
// the same directory is the same member: it finds its files, and may take the leases of the
// previous process, since the lock shows that that one has ended.
const identityFile = "worker.id"

// identityWait limits the wait for a process that is about to end.
const identityWait = time.Second

// openIdentity returns the name, made at the first start, and a func that releases the
// lock. Without a directory the name is new each time.
func openIdentity(ctx context.Context, dir string) (name string, release func(), err error) {
	if dir == "" {
		return nuid.Next(), func() {}, nil
	}
	path := filepath.Join(dir, identityFile)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("open %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := kv.Lock(ctx, f, unix.LOCK_EX, identityWait); err != nil {
		return "", nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, f.Close()))
	}
	if name, err = readIdentity(f); err != nil {
		return "", nil, fmt.Errorf("read %s: %w", path, errors.Join(err, f.Close()))
	}
	return name, func() { _ = f.Close() }, nil // ends the lock; no write is pending
}

// readIdentity reads the name, or makes one if the file is empty or incomplete.
func readIdentity(f *os.File) (string, error) {
	b := make([]byte, 65) // a name has at most 64 bytes, and a newline follows
	n, _ := f.ReadAt(b, 0)
	if name, ok := strings.CutSuffix(string(b[:n]), "\n"); ok && events.ValidID(name) {
		return name, nil
	}
	name := nuid.Next()
	if err := f.Truncate(0); err != nil {
		return "", err
	}
	_, err := f.WriteAt([]byte(name+"\n"), 0)
	return name, err
}
