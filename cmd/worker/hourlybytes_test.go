package main

import "testing"

// A bound is a size or off; nothing else is taken for one.
func TestHourlyBytes(t *testing.T) {
	for text, want := range map[string]hourlyBytes{"": 0, "off": -1, "8MiB": 8 << 20, "1GiB": 1 << 30, "2GB": 2_000_000_000} {
		var h hourlyBytes
		if err := h.UnmarshalText([]byte(text)); err != nil || h != want {
			t.Errorf("%q: %d, %v, want %d", text, h, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "1MiB", "much", "99999999999EiB"} {
		var h hourlyBytes
		if err := h.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %d", text, h)
		}
	}
}
