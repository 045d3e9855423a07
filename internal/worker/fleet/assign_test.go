package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Every partition is held once, by a member, and all have the same number, or one
// more; the order in which the members are known changes nothing.
func TestAssign(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,12}`), 1, 12, rapid.ID).Draw(t, "members")
		first, growths := rapid.IntRange(1, 50).Draw(t, "first"), rapid.IntRange(0, 3).Draw(t, "growths")
		partitions := first << growths
		got := assign(members, first, partitions)
		var all []int
		for _, name := range members {
			if n, share := len(got[name]), partitions/len(members); n != share && (n != share+1 || partitions%len(members) == 0) {
				t.Fatalf("%s of %v holds %d of %d", name, members, n, partitions)
			}
			all = append(all, got[name]...)
		}
		slices.Sort(all)
		for p := range partitions {
			if len(all) != partitions || all[p] != p {
				t.Fatalf("held are %v", all)
			}
		}
		for before := first; before < partitions; before *= 2 { // a growth moves none that was there
			for p, name := range holders(assign(members, first, before)) {
				if !slices.Contains(got[name], p) {
					t.Fatalf("partition %d of %d leaves %s", p, before, name)
				}
			}
		}
		other := slices.Concat(members, members[:1]) // one is named twice
		rand.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if diff := cmp.Diff(got, assign(other, first, partitions)); diff != "" {
			t.Fatalf("another order, another answer:\n%s", diff)
		}
	})
	if got := assign(nil, 8, 8); len(got) > 0 {
		t.Errorf("without members: %v", got)
	}
}

// 64 partitions over 5 workers are balanced to 1.25 max/mean, and when a worker
// joins or leaves little more moves than has to.
func TestAssignMovesLittle(t *testing.T) {
	t.Parallel()
	const partitions, rounds = 64, 200
	worst, moved, needed := 0.0, 0, 0
	for round := range rounds {
		members := make([]string, 5)
		for i := range members {
			members[i] = fmt.Sprintf("worker-%d-%d", round, i)
		}
		five, four := holders(assign(members, partitions, partitions)), holders(assign(members[:4], partitions, partitions))
		for _, held := range assign(members, partitions, partitions) {
			worst = max(worst, float64(len(held))*5/partitions)
		}
		for p := range partitions {
			if five[p] != four[p] {
				moved++
			}
			if five[p] == members[4] {
				needed++
			}
		}
	}
	fmt.Printf("assign: %d partitions over 5 workers: max/mean %.3f; a fifth joins or leaves: %.1f move, %.1f have to\n",
		partitions, worst, float64(moved)/rounds, float64(needed)/rounds)
	if worst > 1.25 {
		t.Errorf("max/mean is %.3f", worst)
	}
	if float64(moved) > 2*float64(needed) {
		t.Errorf("%d moved in %d rounds, %d had to", moved, rounds, needed)
	}
}

func holders(assigned map[string][]int) map[int]string {
	out := map[int]string{}
	for name, held := range assigned {
		for _, p := range held {
			out[p] = name
		}
	}
	return out
}
