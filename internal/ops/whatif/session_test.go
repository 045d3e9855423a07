package whatif

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/ops/transcript"
)

// A transcript keeps its own timing, as far as it states when a turn came; it neither
// goes back nor is idle for more than a day.
func TestFromTranscript(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	const day = 86_400
	var turns []transcript.Turn
	for _, came := range []time.Time{at(100), at(160), {}, at(150), at(100 * day), at(100*day + 5)} {
		turns = append(turns, transcript.Turn{At: came})
	}
	var got []int64
	for _, e := range FromTranscript(transcript.Session{Name: "s", Turns: turns}).Events {
		got = append(got, e.Time/1000)
	}
	if diff := cmp.Diff([]int64{100, 160, 170, 170, 170 + day, 175 + day}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A transcript without times has its turns at even intervals.
func TestFromUntimedTranscript(t *testing.T) {
	s := FromTranscript(transcript.Session{Name: "s", Turns: make([]transcript.Turn, 3)})
	if n := len(s.Events); n != 3 || s.Events[2].Time != 3*pause.Milliseconds() {
		t.Errorf("%d events, the last at %d", n, s.Events[n-1].Time)
	}
}
