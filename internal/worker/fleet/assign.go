package fleet

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
)

// claim is a pair of a partition and a member that could hold it.
type claim struct {
	score             uint64
	member, partition int
}

// assign assigns partitions to members by rendezvous hashing with bounded load. Every pair of member and
// partition has a score. The pairs are taken from the highest score down while the member has capacity;
// all members get the same number of partitions, or one more. So
// all workers with the same members compute the same assignment, and few
// partitions move when a member joins or leaves. Without members no partition is assigned.
//
// In a log that grew from first partitions, the partitions of each growth are assigned after the earlier ones, so that
// no partition moves while it is split.
func assign(members []string, first, partitions int) map[string][]int {
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	if len(members) == 0 {
		return nil
	}
	out := make(map[string][]int, len(members))
	for from, upTo := 0, first; upTo <= partitions; from, upTo = upTo, 2*upTo {
		assignBetween(members, from, upTo, out)
	}
	return out
}

// assignBetween assigns a range of partitions. Lower partitions are already assigned.
func assignBetween(members []string, from, upTo int, out map[string][]int) {
	claims := make([]claim, 0, len(members)*(upTo-from))
	share, more := upTo/len(members), upTo%len(members) // more members get one more
	for m, name := range members {
		for p := from; p < upTo; p++ {
			claims = append(claims, claim{score(name, p), m, p})
		}
		if len(out[name]) > share {
			more--
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.partition, b.partition), cmp.Compare(a.member, b.member))
	})
	held := make([]bool, upTo)
	for _, c := range claims {
		name := members[c.member]
		has := len(out[name])
		if held[c.partition] || has > share || has == share && more == 0 {
			continue
		}
		if has == share {
			more--
		}
		held[c.partition] = true
		out[name] = append(out[name], c.partition)
	}
}

// score orders the pairs of member and partition.
func score(member string, partition int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(member))
	h.Write([]byte{'.'})
	h.Write([]byte(strconv.Itoa(partition)))
	x := h.Sum64() // the high bits of similar inputs hardly differ: mix them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
