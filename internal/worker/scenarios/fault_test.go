//go:build faults

package scenarios_test

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
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// random is a kill at a random moment, in a plan of failpoints.
const random = "random"

// maxHits bounds how often a failpoint is passed before it kills: small where it is passed
// once for a partition, or rarely; 3 for those that are not listed.
var maxHits = map[string]int{
	"decided": 300, "rendered": 80, "committed": 80, "collected": 6, "before-checkpoint": 6, "checkpointed": 6,
	"summarized": 5, "summary-published": 5, "taken-over": 4, "replayed": 4, "draining": 2,
}

// A worker with its server in one process is killed at random and at every failpoint, while
// agents publish and their sessions are summarized. Acknowledged turns are in the log (P1).
// Outcomes and jobs are those that follow from the log alone, each once (P4). Every job has
// its result, and no ledger file is lost. The next outcomes are the same from checkpoints
// and from zero (P10).
func TestFaultKills(t *testing.T) {
	t.Parallel()
	f := faults{killing: killing{sessions: 24}, plan: killPlan(200), seed: 1}
	f.run(t, buildWorker(t, "-tags", "faults"))
	f.report(t)
}

// The same for as long as SOAK sets, with other seeds.
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

// killPlan has at least so many kills, at random and at a failpoint alternately, at every
// failpoint equally often.
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
		"received", f.received, "received_twice", found[twiceReceived], "files_quarantined", found[notTrusted],
		"checks", f.acks+f.outcomes+f.received+f.jobs+2*f.next, "violations", len(f.violations))
	figures.Print(t, "P4", "events", f.events, "summaries", len(f.results), "outcomes", f.outcomes, "jobs", f.jobs,
		"twice", found[twiceStored], "missing", found[missing], "different", found[otherBytes]+found[otherOrder]+found[notInLog],
		"jobs_without_result", found[unanswered])
	figures.Print(t, "P10", "from_checkpoints", f.fromCheckpoints, "from_zero", f.fromZero, "outcomes", f.next, "different", found[otherReplay])
	if f.acks == 0 || len(f.results) == 0 || f.jobs == 0 || f.received == 0 || f.next == 0 || f.fromCheckpoints >= f.fromZero {
		t.Error("a count is zero: the test shows nothing")
	}
}

// A planted defect of the worker is found within ten kills.
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
		{"checkpoint-early", []string{random, "checkpoint-ahead", random}, []string{notTrusted}},
		{"skip-dirty", []string{"checkpointed:12", random, "checkpointed:12"}, []string{notInLog, missing, otherBytes}},
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
				t.Error("the planted defect loses no turns, and the check reports lost turns")
			}
		})
	}
	figures.Print(t, "P16", "planted", planted, "caught", planted-missed, "missed", missed)
}

// faults is one run over a plan.
type faults struct {
	killing
	plan    []string // failpoints, some with :n for the nth pass, and random
	seed    uint64
	control bool // checks only what is stored

	planned                   int            // kills at failpoints
	fired                     map[string]int // by failpoint
	next                      int            // outcomes compared between a start from checkpoints and one from zero
	fromCheckpoints, fromZero int            // events that those starts replayed
}

func (f *faults) run(t *testing.T, bin string) {
	data, log := t.TempDir(), filepath.Join(t.TempDir(), "fired")
	p := &process{t: t, bin: bin, data: data, listen: workertest.FreePort(t), env: f.env}
	p.args = []string{"--listen", p.listen, "--partitions", "4", "--snapshot-every", "0"}
	if !f.control {
		p.args[5] = "1s"
	}
	p.start()
	t.Cleanup(p.kill)
	p.awaitReady()
	sub := newSubscriber(t, p.url())
	agents := newAgentFleet(t, p.url(), f.sessions, 200)
	sub.await(1)
	f.kill(p)
	r := rand.New(rand.NewPCG(f.seed, 1))
	for n, name := range f.plan {
		p.env = f.env
		if name != random {
			at := name
			if !strings.Contains(at, ":") {
				at = fmt.Sprintf("%s:%d", name, 1+r.IntN(cmp.Or(maxHits[name], 3)))
			}
			p.env = slices.Concat(f.env, []string{"COMPACTD_FAILPOINT=" + at, "COMPACTD_FAILPOINT_LOG=" + log})
		}
		p.start()
		switch {
		case name == random && n%6 == 4: // often before it is ready
			f.early++
			workertest.Pause(t, time.Duration(r.IntN(300))*time.Millisecond)
		case name == random:
			p.awaitReady()
			sub.await(sub.count() + 1 + r.IntN(40))
			workertest.Pause(t, time.Duration(r.IntN(1500))*time.Millisecond) // often beyond the next checkpoint
		case name == "draining":
			p.awaitReady()
			sub.await(sub.count() + 1 + r.IntN(40))
			p.signal(syscall.SIGTERM)
			fallthrough
		default:
			p.awaitKilled(name)
			f.planned++
		}
		f.kill(p)
	}
	p.env = f.env
	p.start()
	p.awaitReady()
	sub.await(sub.count() + 1)
	acks := agents.stop()
	f.fired = linesOf(t, log)
	if !f.control {
		f.kill(p) // before everything is decided, with events after the checkpoints
		f.compareStarts(t, data, acks)
		p.start()
		p.awaitReady()
		awaitJobs(t, p.url())
		f.resultsDue = true
	}
	awaitDecided(t, p.url())
	p.terminate()
	f.findQuarantined(p)
	f.audit(t, filepath.Join(data, "nats"), acks, sub.stop())
}

// kill kills the process, if it still runs, and reads its log.
func (f *faults) kill(p *process) {
	p.kill()
	f.kills++
	f.findQuarantined(p)
}

// findQuarantined finds quarantined ledger files in the log of a process: kill -9 damages
// none, so each of them is a violation.
func (f *faults) findQuarantined(p *process) {
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
	case <-time.After(3 * workertest.WaitLimit): // a dozen checkpoints may come before
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

// awaitJobs waits until every job has ended and its result is decided. Jobs of a process that
// was killed are delivered again after half a minute.
func awaitJobs(t *testing.T, url string) {
	t.Helper()
	nc, js := workertest.Dial(t, url)
	defer nc.Close()
	deadline, before := time.Time{}, uint64(0)
	for {
		awaitDecided(t, url)
		left := uint64(0)
		for _, lane := range events.Lanes {
			c, err := js.Consumer(t.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
			if err != nil {
				t.Fatal(err)
			}
			i := c.CachedInfo()
			left += i.NumPending + uint64(i.NumAckPending)
		}
		if left == 0 {
			break
		}
		if left != before {
			deadline, before = time.Now().Add(2*workertest.WaitLimit), left
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs do not end", left)
		}
		workertest.Pause(t, 50*time.Millisecond)
	}
	awaitDecided(t, url)
}

// compareStarts publishes further turns to a copy of the data. It compares the outcomes of a
// worker that starts from the checkpoints with those of one without them (P10).
func (f *faults) compareStarts(t *testing.T, data string, acks []ack) {
	t.Helper()
	data = copyDir(t, data)
	env := workertest.Open(t, embedded.Config{Dir: filepath.Join(data, "nats")}, topology.Config{})
	taken := map[string]int{}
	for _, a := range acks {
		taken[a.subject]++
	}
	for n := range 20 { // the first of them may be in the log already
		for s := range f.sessions {
			subject := subjectOfAgent(s)
			if _, err := env.JS.Publish(t.Context(), subject, agentTurn(s, taken[subject]+1+n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	env.Stop()
	second := copyDir(t, data)
	var fromCheckpoints, fromZero map[workertest.Place][]workertest.Outcome
	fromCheckpoints, f.fromCheckpoints = f.resume(t, data, true)
	fromZero, f.fromZero = f.resume(t, second, false)
	for a := range merged(fromCheckpoints, fromZero) {
		f.next += len(fromCheckpoints[a])
		if !slices.Equal(fromCheckpoints[a], fromZero[a]) {
			f.add(otherReplay, "%s: %d outcomes from checkpoints, %d from zero", a, len(fromCheckpoints[a]), len(fromZero[a]))
		}
	}
}

// resume lets a worker decide the rest of the log in a directory and returns the new outcomes.
// The worker starts from the checkpoints there, or from the log alone.
func (f *faults) resume(t *testing.T, data string, again bool) (outcomes map[workertest.Place][]workertest.Outcome, replayed int) {
	t.Helper()
	env := workertest.Open(t, embedded.Config{Dir: filepath.Join(data, "nats")}, topology.Config{})
	defer env.Stop()
	env.Config, env.OutcomeBytes = env.OnlyConfig(), -1 // no bound, as in the processes
	if again {
		env.Ledgers = filepath.Join(data, "ledgers")
	}
	before := env.OutcomesBySession()
	var n atomic.Int64
	stop := env.Run("next", observe.Listener{
		PartitionAcquired: func(a observe.PartitionAcquired) { n.Add(int64(a.Replayed)) },
		Quarantined:       func(s observe.Quarantined) { t.Errorf("ledger file quarantined: %v", s.Reason) },
	})
	env.AwaitDecided()
	stop()
	outcomes = env.OutcomesBySession()
	if again { // and all outcomes follow from the log
		env.WantRedecided()
	}
	for a := range outcomes {
		outcomes[a] = outcomes[a][len(before[a]):]
	}
	return outcomes, int(n.Load())
}
