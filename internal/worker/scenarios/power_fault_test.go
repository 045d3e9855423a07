//go:build faults

package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// P2: the machine loses power while agents publish. Under --durability power nothing that was
// acknowledged or published is lost. Under process something is, or the test would show
// nothing.
func TestFaultPower(t *testing.T) {
	t.Parallel()
	bin := buildWorker(t)
	for _, durability := range []string{"power", "process"} {
		t.Run(durability, func(t *testing.T) {
			o := outageOfPower{killing: killing{sessions: 12}, rounds: 4, seed: 1, durability: durability}
			o.run(t, bin)
			o.report(t)
		})
	}
}

// The same under power, in many rounds.
func TestSoakPower(t *testing.T) {
	o := outageOfPower{killing: killing{sessions: 12}, rounds: 60, seed: 2, durability: "power"}
	o.run(t, buildWorker(t))
	o.report(t)
}

// outageOfPower is one run: a worker with its server on a file system of its own.
type outageOfPower struct {
	killing
	rounds     int
	seed       uint64
	durability string
}

func (o *outageOfPower) run(t *testing.T, bin string) {
	v := newVolume(t)
	p := &process{t: t, bin: bin, data: filepath.Join(v.dir, "data"), listen: workertest.FreePort(t)}
	p.args = []string{"--listen", p.listen, "--partitions", "4", "--durability", o.durability}
	p.start()
	t.Cleanup(p.kill)
	p.awaitReady()
	v.sync() // the creation of the streams is not tested
	sub := newSubscriber(t, p.url())
	agents := newAgentFleet(t, p.url(), o.sessions, 300)
	r := rand.New(rand.NewPCG(o.seed, 2))
	for range o.rounds {
		sub.await(sub.count() + 20 + r.IntN(20))
		workertest.Pause(t, time.Duration(r.IntN(800))*time.Millisecond)
		p.freeze() // nothing is acknowledged after the power is gone
		v.losePower()
		p.kill()
		v.remount()
		p.start()
		p.awaitReady()
		o.kills++
	}
	sub.await(sub.count() + 1)
	acks := agents.stop()
	awaitDecided(t, p.url())
	p.terminate()
	if dir := filepath.Join(p.data, "nats"); o.durability == "power" {
		o.audit(t, dir, acks, sub.stop())
	} else {
		o.acks = len(acks)
		o.compareLog(workertest.Open(t, embedded.Config{Dir: copyDir(t, dir)}, topology.Config{}), acks)
	}
}

func (o *outageOfPower) report(t *testing.T) {
	t.Helper()
	found := o.found()
	lost := found[lostTurn]
	if o.durability == "process" {
		figures.Print(t, "P2", "rounds", o.kills, "acks", o.acks, "lost", lost)
		if lost == 0 {
			t.Error("no turn was lost without syncs: the test shows nothing")
		}
		return
	}
	for _, v := range o.violations {
		t.Error(v)
	}
	figures.Print(t, "P2", "rounds", o.kills, "acks", o.acks, "lost", lost, "outcomes", o.outcomes, "received", o.received,
		"received_and_lost", found[notCommitted], "violations", len(o.violations))
	if o.acks == 0 || o.outcomes == 0 || o.received == 0 {
		t.Error("a count is zero: the test shows nothing")
	}
}

// freeze stops the process and waits until none of its threads runs any more.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	workertest.Until(p.t, "every thread is stopped", p.frozen)
}

// frozen reports whether every thread of the process is stopped.
func (p *process) frozen() bool {
	p.t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		p.t.Fatalf("no threads of the worker: %v", err)
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// ext4Shutdown makes an ext4 file system drop what it has not written yet, its journal too, as
// a loss of power does: EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32).
const (
	ext4Shutdown   = 0x8004587d
	ext4NoLogFlush = 2
)

// volume is an ext4 file system in a file. Synced data survives losePower, since the file's
// own pages stay.
type volume struct {
	t          *testing.T
	image, dir string
}

// newVolume skips the test where the system does not allow it.
func newVolume(t *testing.T) *volume {
	t.Helper()
	v := &volume{t: t, image: filepath.Join(t.TempDir(), "image"), dir: t.TempDir()}
	err := v.try("truncate", "-s", "512M", v.image)
	if err == nil {
		err = v.try("mkfs.ext4", "-q", "-F", v.image)
	}
	if err == nil {
		err = v.mount()
	}
	if err != nil {
		figures.Skipped(t, "P2", "needs root, loop devices and mkfs.ext4")
		t.Skipf("SKIPPED: no disk that can lose power on this system: %v", err)
	}
	t.Cleanup(v.unmount)
	return v
}

func (v *volume) mount() error { return v.try("mount", "-o", "loop,commit=5", v.image, v.dir) }

func (v *volume) try(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), workertest.WaitLimit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (v *volume) sync() {
	v.t.Helper()
	if err := v.try("sync", "-f", v.dir); err != nil {
		v.t.Fatal(err)
	}
}

func (v *volume) losePower() {
	v.t.Helper()
	d, err := os.Open(v.dir)
	if err != nil {
		v.t.Fatal(err)
	}
	err = unix.IoctlSetPointerInt(int(d.Fd()), ext4Shutdown, ext4NoLogFlush)
	if err := errors.Join(err, d.Close()); err != nil {
		v.t.Fatal(err)
	}
}

// unmount waits for the file system to be free: a process that was killed may hold
// it for a moment.
func (v *volume) unmount() {
	err := v.try("umount", v.dir)
	for n := 0; err != nil && n < 100; n++ {
		time.Sleep(50 * time.Millisecond)
		err = v.try("umount", v.dir)
	}
	if err != nil {
		v.t.Errorf("the volume at %s is still mounted: %v", v.dir, err)
	}
}

// remount mounts the volume again after a power loss. Another test's process with a namespace of
// its own may hold the mount before: the new one is without power too, until that process ends.
func (v *volume) remount() {
	v.t.Helper()
	for end := time.Now().Add(workertest.WaitLimit); ; {
		v.unmount()
		if err := v.mount(); err != nil {
			v.t.Fatal(err)
		}
		err := os.Chmod(v.dir, 0o700)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.EIO) || time.Now().After(end) {
			v.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
