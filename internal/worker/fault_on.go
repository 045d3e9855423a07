//go:build faults

package worker

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// failpoints are the places where the fault tests end the process, in the order
// in which an event passes them.
var failpoints = []string{
	"taken-over",        // the partition is ours, nothing is replayed
	"replayed",          // the ledgers stand at the marker, nothing new is read
	"decided",           // an event is decided and applied, and not yet queued
	"rendered",          // a batch is rendered, and not yet sent
	"committed",         // a commit is acknowledged, and still queued
	"collected",         // a checkpoint is collected
	"before-checkpoint", // its border is committed, and it is not yet written
	"checkpointed",      // it is written
	"summarized",        // a summary is made, and not yet published
	"summary-published", // it is published, and its job not yet acknowledged
	"draining",          // nothing is read any more, and the last commits are to come
}

// eraseFailpoints are those on the way of an erasure, which fault tests of their own
// pass.
var eraseFailpoints = []string{
	"forgotten",      // session.forgotten is told, and nothing erased
	"streams-erased", // log and outcomes are erased, ledger file and snapshots not
	"file-erased",    // the file is too, and snapshots are not; nothing is confirmed
}

// snapshotFailpoints are those on the way of a snapshot to the store and back, for the
// same.
var snapshotFailpoints = []string{
	"snapshot-begun",   // the fence is read, and nothing uploaded
	"snapshot-reading", // a part of the copy is about to be read: all before it is uploaded
	"snapshot-put",     // it is the newest, and the copy not yet removed
	"restoring",        // a snapshot is fetched, and not yet the file
	"restored",         // it is the file, and nothing is replayed
}

// fuse ends the process at a failpoint.
type fuse struct {
	name string
	left atomic.Int64
}

// armed is what COMPACTD_FAILPOINT=<name>[:n] asks for: kill -9 at the n-th
// passing. Before that the name is added to the file COMPACTD_FAILPOINT_LOG.
var armed = arm(os.Getenv("COMPACTD_FAILPOINT"))

func arm(at string) *fuse {
	if at == "" {
		return nil
	}
	name, times, counted := strings.Cut(at, ":")
	n, err := int64(1), error(nil)
	if counted {
		n, err = strconv.ParseInt(times, 10, 64)
	}
	if err != nil || n < 1 || !slices.Contains(slices.Concat(failpoints, eraseFailpoints, snapshotFailpoints), name) {
		panic(fmt.Sprintf("COMPACTD_FAILPOINT=%q is not <name>[:n] with a name of %q, %q or %q", at, failpoints, eraseFailpoints, snapshotFailpoints))
	}
	f := &fuse{name: name}
	f.left.Store(n)
	return f
}

// failpoint is passed by the code that the tests want to end at.
func failpoint(name string) {
	if armed == nil || armed.name != name || armed.left.Add(-1) != 0 {
		return
	}
	err := note(os.Getenv("COMPACTD_FAILPOINT_LOG"), name)
	if err == nil {
		err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if err != nil {
		panic(err)
	}
	select {} // until it is done
}

func note(path, line string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// Planted defects, to see that the tests notice them: COMPACTD_FAULT names one.
var defect = os.Getenv("COMPACTD_FAULT")

// ignoreMarker: the worker decides again what it has told already.
func ignoreMarker() bool { return defect == "ignore-marker" }

// checkpointEarly: a checkpoint is written before its border is committed.
func checkpointEarly() bool { return defect == "checkpoint-early" }

var listed atomic.Uint64

// forgetDirty: every second ledger that changes again after a checkpoint is not
// listed for the next.
func forgetDirty() bool { return defect == "forget-dirty" && listed.Add(1)%2 == 0 }
