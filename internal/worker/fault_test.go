//go:build faults

package worker_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/worker"
	"compactd/internal/worker/failpoint"
)

// random stands for a kill at a moment of chance.
const random = "random"

// passings bounds the number of passings of a failpoint before it kills: small
// where it is passed once for a partition, or seldom; 3 where nothing is said.
var passings = map[string]int{
	"decided": 300, "rendered": 80, "committed": 80, "collected": 6, "before-checkpoint": 6, "checkpointed": 6,
	"summarized": 5, "summary-published": 5, "taken-over": 4, "replayed": 4, "draining": 2,
}

// A worker with its server in one process is killed at random and at every
// failpoint, while a fleet publishes whose sessions are summarized. What was
// acknowledged is in the log (P1); what was published, and every job, is what the log
// alone says, once (P4); every job has its result; no ledger file is lost. What is
// told next is the same from checkpoints and from zero (P10).
func TestFaultKills(t *testing.T) {
	t.Parallel()
	f := faults{killing: killing{sessions: 24}, plan: killPlan(200), seed: 1}
	f.run(t, buildWorker(t, "-tags", "faults"))
	f.report(t)
}

// The same for as long as SOAK sets, with other moments and more of them.
func TestSoakKills(t *testing.T) {
	t.Parallel()
	bin := buildWorker(t, "-tags", "faults")
	sum := faults{fired: map[string]int{}}
	rounds, end := 0, time.Now().Add(soakTime(t))
	for seed := uint64(2); rounds == 0 || time.Now().Before(end); seed++ {
		f := faults{killing: killing{sessions: 24}, plan: killPlan(80), seed: seed}
		f.run(t, bin)
		f.report(t)
		sum.kills, sum.acks, sum.outcomes = sum.kills+f.kills, sum.acks+f.acks, sum.outcomes+f.outcomes
		sum.violations = append(sum.violations, f.violations...)
		rounds++
	}
	figures.Print(t, "P1", "rounds", rounds, "kills", sum.kills, "acks", sum.acks, "outcomes", sum.outcomes,
		"lost", sum.found()[lostTurn], "violations", len(sum.violations))
}

// killPlan has so many kills or a few more: one at random and one at a failpoint in
// turns, at every failpoint equally often.
func killPlan(kills int) (plan []string) {
	for len(plan) < kills {
		for _, name := range failpoint.Names {
			plan = append(plan, random, name)
		}
	}
	return plan
}

// report fails the test for every violation and prints the figures of the run.
func (f *faults) report(t *testing.T) {
	t.Helper()
	for _, v := range f.violations {
		t.Error(v)
	}
	unfired := 0
	for _, name := range failpoint.Names {
		if f.fired[name] == 0 {
			t.Errorf("failpoint %s never fired", name)
			unfired++
		}
	}
	found := f.found()
	figures.Print(t, "P1", "kills", f.kills, "random", f.kills-f.planned, "before_up", f.early, "at_failpoints", f.planned,
		"failpoints", len(f.fired), "failpoints_unfired", unfired, "acks", f.acks, "lost", found[lostTurn],
		"heard", f.heard, "heard_twice", found[twiceHeard], "files_quarantined", found[notTrusted],
		"checks", f.acks+f.outcomes+f.heard+f.jobs+2*f.next, "violations", len(f.violations))
	figures.Print(t, "P4", "events", f.events, "summaries", len(f.results), "outcomes", f.outcomes, "jobs", f.jobs,
		"twice", found[twiceStored], "missing", found[missing], "different", found[otherBytes]+found[otherOrder]+found[notInLog],
		"jobs_without_result", found[unanswered])
	figures.Print(t, "P10", "from_checkpoints", f.kept, "from_zero", f.anew, "outcomes", f.next, "different", found[otherReplay])
	if f.acks == 0 || len(f.results) == 0 || f.jobs == 0 || f.heard == 0 || f.next == 0 || f.kept >= f.anew {
		t.Error("the test saw nothing of something")
	}
}

// Workers with a planted defect are found out within a few kills.
func TestFaultsAreNoticed(t *testing.T) {
	t.Parallel()
	bin := buildWorker(t, "-tags", "faults")
	planted, missed := 0, 0
	for _, c := range []struct {
		defect string
		plan   []string
		signs  []string // one of them must be found
	}{
		{"ignore-marker", []string{random, "committed", random}, []string{twiceStored}},
		{"checkpoint-early", []string{"checkpointed", random, "checkpointed", "checkpointed"}, []string{notTrusted}},
		{"forget-dirty", []string{"checkpointed:12", random, "checkpointed:12"}, []string{notInLog, missing, otherBytes}},
	} {
		t.Run(c.defect, func(t *testing.T) {
			f := faults{killing: killing{sessions: 12, env: []string{"COMPACTD_FAULT=" + c.defect}}, plan: c.plan, seed: 2, control: true}
			f.run(t, bin)
			found := f.found()
			t.Logf("planted %s: %d kills, %d outcomes stored; found %v", c.defect, f.kills, f.outcomes, found)
			if planted++; !slices.ContainsFunc(c.signs, func(s string) bool { return found[s] > 0 }) {
				t.Errorf("the defect was not noticed: none of %q", c.signs)
				missed++
			}
			if found[lostTurn] > 0 {
				t.Error("the planted defect loses no turns, yet the check says so")
			}
		})
	}
	figures.Print(t, "P16", "planted", planted, "caught", planted-missed, "missed", missed)
}

// faults is one run over a plan.
type faults struct {
	killing
	plan    []string // failpoints, with :n where it matters, and random
	seed    uint64
	control bool // only the check of what is stored

	planned    int            // kills at failpoints
	fired      map[string]int // by failpoint
	next       int            // outcomes compared between a start from checkpoints and one from zero
	kept, anew int            // events that they replayed
}

func (f *faults) run(t *testing.T, bin string) {
	data, log := t.TempDir(), filepath.Join(t.TempDir(), "fired")
	p := &process{t: t, bin: bin, data: data, listen: freePort(t), env: f.env}
	p.args = []string{"--listen", p.listen, "--partitions", "4", "--snapshot-every", "0"}
	if !f.control {
		p.args[5] = "1s"
	}
	p.start()
	t.Cleanup(p.kill)
	p.awaitReady()
	e := newEars(t, p.url())
	agents := newFleet(t, p.url(), f.sessions, 200)
	e.await(1)
	f.end(p)
	r := rand.New(rand.NewPCG(f.seed, 1))
	for n, name := range f.plan {
		p.env = f.env
		if name != random {
			at := name
			if !strings.Contains(at, ":") {
				at = fmt.Sprintf("%s:%d", name, 1+r.IntN(cmp.Or(passings[name], 3)))
			}
			p.env = slices.Concat(f.env, []string{"COMPACTD_FAILPOINT=" + at, "COMPACTD_FAILPOINT_LOG=" + log})
		}
		p.start()
		switch {
		case name == random && n%6 == 4: // before it is up, often
			f.early++
			pause(t, time.Duration(r.IntN(300))*time.Millisecond)
		case name == random:
			p.awaitReady()
			e.await(e.count() + 1 + r.IntN(40))
			pause(t, time.Duration(r.IntN(1500))*time.Millisecond) // over the next checkpoint, often
		case name == "draining":
			p.awaitReady()
			e.await(e.count() + 1 + r.IntN(40))
			p.signal(syscall.SIGTERM)
			fallthrough
		default:
			p.awaitKilled(name)
			f.planned++
		}
		f.end(p)
	}
	p.env = f.env
	p.start()
	p.awaitReady()
	e.await(e.count() + 1)
	acks := agents.stop()
	f.fired = linesOf(t, log)
	if !f.control {
		f.end(p) // before all is decided, and behind the checkpoints
		f.goOn(t, data, acks)
		p.start()
		p.awaitReady()
		awaitJobs(t, p.url())
		f.answered = true
	}
	settle(t, p.url())
	p.terminate()
	f.look(p)
	f.audit(t, filepath.Join(data, "nats"), acks, e.stop())
}

// end kills the process, if it still runs, and looks at what it printed.
func (f *faults) end(p *process) {
	p.kill()
	f.kills++
	f.look(p)
}

// look finds ledger files that were quarantined: kill -9 leaves none that cannot be
// trusted, and no other is used here.
func (f *faults) look(p *process) {
	for line := range strings.Lines(p.log.text()) {
		if strings.Contains(line, "ledger file quarantined") {
			f.add(notTrusted, "%s", strings.TrimSpace(line))
		}
	}
}

// awaitKilled waits until the process has ended itself at a failpoint.
func (p *process) awaitKilled(name string) {
	p.t.Helper()
	select {
	case err := <-p.exited:
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			p.t.Fatalf("the worker ended before %s: %v\n%s", name, err, p.log.text())
		}
		p.cmd = nil
	case <-time.After(waitLimit):
		p.t.Fatalf("failpoint %s does not fire\n%s", name, p.log.text())
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// linesOf counts the lines of a file.
func linesOf(t *testing.T, path string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(data)) {
		out[strings.TrimSpace(line)]++
	}
	return out
}

// awaitJobs waits until every job is ended, and what came of it is decided: jobs
// of a process that was killed are given out again after half a minute.
func awaitJobs(t *testing.T, url string) {
	t.Helper()
	nc, js := dial(t, url)
	defer nc.Close()
	deadline := time.Now().Add(2 * waitLimit)
	for quiet := false; !quiet; {
		settle(t, url)
		quiet = true
		for _, lane := range events.Lanes {
			c, err := js.Consumer(t.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
			if err != nil {
				t.Fatal(err)
			}
			if i := c.CachedInfo(); i.NumPending > 0 || i.NumAckPending > 0 {
				quiet = false
			}
		}
		if !quiet && time.Now().After(deadline) {
			t.Fatal("jobs do not end")
		}
		pause(t, 50*time.Millisecond)
	}
	settle(t, url)
}

// goOn publishes further turns to a copy of the data, and lets one worker decide
// on them that starts from the checkpoints, and one that has lost them (P10).
func (f *faults) goOn(t *testing.T, data string, acks []ack) {
	t.Helper()
	data = copyOf(t, data)
	w := openWorld(t, embedded.Config{Dir: filepath.Join(data, "nats")}, topology.Config{})
	taken := map[string]int{}
	for _, a := range acks {
		taken[a.subject]++
	}
	for n := range 20 { // the first of them may be known
		for s := range f.sessions {
			subject := subjectOfAgent(s)
			if _, err := w.js.Publish(t.Context(), subject, agentTurn(s, taken[subject]+1+n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.stop()
	anew := copyOf(t, data)
	var kept, forgotten map[place][]outcome
	kept, f.kept = f.resume(t, data, true)
	forgotten, f.anew = f.resume(t, anew, false)
	for a := range merged(kept, forgotten) {
		f.next += len(kept[a])
		if !slices.Equal(kept[a], forgotten[a]) {
			f.add(otherReplay, "%s: %d outcomes from checkpoints, %d from zero", a, len(kept[a]), len(forgotten[a]))
		}
	}
}

// resume decides on what is left in a directory and returns all that is published then: from
// its checkpoints again, or from the log alone.
func (f *faults) resume(t *testing.T, data string, again bool) (told map[place][]outcome, replayed int) {
	t.Helper()
	w := openWorld(t, embedded.Config{Dir: filepath.Join(data, "nats")}, topology.Config{})
	defer w.stop()
	w.config = w.onlyConfig()
	if again {
		w.ledgers = filepath.Join(data, "ledgers")
	}
	before := w.toldBySession()
	var n atomic.Int64
	stop := w.run("next", worker.Listener{
		PartitionAcquired: func(a worker.PartitionAcquired) { n.Add(int64(a.Replayed)) },
		Quarantined:       func(s worker.Quarantined) { t.Errorf("ledger file quarantined: %v", s.Reason) },
	})
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	told = w.toldBySession()
	if again { // and all of it is what the log contains
		w.wantAsLogSays()
	}
	for a := range told {
		told[a] = told[a][len(before[a]):]
	}
	return told, int(n.Load())
}
