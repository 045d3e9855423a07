package kv

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Options are which file to open, and how.
type Options struct {
	// Path is the file. Its directory is created, mode 0700.
	Path string
	// Partition and Partitions are those of the log, as the file must have them
	// too. ReadOnly takes any file.
	Partition, Partitions int
	// Sync forces every checkpoint to disk before it returns (durability power).
	// Without it a checkpoint survives a crash of the process, not of the machine.
	Sync bool
	// ReadOnly takes a shared lock and changes nothing. A file that is missing,
	// empty or not to be trusted is an error then.
	ReadOnly bool
	// LockWait is how long to wait for another process to release the file.
	// Default 1 s.
	LockWait time.Duration
	// BootID names the running system. Default: that of Linux; elsewhere none,
	// and then a file that was neither closed nor synced is never trusted.
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
	o.BootID = cmp.Or(o.BootID, bootID())
	return o, errors.Join(errs...)
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
