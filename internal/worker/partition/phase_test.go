package partition

import "testing"

// A partition goes from opening to serving to draining to closed, or, when it cannot be
// opened, to closed at once. Every other transition is a bug.
func TestPhases(t *testing.T) {
	t.Parallel()
	legal := map[[2]phase]bool{{opening, serving}: true, {opening, closed}: true, {serving, draining}: true, {draining, closed}: true}
	for from := opening; from <= closed; from++ {
		for to := opening; to <= closed; to++ {
			var l lifecycle
			l.now.Store(int32(from))
			if panicked := func() (yes bool) {
				defer func() { yes = recover() != nil }()
				l.enter(to)
				return false
			}(); panicked == legal[[2]phase{from, to}] {
				t.Errorf("%s to %s: panicked: %v", from, to, panicked)
			}
		}
	}
}
