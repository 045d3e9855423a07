package jobs

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/observe"
)

// waitingJob is a delivery of a job.
type waitingJob struct {
	message
	data []byte
}

func (w *waitingJob) Data() []byte { return w.data }

// The texts of jobs that wait for a slot of their tenant are read with those of the job before
// them, as many as the bound holds by what their sessions are estimated to have. They are read
// ahead once, until those jobs are taken.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	const sessions, rounds, tokens = 8, 5, 100
	env := brokertest.New(t)
	all := make([]*events.Job, sessions)
	for r := range rounds {
		for n := range sessions {
			if all[n] == nil {
				all[n] = &events.Job{Turn: 1, EstimatedInput: tokens, Lane: events.LaneNormal}
			}
			text := fmt.Sprintf(`{"v":1,"messages":[{"role":"user","content":"turn %d of %d: %s"}]}`, r+1, n, strings.Repeat("x", 4*tokens/rounds))
			all[n].Seqs = append(all[n].Seqs, env.Turn(fmt.Sprint("s", n), text))
		}
	}
	delivery := func(n int) *waitingJob {
		data, err := codec.Marshal(all[n])
		if err != nil {
			t.Fatal(err)
		}
		return &waitingJob{data: data}
	}
	p := Pool{NC: env.NC, Texts: stream.NewTexts(env.NC), AheadBytes: 4 * textBytes * tokens, Listener: &observe.Listener{}}
	p.AheadBytes += rounds * 4 * 300 // fields, and what a message takes beside its payload
	s := newShares(1)
	if !s.take("t") {
		t.Fatal("no slot")
	}
	for n := 1; n < sessions; n++ {
		s.hold("t", delivery(n))
	}
	m, has := p.readAhead(t.Context(), s, "t", delivery(0)), 0
	for n := 0; ; n++ {
		if a, ok := m.(*aheadMsg); ok {
			stored := a.read.take()
			if len(stored) != 0 && len(stored) != rounds {
				t.Errorf("job %d has %d texts", n, len(stored))
			}
			for i, b := range stored {
				if b.Seq != all[n].Seqs[i] || !strings.Contains(string(b.Data), fmt.Sprintf("turn %d of %d:", i+1, n)) {
					t.Errorf("job %d has %s", n, b.Data)
				}
			}
			if len(stored) > 0 {
				has++
			}
		}
		var more bool
		if m, more = s.next("t"); !more {
			break
		}
		if _, ok := m.(*aheadMsg); ok && s.ahead > 0 && p.readAhead(t.Context(), s, "t", m) != m {
			t.Error("a job is read twice")
		}
	}
	if has < 3 || has == sessions || s.ahead != 0 {
		t.Errorf("%d jobs of %d are read ahead, and %d are expected to be taken", has, sessions, s.ahead)
	}
}
