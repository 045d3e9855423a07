package events

import "hash/fnv"

// PartitionOf returns the partition of a session, as the server's transform
// computes it: FNV-1a over tenant and session.
func PartitionOf(a Address, partitions int) int {
	h := fnv.New32a()
	h.Write([]byte(a.Tenant))
	h.Write([]byte(a.Session))
	return int(h.Sum32() % uint32(partitions))
}
