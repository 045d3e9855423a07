package kv

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Options select the file and the way to open it.
type Options struct {
	// Path is the file. Its directory is created, mode 0700.
	Path string
	// Partition and Partitions are the partition's number and count in the log. The file must have
	// been made for the same, unless ReadOnly.
	Partition, Partitions int
	// Inherited also accepts the file of the parent, from which this partition was split off. The
	// next checkpoint makes it a file of this partition.
	Inherited bool
	// Sync forces every checkpoint to disk before it returns (durability power).
	// Without it a checkpoint survives a crash of the process, not of the machine.
	Sync bool
	// ReadOnly takes a shared lock and changes nothing. A file that is missing, empty or cannot be
	// trusted is an error.
	ReadOnly bool
	// LockWait limits the wait for another process to release the file. Default 1 s.
	LockWait time.Duration
	// BootID identifies the boot of the machine. Default: the boot id of Linux; on other systems a
	// random id of this process, so that no other process trusts a file that was neither closed nor
	// synced. Only tests set it.
	BootID string
}

func (o Options) validate() (Options, error) {
	var errs []error
	if o.Path == "" {
		errs = append(errs, errors.New("path is empty"))
	}
	if !o.ReadOnly && (o.Partitions < 1 || o.Partition < 0 || o.Partition >= o.Partitions) {
		errs = append(errs, fmt.Errorf("partition %d of %d does not exist", o.Partition, o.Partitions))
	}
	if o.LockWait < 0 {
		errs = append(errs, fmt.Errorf("lock wait is %v", o.LockWait))
	}
	o.LockWait = cmp.Or(o.LockWait, time.Second)
	o.BootID = cmp.Or(o.BootID, bootID("/proc/sys/kernel/random/boot_id"))
	return o, errors.Join(errs...)
}

// process replaces the boot id on systems without one.
var process = rand.Text()

func bootID(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return process
	}
	return strings.TrimSpace(string(b))
}
