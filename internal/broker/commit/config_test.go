package commit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
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
	get := func(hash string, want ...string) (got string, _ error) {
		return got, GetConfig(t.Context(), w.JS, hash, func(text []byte) error {
			if got = string(text); len(want) > 0 && got != want[0] {
				return errOther
			}
			return nil
		})
	}
	if _, err := get(hash); !errors.Is(err, ErrNoConfig) {
		t.Errorf("before: %v", err)
	}
	put("one", time.Hour)
	put("one", time.Hour)
	if n := w.State(topology.OutcomesStream).Last; n != 1 {
		t.Errorf("stored %d times", n)
	}
	put("one", time.Nanosecond)
	put("two", time.Hour)
	if n := w.State(topology.OutcomesStream).Last; n != 3 {
		t.Errorf("stored %d times", n)
	}
	if text, err := get(hash); err != nil || text != "two" {
		t.Errorf("got %q, %v", text, err)
	}
	w.foreign(events.Config(hash), "planted", nil)
	if text, err := get(hash, "two"); err != nil || text != "two" {
		t.Errorf("behind a planted text: %q, %v", text, err)
	}
	if _, err := get(hash, "three"); !errors.Is(err, errOther) {
		t.Errorf("no text that fits: %v", err)
	}
	for _, bad := range []string{"", "a.b.c.d", "*", ">", "a b"} {
		if err := PutConfig(t.Context(), w.JS, bad, nil, 0); err == nil {
			t.Errorf("hash %q was taken", bad)
		}
		if _, err := get(bad); err == nil || errors.Is(err, ErrNoConfig) {
			t.Errorf("hash %q: %v", bad, err)
		}
	}
	if s := w.marker(0); s.Seq != 0 {
		t.Errorf("a config is the marker of partition 0: %+v", s)
	}
}

var errOther = errors.New("another text")
