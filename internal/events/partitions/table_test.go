package partitions

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/events"
)

// session is an address that the server's transform has in a partition of 64.
func session(t *testing.T, p int) events.Address {
	t.Helper()
	for i := range 10_000 {
		a := events.Address{Tenant: "default", Session: fmt.Sprint("s", i)}
		if events.PartitionOf(a, 64) == p {
			return a
		}
	}
	t.Fatalf("no session in partition %d", p)
	return events.Address{}
}

func parse(t *testing.T, s string) Table {
	t.Helper()
	out, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An event up to a split is decided by the parent, one behind it by the partition that its session
// has among twice as many.
func TestAt(t *testing.T) {
	grown := parse(t, `{"first":4,"splits":[[10,10,20,10],[0,30,0,0,0,35,0,0]]}`)
	for _, c := range []struct {
		hash int    // of the session, among 64
		seq  uint64 // of the event
		want int
	}{
		{1, 1, 1},
		{1, 9, 1},
		{1, 10, 1},
		{1, 100, 1},
		{5, 9, 1},
		{5, 10, 5},
		{5, 34, 5},
		{5, 35, 5},
		{9, 10, 1},
		{9, 29, 1},
		{9, 30, 9},
		{9, math.MaxUint64, 9},
		{13, 9, 1},
		{13, 34, 5},
		{13, 35, 13},
		{6, 19, 2},
		{6, 20, 6},
		{10, 1000, 2},
		{14, 1000, 6}, // not split again
		{17, 100, 1},
		{25, 29, 1},
		{25, 30, 9},
	} {
		if got := grown.At(session(t, c.hash), c.seq); got != c.want {
			t.Errorf("the event at %d of a session of %d is decided by %d, not %d", c.seq, c.hash, got, c.want)
		}
	}
	if got := grown.Of(session(t, 13)); got != 13 || grown.Count() != 16 {
		t.Errorf("the next event is decided by %d of %d", got, grown.Count())
	}
	for _, c := range []struct {
		p    int
		want []Split
	}{{1, nil}, {5, []Split{{1, 5, 10}}}, {9, []Split{{1, 9, 30}}}, {13, []Split{{1, 5, 10}, {5, 13, 35}}}, {14, []Split{{2, 6, 20}, {6, 14, 0}}}} {
		if diff := cmp.Diff(c.want, grown.Lineage(c.p)); diff != "" {
			t.Errorf("lineage of %d: %s", c.p, diff)
		}
	}
	for p, want := range []Split{{0, 4, 10}, {1, 9, 30}, {2, 6, 20}, {3, 7, 10}, {0, 4, 10}, {5, 13, 35}, {2, 6, 20}, {3, 7, 10}, {}, {1, 9, 30}} {
		if got := grown.Newest(p); got != want {
			t.Errorf("the newest split of partition %d is %+v, not %+v", p, got, want)
		}
	}
	for p := range 16 {
		if want := p < 8 || p == 9 || p == 13; grown.Decides(p) != want {
			t.Errorf("partition %d decides events: %t", p, !want)
		}
	}
	if diff := cmp.Diff([]int{0, 2, 3, 4, 6, 7}, grown.Unsplit()); diff != "" {
		t.Error(diff)
	}
}

// A partition reads the subjects that its events may have, and behind its splits no more than it must.
func TestSources(t *testing.T) {
	grown := parse(t, `{"first":4,"splits":[[10,10,10,10],[30,30,30,30,30,30,30,30]]}`)
	for _, c := range []struct {
		p     int
		after uint64
		want  []int
	}{
		{1, 0, []int{1, 5, 9, 13}},
		{1, 8, []int{1, 5, 9, 13}},
		{1, 9, []int{1, 9}},
		{1, 28, []int{1, 9}},
		{1, 29, []int{1}},
		{5, 9, []int{1, 5, 13}},
		{5, 29, []int{1, 5}},
		{9, 29, []int{1, 9}},
		{13, 29, []int{1, 5, 13}},
	} {
		if diff := cmp.Diff(c.want, grown.Sources(c.p, c.after)); diff != "" {
			t.Errorf("of %d behind %d: %s", c.p, c.after, diff)
		}
	}
}

// table draws one that grew up to three times, the last time perhaps in part.
func table(t *rapid.T) Table {
	out := New(rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "first"))
	for range rapid.IntRange(0, 3).Draw(t, "growths") {
		grown, err := out.Grow()
		if err != nil {
			break // the one before is not complete
		}
		out = grown
		for _, p := range out.Unsplit() {
			least := uint64(1)
			if n := len(out.splits); n > 1 {
				least = out.splits[n-2][p%len(out.splits[n-2])] // of the growth before
			}
			if rapid.IntRange(0, 9).Draw(t, "skip") == 0 {
				continue
			}
			if out, err = out.Split(p, least+rapid.Uint64Range(0, 20).Draw(t, "at")); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// drop is the table as it was before the last growth, or with a part of that.
func drop(t *rapid.T, of Table) Table {
	last := len(of.splits) - 1
	if last < 0 || rapid.Bool().Draw(t, "growth") {
		return Table{of.first, of.splits[:max(last, 0)]}
	}
	out := Table{of.first, slices.Clone(of.splits)}
	out.splits[last] = slices.Clone(out.splits[last])
	for p := range out.splits[last] {
		if rapid.Bool().Draw(t, "unknown") {
			out.splits[last][p] = 0
		}
	}
	return out
}

// Whatever transform had an event, its partition reads the subject, and looks a session up
// there. A split changes nothing before it, and moves no session but to the child. A stored table is the same.
func TestTableProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := table(t)
		a := events.Address{Tenant: "t", Session: fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "session"))}
		seq := rapid.Uint64Range(1, 90).Draw(t, "seq")
		p := of.At(a, seq)
		path := of.Path(a)
		if !slices.Contains(path, p) || p >= of.Count() {
			t.Fatalf("partition %d is not in the path %v", p, path)
		}
		for _, family := range of.Families() {
			if slices.Contains(family, p) != slices.Contains(family, path[0]) {
				t.Fatalf("partitions %v of a session are not of one family: %v", path, of.Families())
			}
		}
		last := len(of.splits)
		if len(of.Unsplit()) > 0 {
			last-- // the transform is changed when all are split
		}
		for i := range last + 1 {
			stored := events.PartitionOf(a, of.first<<i)
			if !slices.Contains(of.Sources(p, seq-1), stored) || !slices.Contains(path, stored) {
				t.Fatalf("event %d of partition %d is stored under %d, not one of %v, %v", seq, p, stored, of.Sources(p, seq-1), path)
			}
		}
		for q := range of.Count() { // which applies the event too, if it was split off later
			applies := slices.ContainsFunc(of.Lineage(q), func(s Split) bool { return s.Parent == p && seq < s.First })
			if stored := path[rapid.IntRange(0, len(path)-1).Draw(t, "stored")]; applies && !slices.Contains(of.Sources(q, seq-1), stored) {
				t.Fatalf("event %d of partition %d is stored under %d, and %d reads %v", seq, p, stored, q, of.Sources(q, seq-1))
			}
		}
		for _, split := range of.Lineage(p) {
			if split.First == 0 || seq < split.First {
				t.Fatalf("partition %d decides %d, and begins at %d", p, seq, split.First)
			}
			if got := of.At(a, split.First-1); split.First > 1 && got == p {
				t.Fatalf("partition %d decides %d, before it begins", p, split.First-1)
			}
		}
		again, err := Parse(of.String())
		if err != nil || !again.Equal(of) {
			t.Fatalf("%s was read as %s: %v", of, again, err)
		}
		known := drop(t, of)
		if both, err := known.Merge(of); err != nil || !both.Equal(of) {
			t.Fatalf("%s and %s are %s: %v", known, of, both, err)
		}
		for q := range of.Count() { // an owner learns from its markers what the last growth has
			if split := of.Newest(q); split.Child == split.Parent+of.Count()/2 {
				if known, err = known.With(split); err != nil {
					t.Fatal(err)
				}
			}
		}
		if both, err := of.Merge(known); err != nil || !both.Equal(of) || len(of.splits) > 0 && len(of.Unsplit()) < of.Count()/2 && !known.Equal(of) {
			t.Fatalf("%s was learnt from the markers of %s: %v", known, of, err)
		}
		for _, q := range of.Unsplit() {
			after, err := of.Split(q, 100)
			if err != nil {
				t.Fatal(err)
			}
			if before := of.Of(a); after.At(a, 99) != of.At(a, 99) || before != q && after.Of(a) != before ||
				before == q && after.Of(a) != q && after.Of(a) != q+of.Count()/2 {
				t.Fatalf("the split of %d moves the session from %d to %d", q, before, after.Of(a))
			}
		}
	})
}

// One growth at a time, and no split is moved.
func TestTableRefuses(t *testing.T) {
	grown, err := New(1).Grow()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grown.Grow(); err == nil {
		t.Error("a second growth began")
	}
	if _, err := grown.Split(0, 0); err == nil {
		t.Error("a split has no sequence")
	}
	if _, err := grown.Split(1, 7); err == nil {
		t.Error("a child was split")
	}
	split, err := grown.Split(0, 7)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := split.Split(0, 7); err != nil || !again.Equal(split) {
		t.Errorf("the same split: %s, %v", again, err)
	}
	if _, err := split.Split(0, 8); err == nil {
		t.Error("a split was moved")
	}
	for _, s := range []Split{{0, 1, 8}, {0, 4, 9}, {1, 2, 9}, {-1, 1, 9}, {3, 5, 9}, {2, 1, 9}, {0, 1, 0}} {
		if got, err := split.With(s); err == nil {
			t.Errorf("%s has %+v too: %s", split, s, got)
		}
	}
	other, _ := grown.Split(0, 8)
	for _, u := range []Table{other, New(2)} {
		if got, err := split.Merge(u); err == nil {
			t.Errorf("%s and %s are of one log, %s", split, u, got)
		}
	}
	if _, err := New(Most).Grow(); err == nil {
		t.Error("a log grew above its most")
	}
	for _, bad := range []string{
		``, `7`, `{}`, `{"first":0}`, `{"first":-1}`, `{"first":1025}`, `{"first":2,"splits":[[1]]}`, `{"first":1,"splits":[[1],[2]]}`,
		`{"first":1,"splits":[[0],[2,2]]}`, `{"first":1,"splits":[[5],[5,4]]}`, `{"first":1,"splits":[[-1]]}`, `{"first":1024,"splits":[[]]}`,
	} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%s was read as %s", bad, got)
		}
	}
}

// Two readers of a log have the same table once each has what the other one found.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := table(t)
		part := func(label string) Table { // what a reader found: growths up to one, and some of its splits
			n := rapid.IntRange(0, len(whole.splits)).Draw(t, label)
			out := Table{whole.first, slices.Clone(whole.splits[:n])}
			if n > 0 {
				out.splits[n-1] = slices.Clone(out.splits[n-1])
				for p := range out.splits[n-1] {
					if rapid.Bool().Draw(t, label+" lacks") {
						out.splits[n-1][p] = 0
					}
				}
			}
			return out
		}
		a, b := part("a"), part("b")
		ab, err := a.Merge(b)
		if err != nil {
			t.Fatal(err)
		}
		if ba, err := b.Merge(a); err != nil || !ab.Equal(ba) {
			t.Fatalf("merged as %s and %s: %v", ab, ba, err)
		}
		if all, err := whole.Merge(ab); err != nil || !all.Equal(whole) {
			t.Fatalf("%s with parts of it is %s: %v", whole, all, err)
		}
	})
	begun := parse(t, `{"first":1,"splits":[[7]]}`)
	for _, other := range []Table{New(2), parse(t, `{"first":1,"splits":[[8]]}`), {1, [][]uint64{{0}, {6, 9}}}} {
		if got, err := begun.Merge(other); err == nil || !got.Equal(begun) {
			t.Errorf("%s and %s are %s", begun, other, got)
		}
	}
}
