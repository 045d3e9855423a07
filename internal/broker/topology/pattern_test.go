package topology

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"pgregory.net/rapid"
)

// The server decides what patterns of subjects mean.
func TestSubjects(t *testing.T) {
	token := rapid.SampledFrom([]string{"a", "b", "*"})
	pattern := rapid.Custom(func(t *rapid.T) string {
		tokens := rapid.SliceOfN(token, 1, 4).Draw(t, "tokens")
		if rapid.Bool().Draw(t, "open") {
			tokens = append(tokens, ">")
		}
		return strings.Join(tokens, ".")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := pattern.Draw(t, "a"), pattern.Draw(t, "b")
		if got, want := covers(a, b), server.SubjectMatchesFilter(b, a); got != want {
			t.Errorf("%s covers %s: %t, the server has %t", a, b, got, want)
		}
		if got, want := collide(a, b), server.SubjectsCollide(a, b); got != want {
			t.Errorf("%s and %s collide: %t, the server has %t", a, b, got, want)
		}
	})
}
