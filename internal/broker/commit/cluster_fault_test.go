//go:build faults

package commit_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/cluster"
	"compactd/internal/testkit/figures"
)

// recoveryGoal is how long a commit should take at most during which the leader crashes
// or is cut off. It is printed, and fails no test: seconds depend on the machine.
const recoveryGoal = 12 * time.Second

// A cluster loses the leader of OUTCOMES in the middle of commits, by crashes and by
// a cut, again and again: every commit is stored once, in order, and goes on
// (P13).
func TestFaultClusterLosesLeader(t *testing.T) {
	w := cluster.StartStreams(t)
	c, reopened := w.TakeOver("a"), 0
	var want []string
	var recovery [2][]time.Duration
	next := func() time.Duration {
		began := time.Now()
		batch := 1 + len(want)%3
		var messages []commit.Message
		for range batch {
			want = append(want, strconv.Itoa(len(want)))
			messages = append(messages, cluster.Message(want[len(want)-1]))
		}
		marker := commit.Marker{Cursor: uint64(len(want))}
		err := c.Commit(t.Context(), messages, marker)
		for errors.Is(err, commit.ErrDiverged) { // a new leader may answer before it has applied all it has: begin again, as a worker does
			reopened++
			var found commit.Stored
			if c, found, err = commit.TakeOver(t.Context(), w.Connect(), w.Claim("a")); err == nil && found.Cursor < marker.Cursor {
				err = c.Commit(t.Context(), messages, marker)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	for round := range 6 {
		for range 100 {
			next()
		}
		i := w.Leader(t.Context(), w.JS, topology.OutcomesStream)
		lose, back := w.Kill, w.Restart
		if round%2 == 1 {
			lose, back = w.Cut, w.Heal
		}
		lost := make(chan struct{})
		go func() { lose(i); close(lost) }()
		var reading sync.WaitGroup
		reading.Go(func() { // a read waits for the next leader; one whose connection ended does not
			if _, err := w.Read(); jsapi.HasCode(err, jsapi.CodeNoLeader, jsapi.CodeNotLeader) {
				t.Error(err)
			}
		})
		var slowest time.Duration
		for under, more := true, 100; more > 0; {
			slowest = max(slowest, next()) // one of them is under way as it happens
			select {
			case <-lost:
				under = false
			default:
			}
			if !under {
				more--
			}
		}
		reading.Wait()
		recovery[round%2] = append(recovery[round%2], slowest.Round(time.Millisecond))
		back(i)
		w.AwaitReplicas()
	}
	different := 0
	if diff := cmp.Diff(want, w.Stored()); diff != "" {
		t.Errorf("stored is not what was committed (-committed +stored):\n%s", diff)
		different = 1
	}
	figures.Print(t, "P13", "kills", len(recovery[0]), "cuts", len(recovery[1]), "outcomes", len(want), "different", different,
		"recovery_ms", slices.Max(slices.Concat(recovery[0], recovery[1])).Milliseconds())
	t.Logf("%d outcomes; slowest commit around a kill %v, around a cut %v; reopened %d times; retries: %s", len(want), recovery[0], recovery[1], reopened, w.Retries())
	t.Logf("slowest of all %v, goal %s", slices.Max(slices.Concat(recovery[0], recovery[1])), recoveryGoal)
}

// Owners that race for a partition of a cluster get answers that a single server
// never gives; what is stored is still of one owner at a time, in the order of
// their epochs.
func TestFaultClusterRace(t *testing.T) {
	w := cluster.StartStreams(t)
	var mu sync.Mutex
	committed := map[string]bool{}
	fenced := 0
	var owners, done atomic.Int64
	var racing sync.WaitGroup
	for o := range 4 {
		nc := w.Connect()
		racing.Go(func() {
			defer done.Add(1)
			for turn := range 20 {
				owner := fmt.Sprintf("o%d-%d", o, turn)
				c, _, err := commit.TakeOver(t.Context(), nc, w.Claim(owner))
				if err != nil {
					t.Error(err)
					return
				}
				mine := owners.Add(1)
				for n := range 40 { // or until another one has it
					for turn%2 == 0 && n == 20 && owners.Load() == mine && done.Load() < 3 {
						time.Sleep(time.Millisecond) // a takeover waits for commits: let it come
					}
					text := fmt.Sprintf("%d %s %d", c.Epoch(), owner, n)
					err := c.Commit(t.Context(), []commit.Message{cluster.Message(text), cluster.Message(text + "b")}, commit.Marker{Cursor: uint64(n)})
					mu.Lock()
					if err == nil {
						committed[text], committed[text+"b"] = true, true
					} else {
						fenced++
					}
					mu.Unlock()
					if err != nil {
						if !errors.Is(err, commit.ErrFenced) {
							t.Error(err)
						}
						break
					}
				}
			}
		})
	}
	racing.Wait()
	var epoch uint64
	stored := w.Stored()
	for _, text := range stored {
		var e uint64
		if _, err := fmt.Sscan(text, &e); err != nil {
			t.Fatal(err)
		}
		if e < epoch {
			t.Errorf("%q is stored after epoch %d", text, epoch)
		}
		if epoch = e; !committed[text] {
			t.Errorf("%q is stored, or stored twice, and was not acknowledged", text)
		}
		delete(committed, text)
	}
	if len(committed) > 0 {
		t.Errorf("%d outcomes were acknowledged and are not stored", len(committed))
	}
	t.Logf("%d outcomes of 80 owners, %d fenced; retries: %s", len(stored), fenced, w.Retries())
	if fenced == 0 {
		t.Error("no owner was fenced: there was no race")
	}
}
