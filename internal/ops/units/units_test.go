package units_test

import (
	"math"
	"testing"
	"time"

	"compactd/internal/ops/units"
)

// A span has two units at most, and none that is zero.
func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "40ms": 40 * time.Millisecond, "999ms": time.Second - 1, "1s": time.Second, "12.5s": 12540 * time.Millisecond,
		"1m": time.Minute, "1m1s": 61 * time.Second, "1h": time.Hour, "1h30m": 90*time.Minute + 29*time.Second,
		"30d": 720 * time.Hour, "1d1h": 25 * time.Hour, "-2s": -2 * time.Second,
	} {
		if got := units.Span(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

// A time on a command line may have days; another unit, sign or order is refused.
func TestPeriod(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "12h": 12 * time.Hour, "90m": 90 * time.Minute, "-1h": -time.Hour,
	} {
		var p units.Period
		if err := p.UnmarshalText([]byte(text)); err != nil || time.Duration(p) != want {
			t.Errorf("%s: %s, %v, want %s", text, time.Duration(p), err, want)
		}
	}
	for _, text := range []string{"", "d", "30", "30x", "-1d", "1.5d", "40000d", "12h1d", "99999999999999999999d"} {
		var p units.Period
		if err := p.UnmarshalText([]byte(text)); err == nil || p != 0 {
			t.Errorf("%q is %s", text, time.Duration(p))
		}
	}
}

// A size is short, whatever it is.
func TestBytes(t *testing.T) {
	for want, n := range map[string]uint64{"0 B": 0, "1023 B": 1023, "1.0 KiB": 1024, "1.2 MiB": 1_258_291, "20 GiB": 20 << 30, "16 EiB": math.MaxUint64} {
		if got := units.Bytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	if got := units.Bytes(int64(-1)); got != "0 B" {
		t.Errorf("a negative size is %s", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 turns", 1: "1 turn", 2: "2 turns"} {
		if got := units.Count(n, "turn"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

// A part without a known price is never counted as nothing.
func TestPricedBy(t *testing.T) {
	for _, x := range []struct {
		n, unpriced int64
		want        string
	}{{0, 0, "$0.0000"}, {1_200_000_000, 0, "$1.20"}, {0, 3, "unknown"}, {1_200_000_000, 1, "at least $1.20"}} {
		if got := units.PricedBy(x.unpriced)(x.n); got != x.want {
			t.Errorf("%d, %d without a price: %q, want %q", x.n, x.unpriced, got, x.want)
		}
	}
}
