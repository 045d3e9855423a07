package compaction

import (
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
)

// A5: room is the exact inverse of input, whatever the usages taught: a history that
// fills the room takes at most the total that was requested, one token more takes more.
// That holds where the least share of an estimate decides, too.
func TestRoomIsInverseOfInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		l := &Ledger{system: measure.Size{Units: rapid.Int64Range(0, 4000).Draw(t, "system")}}
		l.entries.add(Entry{Parts: 1})
		l.cache.policy, l.cache.rate = &p, NewRate(Profiles["seed"], "openai")
		l.cache.visible = Tokens(rapid.Int64Range(0, 1_000_000).Draw(t, "visible"))
		l.usage = calibration{
			Ratio:      PPM(rapid.Int64Range(int64(leastRatio), int64(mostRatio)).Draw(t, "ratio")),
			Correction: Tokens(rapid.Int64Range(-500_000, 500_000).Draw(t, "correction")),
			Least:      PPM(rapid.Int64Range(0, measure.Million).Draw(t, "least")),
		}
		total := Tokens(rapid.Int64Range(0, 2_000_000).Draw(t, "total"))
		room := l.availableFor(total)
		if room < 0 {
			return // the fixed parts alone are more
		}
		if got := l.input(room); got > total {
			t.Fatalf("a history of %d takes %d of %d", room, got, total)
		}
		if got := l.input(room + 1); got <= total {
			t.Fatalf("there is room for more than %d: one more takes %d of %d", room, got, total)
		}
	})
}
