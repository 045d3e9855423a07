//go:build faults

package scenarios_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// Workers with these rules and with those before share a log, while agents publish. They hand
// partitions back and forth: after kill -9, after a graceful stop, and with the binary replaced on
// the same directory in both directions. Every acknowledged turn is decided, nothing is published
// twice, and each version decides again what it decided, byte by byte, with what the other one
// decided applied as recorded (P10). Ledger files and snapshots of another format stop neither.
func TestFaultMixedVersions(t *testing.T) {
	t.Parallel()
	older := olderTree(t)
	f := mixedFleet{older: buildIn(t, older), newer: buildIn(t, "../../..", "-tags", "faults")}
	f.workerFleet = newWorkerFleet(t, f.older.worker(), time.Second, nil)
	for _, p := range f.workers {
		p.args = append(p.args, "--snapshot-every", "1s")
	}
	f.begin()
	a, b, c := f.workers[0], f.workers[1], f.workers[2]
	f.replace(a, syscall.SIGTERM) // one is upgraded, then two
	f.kill(b)
	f.leave(a)
	f.replace(b, syscall.SIGKILL)
	f.kill(a)
	f.leave(c)
	f.replace(a, syscall.SIGTERM) // one is downgraded while another is upgraded
	f.replace(c, syscall.SIGKILL)
	f.leave(b)
	f.kill(a)
	f.replace(b, syscall.SIGKILL) // all are downgraded, then upgraded
	f.replace(c, syscall.SIGTERM)
	f.replace(a, syscall.SIGTERM)
	f.replace(b, syscall.SIGKILL)
	f.replace(c, syscall.SIGTERM)
	f.end()
	f.report(t)
}

// mixedFleet is a fleet whose workers are of two versions.
type mixedFleet struct {
	*workerFleet
	older, newer version

	replaced, quarantined int
	again                 [2]decidedAgain // by the older version and by the newer one
}

// version is a directory with the programs of one.
type version string

func (v version) worker() string      { return filepath.Join(string(v), "worker") }
func (v version) decideAgain() string { return filepath.Join(string(v), "decideagain") }

// decidedAgain is what decideagain prints.
type decidedAgain struct {
	Rules, Events, Outcomes, Changes int
	Different                        []string
}

// replace ends a worker, and starts the other version on its directory.
func (f *mixedFleet) replace(p *process, s syscall.Signal) {
	f.t.Helper()
	f.awaitOutcomes()
	if s == syscall.SIGKILL {
		p.kill()
		f.kills++
	} else {
		p.terminate()
	}
	if p.bin == f.older.worker() {
		p.bin = f.newer.worker()
	} else {
		p.bin = f.older.worker()
	}
	p.start()
	f.replaced++
	f.awaitBalance()
	f.findQuarantined(p)
}

// findQuarantined counts the ledger files that the other version left in a format of its own.
func (f *mixedFleet) findQuarantined(p *process) {
	for line := range strings.Lines(p.log.text()) {
		if strings.Contains(line, "ledger file quarantined") {
			f.quarantined++
			if !strings.Contains(line, "file has another format") {
				f.add(notTrusted, "%s", strings.TrimSpace(line))
			}
		}
	}
}

// end stops agents and workers, and checks what is stored.
func (f *mixedFleet) end() {
	f.t.Helper()
	acks, received := f.finish()
	env := f.streamsEnv()
	f.acks, f.received = len(acks), len(received)
	f.compareLog(env, acks)
	stored := env.OutcomesBySession()
	f.compareReceived(stored, received)
	f.compareGenerations(stored)
	for i, v := range []version{f.older, f.newer} {
		out, err := exec.CommandContext(f.t.Context(), v.decideAgain(), f.url()).Output()
		if err == nil {
			err = json.Unmarshal(out, &f.again[i])
		}
		if err != nil {
			f.t.Fatalf("%s: %v", v.decideAgain(), err)
		}
		f.outcomes += f.again[i].Outcomes
		for _, d := range f.again[i].Different {
			f.add(otherBytes, "rules %d: %s", f.again[i].Rules, d)
		}
	}
}

// compareGenerations finds outcomes that are stored twice, and generations that do not follow one
// another.
func (f *mixedFleet) compareGenerations(stored map[workertest.Place][]workertest.Outcome) {
	for at, all := range stored {
		seen, last := map[string]bool{}, int64(0)
		for _, o := range all {
			if seen[o.ID] {
				f.add(twiceStored, "%s of %s", o.ID, o.Subject)
			}
			seen[o.ID] = true
			var c struct {
				Generation int64
				Compacted  bool
			}
			l, err := events.ParseOutcome(o.Subject)
			if err == nil {
				err = json.Unmarshal([]byte(o.Data), &c)
			}
			if err != nil {
				f.t.Fatal(err)
			}
			if l.Kind != events.KindCompacted || !c.Compacted {
				continue
			}
			if c.Generation != last+1 {
				f.add(otherOrder, "%s: generation %d after %d", at, c.Generation, last)
			}
			last = c.Generation
		}
	}
}

// report fails the test for every violation and prints the figures of P10.
func (f *mixedFleet) report(t *testing.T) {
	t.Helper()
	for _, v := range f.violations {
		t.Error(v)
	}
	found, older, newer := f.found(), f.again[0], f.again[1]
	figures.Print(t, "P10", "replaced", f.replaced, "kills", f.kills, "handed_over", newer.Changes, "acks", f.acks, "lost", found[lostTurn],
		"events_older", older.Events, "events_newer", newer.Events, "undecided", f.events-older.Events-newer.Events,
		"files_quarantined", f.quarantined, "outcomes", f.outcomes, "twice", found[twiceStored]+found[twiceReceived], "different", found[otherBytes], "violations", len(f.violations))
	if older.Events+newer.Events != f.events {
		t.Errorf("%d of %d events are decided by one of the versions", older.Events+newer.Events, f.events)
	}
	if older.Rules >= newer.Rules || older.Outcomes == 0 || newer.Outcomes == 0 || newer.Changes < f.replaced {
		t.Errorf("%+v, %+v: the test shows nothing", older, newer)
	}
}

// decideAgain is a program that is built in the trees of both versions. Both have it in this place.
const decideAgain = "internal/worker/testdata/decideagain"

// olderTree extracts the newest commit with the rules before the present ones.
func olderTree(t *testing.T) string {
	t.Helper()
	dir := treeBefore(t, "P10", "-G^const RulesVersion = ", "--", "../../compaction/config.go")
	if _, err := os.Stat(filepath.Join(dir, decideAgain)); errors.Is(err, fs.ErrNotExist) { // rules 5 were before it
		if err := os.CopyFS(filepath.Join(dir, decideAgain), os.DirFS("../testdata/decideagain")); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// treeBefore extracts the commit before the newest one that git log selects. It skips the test where there is no
// history, as in an archive.
func treeBefore(t *testing.T, row string, selected ...string) string {
	t.Helper()
	git := func(args ...string) ([]byte, error) { return exec.CommandContext(t.Context(), "git", args...).Output() }
	found, err := git(append([]string{"log", "-1", "--format=%H"}, selected...)...)
	commit := strings.TrimSpace(string(found)) + "^"
	if err == nil {
		_, err = git("cat-file", "-e", commit)
	}
	if err != nil {
		figures.Skipped(t, row, "no git history")
		t.Skipf("SKIPPED: there is no such commit in the git history: %v", err)
	}
	dir := t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "-C", "../../..", "archive", "--format=tar", commit)
	extract := exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	out, err := archive.Output()
	if err != nil {
		t.Fatalf("archive %s: %v", commit, err)
	}
	extract.Stdin = bytes.NewReader(out)
	if out, err := extract.CombinedOutput(); err != nil {
		t.Fatalf("extract %s: %v\n%s", commit, err, out)
	}
	return dir
}

// buildIn builds the programs of a tree.
func buildIn(t *testing.T, tree string, flags ...string) version {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"build", "-buildvcs=false", "-o", dir}, flags...)
	build := exec.CommandContext(t.Context(), "go", append(args, "./cmd/worker", "./"+decideAgain)...)
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the worker in %s: %v\n%s", tree, err, out)
	}
	return version(dir)
}
