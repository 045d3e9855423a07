package main

import (
	"strings"
	"testing"
)

// --max-bytes is one size for both streams, or one for each.
func TestMaxBytes(t *testing.T) {
	for text, want := range map[string]maxBytes{
		"": {}, "20GiB": {20 << 30, 20 << 30}, "150GB,50gb": {150e9, 50e9}, "1tib, 64MiB": {1 << 40, 64 << 20}, "67108864": {64 << 20, 64 << 20},
	} {
		t.Setenv("COMPACTD_MAX_BYTES", text)
		var f flags
		if _, err := parser(&f, "json").Parse(nil); err != nil || f.MaxBytes != want {
			t.Errorf("%q: %+v, %v", text, f.MaxBytes, err)
		}
	}
	t.Setenv("COMPACTD_MAX_BYTES", "")
	for _, text := range []string{"much", "0", "-1", "63MiB", "20GiB,", ",20GiB", "1GB,2GB,3GB", "16EiB"} {
		var f flags
		if _, err := parser(&f, "json").Parse([]string{"--max-bytes=" + text}); err == nil || !strings.Contains(err.Error(), "is not a size of 64MiB or more") {
			t.Errorf("%q: %+v, %v", text, f.MaxBytes, err)
		}
	}
}

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
