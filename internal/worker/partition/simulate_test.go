package partition

import (
	"flag"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"compactd/internal/testkit/figures"
)

// go test ./internal/worker/partition -run 'TestSimulation$' -seed 17 -v prints what happens in one
// simulation.
var (
	oneSeed = flag.Uint64("seed", 0, "run the simulation of this seed alone, and print what happens in it")
	seeds   = flag.Uint64("seeds", 2000, "how many simulations to run")
)

// flaw is a defect planted to see that the audit notices it.
type flaw string

const (
	sound              flaw = ""
	markerIgnored      flaw = "a new owner ignores the marker"
	checkpointAhead    flaw = "a checkpoint is written before its commit"
	checkpointOfNow    flaw = "a checkpoint names a later position"
	outcomesSkipped    flaw = "a checkpoint names a later outcome"
	changeOmitted      flaw = "a changed ledger is not written"
	unsavedEvicted     flaw = "a ledger leaves memory unsaved"
	dropIgnored        flaw = "rows of an ended session stay"
	fenceOff           flaw = "the fence is off"
	tornBatch          flaw = "a batch is not atomic"
	answerGuessed      flaw = "a lost answer is taken for a refusal"
	staleSummaryTaken  flaw = "a stale summary is taken"
	rewindsNotReplayed flaw = "rewinds are not replayed"
	decidedAgain       flaw = "what was published is decided again"
	presentConfig      flaw = "what was published is applied under the present config"
	lostEventsReplayed flaw = "what was published about lost events is replayed"
	lostDiskTaken      flaw = "a disk of lost events is taken"
	epochsJoined       flaw = "no marker ends a config epoch"
	outcomeLost        flaw = "an outcome is not queued"
	editsOmitted       flaw = "edits are left out with the messages"
	splitUnknown       flaw = "a new owner does not know the split of its partition"
	splitMoved         flaw = "a child begins where the parent is now"
	parentUnread       flaw = "a child reads its own subjects alone"
	subjectTrusted     flaw = "the subject decides"
	shedEarly          flaw = "ledgers of a child leave before its split is committed"
	parentIgnored      flaw = "a child applies nothing of its parent's"
	splitMissed        flaw = "an owner without anything to replay does not know the split"
	erasedMissed       flaw = "erased events are missed in the hash"
	erasedHere         flaw = "an erasure is of one partition"
	erasureUnresumed   flaw = "an erasure that was cut off is not resumed"
	pagesLeft          flaw = "an erasure leaves the pages of the file"
	copiesLeft         flaw = "an erasure leaves the copies of the file"
	elsewhereIgnored   flaw = "a partition does not receive that another one erased a session of both"
	summaryUnfenced    flaw = "a summary is stored behind the erasure of its session"
	forgetNotRepeated  flaw = "an erasure is not repeated for a late summary"
	belowSplit         flaw = "a child is rolled back below its split"
	shedBelow          flaw = "ledgers of a child leave below the split"
	staleParent        flaw = "a child begins from what its parent decided about lost events"
	lateBranchMissed   flaw = "a branch that the log names late outlives its session"
	endingRepeated     flaw = "the end of a branch is stored again"
)

var flaws = []flaw{
	markerIgnored, checkpointAhead, checkpointOfNow, outcomesSkipped, changeOmitted, unsavedEvicted, dropIgnored,
	fenceOff, tornBatch, answerGuessed, staleSummaryTaken, rewindsNotReplayed, decidedAgain, presentConfig, lostEventsReplayed, lostDiskTaken,
	outcomeLost, editsOmitted, epochsJoined, splitUnknown, splitMoved, parentUnread, subjectTrusted, shedEarly, parentIgnored,
	splitMissed, erasedMissed, erasedHere, erasureUnresumed, pagesLeft, copiesLeft, elsewhereIgnored, summaryUnfenced, forgetNotRepeated,
	belowSplit, shedBelow, staleParent, lateBranchMissed, endingRepeated,
}

// Whatever crashes, arrives twice, late or from an owner that has lost its partition:
// each turn is applied once and in order (P3), every outcome follows from the log
// and the config it names (P4), originals are all there (P5), and a checkpoint
// holds what follows from the log (P10).
func TestSimulation(t *testing.T) {
	if *oneSeed > 0 {
		s := newSimulation(*oneSeed, sound)
		s.trace = t.Logf
		if err := s.run(math.MaxInt); err != nil {
			t.Fatal(err)
		}
		return
	}
	simulate(t, *seeds)
}

// simulate runs simulations, as many at a time as there are cores.
func simulate(t *testing.T, n uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // they are small, and gone at once
	var sum counts
	var mu sync.Mutex // guards sum and failed
	failed := map[uint64]error{}
	var next atomic.Uint64
	var cores sync.WaitGroup
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		cores.Go(func() {
			mine, seed, err := simulateSome(&next, n)
			mu.Lock()
			defer mu.Unlock()
			sum.add(mine)
			if err != nil {
				failed[seed] = err
			}
		})
	}
	cores.Wait()
	perSecond := float64(sum.Seeds) / time.Since(began).Seconds()
	for seed, err := range failed {
		t.Errorf("%v\nseed %d fails, with %d steps: go test ./internal/worker/partition -run 'TestSimulation$' -v -seed %[2]d", err, seed, shortest(seed))
	}
	v := reflect.ValueOf(sum)
	for i := range v.NumField() {
		if v.Field(i).Int() == 0 {
			t.Errorf("%s: none", v.Type().Field(i).Name)
		}
	}
	figures.Print(t, "P3", "sessions", sum.Sessions, "events", sum.Events, "duplicates", sum.Resent, "after_window", sum.Resent-sum.Duplicates,
		"gaps", sum.Gaps, "violations", len(failed))
	figures.Print(t, "P4", "events", sum.Events, "outcomes", sum.Outcomes, "summaries", sum.Summaries, "messages_omitted", sum.Omitted, "configs_changed", sum.Reconfigured, "violations", len(failed))
	figures.Print(t, "P10", "seeds", sum.Seeds, "seeds_per_s", int(perSecond), "cores", runtime.GOMAXPROCS(0), "crashes", sum.Crashes,
		"takeovers", sum.Takeovers, "checkpoints", sum.Checkpoints, "fenced", sum.Fenced, "violations", len(failed))
	figures.Print(t, "P26", "seeds", sum.Seeds, "growths", sum.Growths, "splits", sum.Splits, "children", sum.Children, "stale_subjects", sum.Stale,
		"truncated_below", sum.LostBelow, "filled", sum.Filled, "erasures", sum.Erasures, "overwritten", sum.Overwritten, "violations", len(failed))
}

// simulateSome takes seeds up to n, until there are no more or one fails.
func simulateSome(next *atomic.Uint64, n uint64) (sum counts, seed uint64, err error) {
	for seed = next.Add(1); seed <= n; seed = next.Add(1) {
		s := newSimulation(seed, sound)
		if err = s.run(math.MaxInt); err != nil {
			next.Store(n) // the others need not go on
			return sum, seed, err
		}
		sum.add(s.counts)
	}
	return sum, 0, nil
}

// shortest is the least number of steps after which a simulation fails.
func shortest(seed uint64) int {
	for n := 0; ; n++ {
		if newSimulation(seed, sound).run(n) != nil {
			return n
		}
	}
}

func (c *counts) add(x counts) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(x)
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

// Each planted defect is noticed.
func TestSimulationNotices(t *testing.T) {
	const most = 8000
	missed := 0
	for _, f := range flaws {
		seed, err := uint64(0), error(nil)
		for err == nil && seed < most {
			seed++
			err = runFlawed(newSimulation(seed, f))
		}
		if err == nil {
			t.Errorf("%s: not noticed in %d seeds", f, most)
			missed++
			continue
		}
		t.Logf("%-45s seed %4d  %.90s", f, seed, err)
	}
	figures.Print(t, "P16", "planted", len(flaws), "caught", len(flaws)-missed, "missed", missed)
}

// runFlawed runs a simulation with a defect; a panic is noticed too.
func runFlawed(s *simulation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return s.run(math.MaxInt)
}
