package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/units"
)

// Session is one recorded conversation.
type Session struct {
	Name   string
	Format events.Format
	Turns  []Turn

	// Missing counts what the recording lacks of the prompts, or has in a form that only the
	// provider reads, by kind, such as "encrypted reasoning".
	Missing map[string]int
}

// Turn is one session.turn.
type Turn struct {
	ID       string
	Number   int64
	At       time.Time // when its last message was recorded; zero if unknown
	Payload  []byte
	Messages []codec.Raw // those in Payload

	// Input is what the provider counted for the prompt of the turn's answer, in
	// tokens; 0 when it is not known. It stands also where Payload leaves usage
	// out: from the turn with Restarted on, which the recorded agent's own
	// compaction came before, it counts another history.
	Input     int64
	Output    int64 // that it counted for the answer
	Restarted bool
	Summary   string // what the recorded agent wrote at that compaction, "" where it is not known
}

// Gaps sums what the recordings of some sessions lack. The zero value is of none.
type Gaps struct {
	sessions, items map[string]int
}

// Add adds those of a session; see [Session.Missing].
func (g *Gaps) Add(missing map[string]int) {
	if g.items == nil {
		g.sessions, g.items = map[string]int{}, map[string]int{}
	}
	for kind, n := range missing {
		g.sessions[kind]++
		g.items[kind] += n
	}
}

// String is a sentence, "" where nothing is missing.
func (g *Gaps) String() string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(g.items)) {
		out = append(out, fmt.Sprintf("%s (%d, in %s)", kind, g.items[kind], units.Count(g.sessions[kind], "session")))
	}
	if out == nil {
		return ""
	}
	return "The recordings hide or lack: " + strings.Join(out, ", ") + "."
}
