package events

import (
	"testing"

	"compactd/internal/events/codec"
)

// An outcome writes a stranger's bytes whole, whatever they are.
func TestMarshalOfBrokenText(t *testing.T) {
	r := Rejected{Code: CodeBadJSON}
	r.CausedBy.ID = "a\xffb"
	data, err := codec.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Rejected
	if err := codec.Unmarshal(data, &back); err != nil || back.CausedBy.ID != "a\uFFFDb" || back.Code != CodeBadJSON {
		t.Errorf("%s: %+v, %v", data, back, err)
	}
	if data, err := codec.Marshal(func() {}); err == nil || data != nil {
		t.Errorf("a function is %q, %v", data, err)
	}
}

// An id that a publisher may choose freely is UTF-8, without control characters, and not long.
func TestValidEventIDIsText(t *testing.T) {
	for id, want := range map[string]bool{"": false, "a": true, "größe 7": true, "a\xff": false, "a\nb": false, "a\x7f": false, string(make([]byte, 257)): false} {
		if ValidEventID(id) != want {
			t.Errorf("%q: %t", id, !want)
		}
	}
}
