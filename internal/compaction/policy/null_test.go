package policy_test

import (
	"reflect"
	"testing"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Null switches a group off that has a switch, and leaves its other fields as they are.
func TestNullSwitchesOff(t *testing.T) {
	for null, off := range map[string]string{
		`{"prune":null}`:           `{"prune":{"enabled":false}}`,
		`{"prune":{"micro":null}}`: `{"prune":{"micro":{"enabled":false}}}`,
		`{"deduplicate":null}`:     `{"deduplicate":{"enabled":false}}`,
		`{"summarize":null}`:       `{"summarize":{"enabled":false}}`,
		`{"truncate":null}`:        `{"truncate":{"enabled":false}}`,
		`{"restore":null}`:         `{"restore":{"enabled":false}}`,
	} {
		want, err := policy.Default().With(codec.Raw(off))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := policy.Default().With(codec.Raw(null)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, is not %s", null, err, off)
		}
	}
	for _, bad := range []string{`{"prune":null,"prune":null}`, `{"cache":null,"unknown":null}`} {
		if _, err := policy.Default().With(codec.Raw(bad)); events.CodeOf(err) != events.CodeBadPolicy {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
