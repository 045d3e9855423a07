package worker

import (
	"flag"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"testing"
	"time"
)

// go test ./internal/worker -run 'Simulation$' -seed 17 -v tells the story of one
// world.
var (
	oneSeed = flag.Uint64("seed", 0, "simulate the world of this seed alone, and tell what happens in it")
	seeds   = flag.Uint64("seeds", 2000, "how many worlds to simulate")
)

// flaw is a defect planted to see that the audit notices it.
type flaw string

const (
	sound              flaw = ""
	markerIgnored      flaw = "a new owner ignores the marker"
	checkpointAhead    flaw = "a checkpoint is written before its commit"
	checkpointOfNow    flaw = "a checkpoint names a later border"
	outcomesSkipped    flaw = "a checkpoint names a later outcome"
	changeForgotten    flaw = "a changed ledger is not written"
	unsavedEvicted     flaw = "a ledger leaves memory unsaved"
	dropIgnored        flaw = "rows of an ended session stay"
	fenceOff           flaw = "the fence is off"
	tornBatch          flaw = "a batch is not atomic"
	answerGuessed      flaw = "a lost answer is taken for a refusal"
	staleSummaryTaken  flaw = "a stale summary is taken"
	rewindsNotReplayed flaw = "rewinds are not replayed"
	decidedAnew        flaw = "what was told is decided again"
	presentConfig      flaw = "what was told is applied under the present config"
	lostEventsTold     flaw = "what was told of lost events is replayed"
	lostDiskTaken      flaw = "a disk of lost events is taken"
	outcomeLost        flaw = "an outcome is not queued"
)

var flaws = []flaw{
	markerIgnored, checkpointAhead, checkpointOfNow, outcomesSkipped, changeForgotten, unsavedEvicted, dropIgnored,
	fenceOff, tornBatch, answerGuessed, staleSummaryTaken, rewindsNotReplayed, decidedAnew, presentConfig, lostEventsTold, lostDiskTaken,
	outcomeLost,
}

// Whatever dies, comes twice, late or from an owner that has lost its partition:
// each turn is applied once and in order (P3), every outcome follows from the log
// and the config it names (P4), originals are all there (P5), and a checkpoint
// holds what the log says (P10).
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

func simulate(t *testing.T, n uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // worlds are small, and gone at once
	var sum counts
	began := time.Now()
	for seed := uint64(1); seed <= n; seed++ {
		s := newSimulation(seed, sound)
		if err := s.run(math.MaxInt); err != nil {
			t.Fatalf("%v\nseed %d fails, with %d steps: go test ./internal/worker -run 'Simulation$' -v -seed %[2]d", err, seed, shortest(seed))
		}
		sum.add(s.counts)
	}
	t.Logf("%.0f seeds/s: %+v", float64(n)/time.Since(began).Seconds(), sum)
	v := reflect.ValueOf(sum)
	for i := range v.NumField() {
		if v.Field(i).Int() == 0 {
			t.Errorf("%s: none", v.Type().Field(i).Name)
		}
	}
}

// shortest is the least number of steps after which a world fails.
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
	const most = 3000
	for _, f := range flaws {
		seed, err := uint64(0), error(nil)
		for err == nil && seed < most {
			seed++
			err = runFlawed(seed, f)
		}
		if err == nil {
			t.Errorf("%s: not noticed in %d seeds", f, most)
			continue
		}
		t.Logf("%-45s seed %4d  %.90s", f, seed, err)
	}
}

// runFlawed runs a world with a defect; a panic is noticed too.
func runFlawed(seed uint64, f flaw) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return newSimulation(seed, f).run(math.MaxInt)
}
