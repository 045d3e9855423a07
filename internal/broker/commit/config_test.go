package commit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"compactd/internal/broker/topology"
)

// A config is stored once as long as it is fresh, read back whole, and cannot be
// taken for a partition or an outcome.
func TestConfig(t *testing.T) {
	w := newEnv(t)
	hash := strings.Repeat("0f", 32)
	put := func(text string, renew time.Duration) {
		t.Helper()
		if err := PutConfig(t.Context(), w.JS, hash, []byte(text), renew); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := GetConfig(t.Context(), w.JS, hash); !errors.Is(err, ErrNoConfig) {
		t.Errorf("before: %v", err)
	}
	put("one", 0)
	put("one", 0)
	put("one", time.Hour)
	if n := w.State(topology.OutcomesStream).Last; n != 1 {
		t.Errorf("stored %d times", n)
	}
	put("one", time.Nanosecond)
	put("two", 0)
	if n := w.State(topology.OutcomesStream).Last; n != 3 {
		t.Errorf("stored %d times", n)
	}
	if text, err := GetConfig(t.Context(), w.JS, hash); err != nil || string(text) != "two" {
		t.Errorf("got %q, %v", text, err)
	}
	for _, bad := range []string{"", "a.b.c.d", "*", ">", "a b"} {
		if err := PutConfig(t.Context(), w.JS, bad, nil, 0); err == nil {
			t.Errorf("hash %q was taken", bad)
		}
		if _, err := GetConfig(t.Context(), w.JS, bad); err == nil || errors.Is(err, ErrNoConfig) {
			t.Errorf("hash %q: %v", bad, err)
		}
	}
	if s := w.marker(0); s.Seq != 0 {
		t.Errorf("a config is the marker of partition 0: %+v", s)
	}
}
