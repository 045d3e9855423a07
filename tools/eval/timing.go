package main

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/ops/facts"
)

// modelTime is how long the simulated model takes for a summary.
const modelTime = 60 * time.Second

// waits is what agents saw of summaries.
type waits struct {
	ready, late int       // compactions that needed a summary: it was there, or had to be requested
	bursts      int       // of those late: what was there a model's time before was not enough to reach the target, or the last summary came since
	read        int64     // tokens of what summarizers read, by the estimator
	reread      int64     // of earlier summaries, the part of it that is read again
	blocked     []float64 // of each turn: until its history fitted, in milliseconds
	jobs        int
	condensed   int
	after       []float64 // share of the available input that was taken after a compaction
}

func (w *waits) add(o *waits) {
	w.ready, w.late, w.jobs, w.condensed = w.ready+o.ready, w.late+o.late, w.jobs+o.jobs, w.condensed+o.condensed
	w.bursts, w.read, w.reread = w.bursts+o.bursts, w.read+o.read, w.reread+o.reread
	w.blocked, w.after = append(w.blocked, o.blocked...), append(w.after, o.after...)
}

// share is of the compactions that could have had a summary.
func (w *waits) share() float64 {
	return facts.Share{Kept: w.ready, All: w.ready + w.late - w.bursts}.Ratio()
}

// simulation is one session whose summaries come late, in the time of the log.
type simulation struct {
	*play
	waits
	now     int64 // Unix milliseconds
	model   int64 // milliseconds
	due     []dueJob
	turning bool    // a turn is being decided on, not a summary
	last    int64   // when a summary was put in place last
	missed  bool    // the compaction under way waits for its summary
	grown   []size  // what the input would be had nothing been compacted
	sum     int64   // the last of them
	before  int64   // the input when it was last known
	whole   bool    // the turn under way is in grown
	since   []int64 // turns whose history does not fit yet: when they came
}

// dueJob is a job and when its summary comes.
type dueJob struct {
	job *events.Job
	at  int64
}

// size is how many tokens have come by a time.
type size struct{ at, tokens int64 }

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
		s.whole = false
		if err := s.publish(i, at[i]); err != nil {
			return nil, err
		}
		s.ended()
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
		s.now, s.turning, s.whole = d.at, false, true
		if err := s.summarize(context.Background(), stub{}, d.job, d.at); err != nil {
			return err
		}
		s.ended()
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
func (s *simulation) receive(_ *play, o compaction.Outcome) error {
	switch b := o.Body.(type) {
	case *events.Job:
		s.play.jobs = nil // it is answered when it is due
		s.waits.jobs++
		s.due = append(s.due, dueJob{b, s.now + s.model})
		s.count(b)
		s.grew(b.EstimatedInput)
		if b.Lane != events.LaneBackground && !s.missed {
			s.missed = true
			s.late++
			if s.burst() || s.condensed > 0 && s.now-s.last < s.model {
				s.bursts++
			}
		}
	case *events.Compacted:
		if !b.Compacted {
			return nil
		}
		s.grew(b.TokensBefore)
		s.after = append(s.after, float64(b.TokensAfter)/float64(b.AvailableInput))
		if condensed(o) == nil {
			return nil
		}
		s.condensed++
		s.last = s.now
		if s.turning && !s.missed {
			s.ready++
		}
		s.missed = false
	}
	return nil
}

// grew notes what the input has become, before anything is compacted.
func (s *simulation) grew(input int64) {
	if s.whole {
		return
	}
	s.whole = true
	s.sum += input - s.before
	s.grown = append(s.grown, size{s.now, s.sum})
}

// ended notes the input after an event.
func (s *simulation) ended() {
	input := s.ledger.Budget().EstimatedInput
	s.grew(input)
	s.before = input
}

// count adds up what the summarizer of a job reads.
func (s *simulation) count(j *events.Job) {
	for i := range j.Seqs {
		turn := j.Turn + int64(i)
		for k, tokens := range s.turns[turn-1].tokens {
			if j.Holds(events.Position{Turn: turn, Index: int64(k)}) {
				s.read += tokens
			}
		}
	}
	if j.Previous != 0 {
		s.reread += stubUnits * 10 / 28 // of Claude's default rate
	}
}

// burst reports whether a model's time ago there was too little to summarize: what came
// since, and the least that stays beside it, is above the target already.
func (s *simulation) burst() bool {
	b := s.ledger.Budget()
	now, then := s.grown[len(s.grown)-1].tokens, int64(0)
	for _, g := range s.grown {
		if g.at > s.now-s.model {
			break
		}
		then = g.tokens
	}
	ceiling := s.config.Policy.Summarize.Ceiling(measure.Tokens(b.AvailableInput))
	return now-then+b.Breakdown.SystemPrompt+b.Breakdown.ToolDefinitions+int64(ceiling) > b.TargetTokens
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

// waitsOf simulates all sessions of a corpus under a policy, each in its window, at their own timing
// or at drawn ones, with a model that takes so long.
func waitsOf(ctx context.Context, c *corpus, policy policy.Policy, drawn int, model time.Duration) (*waits, error) {
	all := &waits{}
	var pool []int64
	for _, r := range c.timed() {
		pool = append(pool, r.gaps()...)
	}
	for _, r := range c.timed() {
		policy.WindowTokens = windowOf(r)
		config, err := compaction.NewConfig(policy, measure.DefaultWindows())
		if err != nil {
			return nil, err
		}
		for i := range max(1, drawn) {
			at := ownTiming(r)
			if drawn > 0 {
				at = drawnTiming(r, pool, i)
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			w, err := simulate(r, at, config, model)
			if err != nil {
				return nil, err
			}
			all.add(w)
		}
	}
	return all, nil
}
