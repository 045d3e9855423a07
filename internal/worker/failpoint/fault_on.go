//go:build faults

package failpoint

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

// Names lists the failpoints at which the fault tests end the process, in the order in which an event
// passes them.
var Names = []string{
	"taken-over",        // the partition is taken over, and not yet replayed
	"replayed",          // the ledgers are at the marker, and no new event is read
	"decided",           // an event is decided and applied, and not yet queued
	"rendered",          // a batch is rendered, and not yet sent
	"committed",         // a commit is acknowledged, and still queued
	"collected",         // a checkpoint is collected
	"before-checkpoint", // its position is committed, and it is not yet written
	"checkpointed",      // it is written
	"summarized",        // a summary is made, and not yet published
	"summary-published", // it is published, and its job not yet acknowledged
	"draining",          // reading has ended, before the last commits
}

// EraseNames lists the failpoints of an erasure, for separate fault tests.
var EraseNames = []string{
	"forgotten",      // session.forgotten is published, before the erasure
	"streams-erased", // log and outcomes are erased, ledger file and snapshots not yet
	"file-erased",    // the file is erased too, before the snapshots and session.erased
}

// SnapshotNames lists the failpoints of an upload and a restore of a snapshot, for separate fault
// tests.
var SnapshotNames = []string{
	"snapshot-begun",   // the fence is read, before the upload
	"snapshot-reading", // a part of the copy is about to be read; earlier parts are uploaded
	"snapshot-put",     // the snapshot is the newest, and the copy not yet removed
	"restoring",        // a snapshot is fetched, and not yet the file
	"restored",         // the snapshot is the file, before the replay
}

// DefectNames lists the failpoints that only an injected defect passes.
var DefectNames = []string{
	"checkpoint-ahead", // a checkpoint is written before its position is committed
}

// fuse ends the process at a failpoint.
type fuse struct {
	name string
	left atomic.Int64
}

// armed is the fuse of COMPACTD_FAILPOINT=<name>[:n]: kill -9 at the n-th pass. Before that the
// name is appended to the file COMPACTD_FAILPOINT_LOG.
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
	names := slices.Concat(Names, EraseNames, SnapshotNames, DefectNames)
	if err != nil || n < 1 || !slices.Contains(names, name) {
		panic(fmt.Sprintf("COMPACTD_FAILPOINT=%q is not <name>[:n] with a name of %q", at, names))
	}
	f := &fuse{name: name}
	f.left.Store(n)
	return f
}

// Pass ends the process if the failpoint is armed.
func Pass(name string) {
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
	select {} // until the signal arrives
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

// Injected defects that the tests must detect: COMPACTD_FAULT names one.
var defect = os.Getenv("COMPACTD_FAULT")

// IgnoreMarker makes the worker decide published events again.
func IgnoreMarker() bool { return defect == "ignore-marker" }

// CheckpointEarly makes the worker write a checkpoint before its position is committed.
func CheckpointEarly() bool { return defect == "checkpoint-early" }

var listed atomic.Uint64

// SkipDirty omits every second ledger that changes again after a checkpoint from the next one.
func SkipDirty() bool { return defect == "skip-dirty" && listed.Add(1)%2 == 0 }
