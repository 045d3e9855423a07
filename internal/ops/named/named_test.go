package named_test

import (
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/ops/named"
)

// A name and its id are one session, and are shown as the name, without what moves a terminal.
func TestSession(t *testing.T) {
	for name, shown := range map[string]string{
		"s1": "s1", "chat 42@x": "chat 42@x", "b64-x": "b64-x", "thread/7": "thread/7", "日本": "日本", "a\x1b[2Jb\nc": "a�[2Jb�c",
	} {
		id, err := events.SessionID(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{name, id} {
			var s named.Session
			if err := s.UnmarshalText([]byte(text)); err != nil || string(s) != id {
				t.Errorf("%q: %q, %v, want %q", text, s, err, id)
			}
		}
		if got := named.Show(events.Address{Tenant: "acme", Session: id}); got != "acme."+shown {
			t.Errorf("%q is shown as %q", name, got)
		}
	}
	for _, text := range []string{"", strings.Repeat("x", events.MaxSessionName+1), "\xff"} {
		var s named.Session
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
