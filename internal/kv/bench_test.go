package kv

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// fleet is n sessions with ids as agents make them, in random order.
func fleet(n int) []events.Address {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]events.Address, n)
	for i := range all {
		all[i] = events.Address{Tenant: events.DefaultTenant, Session: fmt.Sprintf("%016x-%016x", r.Uint64(), r.Uint64())}
	}
	return all
}

// A checkpoint of 10,000 sessions that lie scattered among 50,000: one row each
// of a header's size, or of a full chunk's.
func BenchmarkCheckpoint(b *testing.B) {
	for _, size := range []int{300, 2500} {
		b.Run(fmt.Sprintf("10000x%d", size), func(b *testing.B) {
			all := fleet(50_000)
			s := filled(b, all, size)
			r := rand.New(rand.NewPCG(3, 4))
			data := make([]byte, size)
			changes := make([]Change, 10_000)
			for cursor := uint64(100); b.Loop(); cursor++ {
				for i, at := range r.Perm(len(all))[:len(changes)] {
					changes[i] = Change{Address: all[at], Rows: []compaction.Row{{Name: "head", Data: data}}}
				}
				if err := s.Checkpoint(Position{Cursor: cursor}, changes); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(changes))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(fileBytes(b, s))/(1<<20), "file-MB")
		})
	}
}

// Load of one session among 50,000.
func BenchmarkLoad(b *testing.B) {
	for _, size := range []int{300, 2500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			all := fleet(50_000)
			s := filled(b, all, size)
			for i := 0; b.Loop(); i++ {
				if rows, err := s.Load(all[i%len(all)]); err != nil || len(rows) != 1 {
					b.Fatal(len(rows), err)
				}
			}
		})
	}
}

// Open reads and checks the whole file.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []int{300, 2500} {
		b.Run(fmt.Sprintf("50000x%d", size), func(b *testing.B) {
			s := filled(b, fleet(50_000), size)
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			bytes := fileBytes(b, s)
			for b.Loop() {
				s, set, err := Open(s.opt)
				if err != nil || set != nil {
					b.Fatal(set, err)
				}
				s.Abandon()
			}
			b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e6, "MB/s")
		})
	}
}

func filled(b *testing.B, all []events.Address, size int) *Store {
	b.Helper()
	s, _, err := Open(Options{Path: filepath.Join(b.TempDir(), "p.db"), Partitions: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Abandon)
	for i := range 5 {
		part := all[i*len(all)/5 : (i+1)*len(all)/5]
		changes := make([]Change, len(part))
		for j, a := range part {
			changes[j] = Change{Address: a, Rows: []compaction.Row{{Name: "head", Data: make([]byte, size)}}}
		}
		if err := s.Checkpoint(Position{Cursor: uint64(i + 1)}, changes); err != nil {
			b.Fatal(err)
		}
	}
	return s
}
