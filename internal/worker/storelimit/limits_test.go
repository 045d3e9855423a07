package storelimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"compactd/internal/worker/observe"
)

func newTestRoom(perHour, most int64, limited *[]observe.OutcomesLimited) *Outcomes {
	return &Outcomes{
		share:   share{most: most, pending: map[int]int64{}, since: tally{}},
		perHour: perHour, partitions: func() int { return 4 }, assigned: func() int { return 4 },
		limited: func(e observe.OutcomesLimited) { *limited = append(*limited, e) },
		hours:   map[int]*hour{}, own: map[int]bool{0: true, 1: true, 2: true, 3: true}, reported: map[string]time.Time{},
	}
}

// A tenant has its bytes once in any hour, over all partitions, and is reported once in ten
// minutes. Another tenant is not affected.
func TestRoomHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limited []observe.OutcomesLimited
		q := newTestRoom(1000, 0, &limited)
		type stored struct {
			at    time.Time
			bytes int64
		}
		var all []stored
		for i := range 400 {
			if why := q.Over("evil", 90); why == "" {
				q.Charge(i%4, "evil", 90)
				all = append(all, stored{time.Now(), 90})
			} else if why != observe.OmittedHour {
				t.Fatal(why)
			}
			if q.Over("good", 900) != "" {
				t.Fatal("the other tenant is over a bound")
			}
			time.Sleep(time.Minute)
		}
		for i := range all {
			var n int64
			for _, s := range all[i:] {
				if s.at.Sub(all[i].at) < time.Hour {
					n += s.bytes
				}
			}
			if n > 1000 {
				t.Fatalf("%d bytes in the hour from %s", n, all[i].at)
			}
		}
		if len(all) < 11*5 { // 400 minutes, and an hour is over after 70 minutes at most
			t.Errorf("%d outcomes whole: the hour is not renewed", len(all))
		}
		if n := len(limited); n < 20 || n > 40 {
			t.Errorf("reported %d times in 400 minutes", n)
		}
	})
}

// At most a quarter of the hour's bytes is stored within ten minutes. So a loop does not use up the
// hour, nor the memory of a server that caches what it stores.
func TestRoomBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limited []observe.OutcomesLimited
		q := newTestRoom(256<<20, 0, &limited)
		time.Sleep(time.Until(time.Now().Truncate(slotTime).Add(slotTime)))
		for range 4 {
			n := int64(0)
			for q.Over("a", 1<<20) == "" {
				q.Charge(0, "a", 1<<20)
				n += 1 << 20
			}
			if n != 64<<20 {
				t.Errorf("%d bytes within ten minutes", n)
			}
			time.Sleep(slotTime)
		}
		if why := q.Over("a", 1); why != observe.OmittedHour {
			t.Errorf("after the bytes of an hour: %q", why)
		}
		if limited[0].Reason != observe.OmittedBurst {
			t.Errorf("reported %+v", limited[0])
		}
	})
}

// A worker grants its part of an hour's bytes: that of the partitions that it owns.
func TestRoomOfShare(t *testing.T) {
	var limited []observe.OutcomesLimited
	q := newTestRoom(1000, 0, &limited)
	q.assigned = func() int { return 1 }
	if q.Over("a", 250) != "" || q.Over("a", 251) == "" {
		t.Error("one partition of four does not grant a quarter")
	}
	q.Charge(0, "a", 250)
	if q.Over("a", 1) == "" {
		t.Error("what is stored is not counted")
	}
	for n := int64(1); n < 4; n++ { // released, and another one acquired
		q.Release(int(n - 1))
		if q.Over("a", 250) != "" {
			t.Errorf("%d bytes stored: nothing is granted", n*250)
		}
		q.Charge(int(n), "a", 250)
	}
	q.Release(3)
	if q.Over("a", 1) == "" {
		t.Error("the bytes of released partitions do not count")
	}
}

// As OUTCOMES fills up, the tenant that has stored most loses its messages first. One that has
// stored little loses none, and the reserve is not used for messages.
func TestRoomShare(t *testing.T) {
	var limited []observe.OutcomesLimited
	q := newTestRoom(1<<40, 1000, &limited)
	emit := func(partition int, tenant string, bytes int64) {
		q.Charge(partition, tenant, bytes)
		q.Rendered(partition, bytes)
	}
	for q.Over("evil", 10) == "" {
		emit(0, "evil", 10)
	}
	if q.added < 700 || q.added > 800 {
		t.Errorf("a single tenant holds %d of 1000", q.added)
	}
	for range 10 {
		if q.Over("good", 5) != "" {
			t.Fatalf("the other tenant has no room at %d of 1000", q.added)
		}
		emit(1, "good", 5)
	}
	q.held, q.added = 960, 0
	if q.Over("new", 1) == "" {
		t.Error("messages go into the reserve")
	}
	q.perHour = -1
	if q.Over("evil", 1000) != "" {
		t.Error("a tenant is limited although there is no bound")
	}
}

// Tenants are counted within a bound, and none too low, however many are named.
func TestTallyIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tl, exact := tally{}, map[string]int64{}
		for range rapid.IntRange(1, 3000).Draw(t, "n") {
			name := fmt.Sprint(rapid.IntRange(0, 2*mostTenants).Draw(t, "tenant"))
			n := int64(rapid.IntRange(1, 100).Draw(t, "bytes"))
			tl.add(name, n)
			exact[name] += n
			if len(tl) > mostTenants {
				t.Fatalf("%d tenants", len(tl))
			}
		}
		for name, n := range tl {
			if n < exact[name] {
				t.Fatalf("%s has %d, counted are %d", name, exact[name], n)
			}
		}
	})
}

// P7: a reading of OUTCOMES does not drop what is rendered and not stored yet, nor what
// was stored while it was under way, nor counts anything that was never stored for long.
func TestRoomCountsWhatIsNotStored(t *testing.T) {
	q := newTestRoom(1<<40, 1000, nil)
	read := func(held int64, meanwhile func()) {
		stored := q.beginRead()
		meanwhile()
		q.endRead(held, q.most, stored)
	}
	want := func(bytes int64) {
		t.Helper()
		if got := q.held + q.added; got != bytes {
			t.Errorf("%d bytes, not %d", got, bytes)
		}
	}
	nothing := func() {}
	q.Rendered(0, 300)
	q.Rendered(1, 50)
	read(0, nothing)
	want(350)
	read(0, func() { q.Stored(0, 300) }) // too late for this reading to include it
	want(350)
	read(300, nothing)
	want(350)
	q.Release(1) // its 50 bytes are rendered again by another worker
	read(300, nothing)
	want(300)
}
