package main

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/ops/facts"
)

// modelTime is how long the simulated model takes for a summary.
const modelTime = 60 * time.Second

// waits is what agents saw of summaries.
type waits struct {
	ready, late int       // compactions that needed a summary: it was there, or had to be requested
	blocked     []float64 // of each turn: until its history fitted, in milliseconds
	jobs        int
	condensed   int
	after       []float64 // share of the available input that was taken after a compaction
}

func (w *waits) add(o *waits) {
	w.ready, w.late, w.jobs, w.condensed = w.ready+o.ready, w.late+o.late, w.jobs+o.jobs, w.condensed+o.condensed
	w.blocked, w.after = append(w.blocked, o.blocked...), append(w.after, o.after...)
}

func (w *waits) share() float64 { return facts.Share{Kept: w.ready, All: w.ready + w.late}.Ratio() }

// simulation is one session whose summaries come late, in the time of the log.
type simulation struct {
	*play
	waits
	now     int64 // Unix milliseconds
	model   int64 // milliseconds
	due     []dueJob
	turning bool    // a turn is being decided on, not a summary
	missed  bool    // the compaction under way waits for its summary
	since   []int64 // turns whose history does not fit yet: when they came
}

// dueJob is a job and when its summary comes.
type dueJob struct {
	job *events.Job
	at  int64
}

// simulate publishes each turn at its time, whatever is reported, as an agent does
// that waits for nothing.
func simulate(r *recording, at []int64, c *compaction.Config, model time.Duration) (*waits, error) {
	s := &simulation{model: model.Milliseconds()}
	s.play = newPlay(r, c, s.receive)
	for i := range r.turns {
		if err := s.deliver(at[i]); err != nil {
			return nil, err
		}
		s.now, s.turning = at[i], true
		if err := s.publish(i, at[i]); err != nil {
			return nil, err
		}
		s.since = append(s.since, at[i])
		s.unblock()
	}
	if err := s.deliver(math.MaxInt64); err != nil {
		return nil, err
	}
	for range s.since { // nothing made it fit
		s.blocked = append(s.blocked, math.Inf(1))
	}
	return &s.waits, nil
}

// deliver lets the summaries arrive that are due before a time.
func (s *simulation) deliver(before int64) error {
	for len(s.due) > 0 && s.due[0].at <= before {
		d := s.due[0]
		s.due = s.due[1:]
		s.now, s.turning = d.at, false
		if err := s.summarize(context.Background(), stub{}, d.job, d.at); err != nil {
			return err
		}
		s.unblock()
	}
	return nil
}

// unblock ends the wait of turns if the next call fits now.
func (s *simulation) unblock() {
	if b := s.ledger.Budget(); b.EstimatedInput > b.AvailableInput {
		return
	}
	for _, since := range s.since {
		s.blocked = append(s.blocked, float64(s.now-since))
	}
	s.since = s.since[:0]
}

// receive counts what is reported.
func (s *simulation) receive(o compaction.Outcome) error {
	switch b := o.Body.(type) {
	case *events.Job:
		s.jobs++
		s.due = append(s.due, dueJob{b, s.now + s.model})
		if b.Lane != events.LaneBackground && !s.missed {
			s.missed = true
			s.late++
		}
	case *events.Compacted:
		if !b.Compacted {
			return nil
		}
		s.after = append(s.after, float64(b.TokensAfter)/float64(b.AvailableInput))
		if condensed(o) == nil {
			return nil
		}
		s.condensed++
		if s.turning && !s.missed {
			s.ready++
		}
		s.missed = false
	}
	return nil
}

// ownTiming is when the turns of a session were recorded.
func ownTiming(r *recording) []int64 {
	out := make([]int64, len(r.turns))
	for i, t := range r.turns {
		out[i] = t.at
	}
	return out
}

// drawnTiming draws the pauses of a session from a pool. The same number gives the
// same timing.
func drawnTiming(r *recording, pool []int64, number int) []int64 {
	h := fnv.New64a()
	h.Write([]byte(r.name))
	random := rand.New(rand.NewPCG(h.Sum64(), uint64(number)))
	out := make([]int64, len(r.turns))
	at := r.turns[0].at
	for i := range out {
		out[i] = at
		at += pool[random.IntN(len(pool))]
	}
	return out
}

// timed are the sessions of a corpus of which it is known when each turn came, and
// that are not too short to be compacted.
func (c *corpus) timed() []*recording {
	return slices.DeleteFunc(c.long(), func(r *recording) bool { return !r.timed() })
}

// waitsOf simulates all sessions of a corpus, at their own timing or at drawn ones.
func waitsOf(ctx context.Context, c *corpus, config *compaction.Config, drawn int) (*waits, error) {
	all := &waits{}
	var pool []int64
	for _, r := range c.timed() {
		pool = append(pool, r.gaps()...)
	}
	for _, r := range c.timed() {
		for i := range max(1, drawn) {
			at := ownTiming(r)
			if drawn > 0 {
				at = drawnTiming(r, pool, i)
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			w, err := simulate(r, at, config, modelTime)
			if err != nil {
				return nil, err
			}
			all.add(w)
		}
	}
	return all, nil
}
