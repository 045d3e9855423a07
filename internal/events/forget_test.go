package events

import "testing"

// E8: the payload of a session.forget requests an erasure, and contains nothing else.
func TestDecodeForget(t *testing.T) {
	for payload, want := range map[string]Code{
		`{}`:                      "",
		`{"v":1,"id":"f-1"}`:      "",
		`{"v":1,"id":null}`:       "",
		`{"id":"f-1","turn":1}`:   CodeBadType,
		`{"through":null}`:        CodeBadType,
		`{"id":7}`:                CodeBadType,
		`{"v":2}`:                 CodeBadVersion,
		`{"id":"a","id":"b"}`:     CodeDuplicateKey,
		`{} {}`:                   CodeTrailingData,
		``:                        CodeBadJSON,
		`"forget"`:                CodeBadJSON,
		`{"id":"f-1","messages":`: CodeBadJSON,
	} {
		_, err := Decode[Erasure]([]byte(payload))
		if got := CodeOf(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%s: %v, want code %q", payload, err, want)
		}
	}
}
