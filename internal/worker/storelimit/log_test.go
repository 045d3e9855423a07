package storelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"compactd/internal/events"
)

// read reads a size of SESSIONS, and counts the tenants with found if a count is due. It reports whether one was.
func (l *Log) read(held int64, found tally) bool {
	due := l.endRead(held, l.most, l.beginRead())
	if due {
		l.setTenants(found)
	}
	return due
}

// A tenant whose events expire as fast as it stores new ones is never over its share, however long the
// worker runs, and although the stream was nearly full before.
func TestLogOfSteadyTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bytes = 1e6
		l := NewLog(nil, 0, 100*bytes)
		if !l.read(90*bytes, tally{"main": 20 * bytes, "other": 70 * bytes}) {
			t.Fatal("a stream that is nearly full is not counted")
		}
		for day := range 400 {
			for range 10 {
				time.Sleep(24 * time.Hour / 10)
				if l.read(60*bytes, nil) {
					t.Fatal("a stream that is not nearly full is counted")
				}
				if !l.Fits(events.KindTurn, "main", bytes/5) {
					t.Fatalf("on day %d the tenant stores no more", day)
				}
				l.Stored("main", bytes/5)
			}
		}
	})
}

// A stream that becomes nearly full is counted at once, then every ten minutes. Bytes stored during a
// read and during a count are in the sums.
func TestLogCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLog(nil, 0, 100_000) // 95,000 of it for turns
		l.Stored("a", 50_000)
		if l.read(50_000, nil) {
			t.Fatal("counted too early")
		}
		l.Stored("a", 30_000)
		stored := l.beginRead()
		l.Stored("a", 1000) // the read may lack it
		if !l.endRead(80_000, 100_000, stored) {
			t.Fatal("not counted")
		}
		l.Stored("b", 1000)
		l.setTenants(tally{"a": 80_000})
		if l.tenants["a"] != 81_000+envelope || l.tenants["b"] != 1000+envelope || l.added != 2000+2*envelope {
			t.Errorf("%v, %d added", l.tenants, l.added)
		}
		if l.Fits(events.KindTurn, "a", 1000) || !l.Fits(events.KindTurn, "b", 1000) || !l.Fits(events.KindForget, "a", 1000) {
			t.Error("the tenant over its share stores more, or the other one less")
		}
		time.Sleep(countEvery / 2)
		if l.read(84_000, nil) {
			t.Error("counted again too early")
		}
		time.Sleep(countEvery / 2)
		if !l.read(84_000, tally{"a": 40_000, "b": 44_000}) || !l.Fits(events.KindTurn, "a", 1000) {
			t.Error("not counted again")
		}
	})
}

// A burst between two reads fills no more than a share, although the stream is not counted yet.
func TestLogBurst(t *testing.T) {
	l := NewLog(nil, 0, 100_000)
	n := 0
	for ; l.Fits(events.KindTurn, "a", 800); n++ {
		l.Stored("a", 800)
	}
	if n < 70 || n > 76 || !l.Fits(events.KindTurn, "b", 800) {
		t.Errorf("%d events of 1000 bytes", n)
	}
}
