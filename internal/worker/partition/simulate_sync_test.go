package partition

import (
	"math"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"compactd/internal/testkit/figures"
)

const (
	retryAppended       flaw = "a retry of a sync appends its messages again"
	prefixLonger        flaw = "a prefix covers one message more than it has"
	formerView          flaw = "parts are of the history as published"
	otherTaken          flaw = "the history of another caller is taken for that of the session"
	baseLeftOut         flaw = "turns of a sync have no base"
	uncommittedAnswered flaw = "a sync answers what is not committed"
	lineagesLost        flaw = "a restart loses what was retracted"
	branchUnnamed       flaw = "the log does not name a branch"
	branchGoesOn        flaw = "a branch does not end with its session"
	formerAnswers       flaw = "a partition answers syncs of sessions that its child has"
)

var syncFlaws = []flaw{
	retryAppended, prefixLonger, formerView, otherTaken, baseLeftOut, uncommittedAnswered, lineagesLost, branchUnnamed, branchGoesOn, formerAnswers,
}

// Callers that sync, whatever crashes at any step of a sync, and whatever comes in between: a
// session has the history of one caller, each message once; what the parts give of a history
// is what the log contains for it; a caller receives nothing of another one; and one that
// remembers nothing is answered the same as one with a prefix.
func TestSyncSimulation(t *testing.T) {
	if *oneSeed > 0 {
		s := newSyncSimulation(*oneSeed, sound)
		s.trace = t.Logf
		if err := s.run(math.MaxInt); err != nil {
			t.Fatal(err)
		}
		return
	}
	simulateSyncs(t, min(*seeds, 500))
}

func simulateSyncs(t *testing.T, n uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var sum syncCounts
	var seeded, crashes int
	var mu sync.Mutex // guards the above
	var next, failed atomic.Uint64
	var cores sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		cores.Go(func() {
			for seed := next.Add(1); seed <= n && failed.Load() == 0; seed = next.Add(1) {
				s := newSyncSimulation(seed, sound)
				if err := s.run(math.MaxInt); err != nil {
					failed.Add(1)
					t.Errorf("%v\ngo test ./internal/worker/partition -run 'TestSyncSimulation$' -v -seed %d", err, seed)
				}
				mu.Lock()
				addCounts(&sum, s.synced)
				if s.synced.Syncs > 0 {
					seeded++
				}
				crashes += s.counts.Crashes
				mu.Unlock()
			}
		})
	}
	cores.Wait()
	v := reflect.ValueOf(sum)
	for i := range v.NumField() {
		if v.Field(i).Int() == 0 {
			t.Errorf("%s: none", v.Type().Field(i).Name)
		}
	}
	figures.Print(t, "P22", "seeds", seeded, "syncs", sum.Syncs, "crashes", crashes, "in_sync", sum.Crashed, "interleaved", sum.Nested, "replaced", sum.Replaced,
		"branches", sum.Branches, "late", sum.Late, "compared", sum.Compared, "fitted", sum.Fitted, "held_back", sum.Held, "violations", int(failed.Load()))
	figures.Print(t, "P26", "seeds", seeded, "syncs", sum.Syncs, "answered_of_children", sum.Grown, "wrong_partition", sum.Wrong, "violations", int(failed.Load()))
}

// addCounts adds the fields of x to those of sum.
func addCounts(sum *syncCounts, x syncCounts) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(x)
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

// Each defect of a sync is noticed.
func TestSyncSimulationNotices(t *testing.T) {
	const most = 3000
	missed := 0
	for _, f := range syncFlaws {
		seed, err := uint64(0), error(nil)
		for err == nil && seed < most {
			seed++
			err = runFlawed(newSyncSimulation(seed, f))
		}
		if err == nil {
			t.Errorf("%s: not noticed in %d seeds", f, most)
			missed++
			continue
		}
		t.Logf("%-60s seed %4d  %.90s", f, seed, err)
	}
	figures.Print(t, "P16", "planted", len(syncFlaws), "caught", len(syncFlaws)-missed, "missed", missed)
}
