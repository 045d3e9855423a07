package transcript

import (
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/realsessions"
)

// Files as programs left them are read whole, by their shape alone, to histories that are valid
// for a provider.
func TestFilesOfPrograms(t *testing.T) {
	source, err := Open(Auto, realsessions.More(t))
	if err != nil {
		t.Fatal(err)
	}
	files, turns := map[From]int{}, map[From]int{}
	for _, f := range source.files {
		if f.from == Compactd {
			continue // converted, and maybe of parts of sessions
		}
		files[f.from]++
		report := func(err error) { t.Errorf("reported: %v", err) }
		source.read(f, map[string]int{}, report, func(s Session) bool {
			turns[f.from] += len(s.Turns)
			var all []codec.Raw
			for _, turn := range s.Turns {
				if _, err := events.DecodeTurn(turn.Payload); err != nil {
					t.Errorf("%s: turn %d: %v", f.path, turn.Number, err)
				}
				all = append(all, turn.Messages...)
			}
			if bad := validate.Messages(s.Format, all); len(bad) > 0 {
				t.Errorf("%s: session %s: %d messages, %v", f.path, s.Name, len(bad), bad[0])
			}
			t.Logf("%s: %d turns of %s, missing %v", s.Name, len(s.Turns), f.from, s.Missing)
			return true
		})
	}
	for from, n := range files {
		if t.Logf("%s: %d files, %d turns", from, n, turns[from]); turns[from] < n {
			t.Errorf("%s: %d files have %d turns", from, n, turns[from])
		}
	}
	if source.Unknown > 0 {
		t.Errorf("%d files are unknown", source.Unknown)
	}
}
