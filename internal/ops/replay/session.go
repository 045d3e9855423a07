package replay

import (
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/ops/transcript"
)

// SessionReport is what became of one session.
type SessionReport struct {
	Name        string
	Turns       int
	Messages    int
	Generations []Generation
	Rejected    []events.Code
	Repeated    int64 // calls that repeat one whose result a compaction had taken out of view

	address events.Address
	sizes   []int    // of the turns' payloads, in bytes
	samples []sample // in the order of the turns
}

// Generation is one compaction.
type Generation struct {
	Number        int64
	Turn          int64 // up to which the history was compacted
	Reason        events.Reason
	Stages        []events.Stage
	Before, After int64 // tokens
	Messages      int
	Violations    []validate.Violation
	Cost          Cost
}

// Cost is what compactions cost and save by the prices of their models, in billionths of a US
// dollar: on caches that they break, and on the calls until the next compaction of each.
type Cost struct {
	Lost  int64 `json:"lost_nano_usd"`
	Saved int64 `json:"saved_nano_usd"`
}

func (c *Cost) add(o Cost) {
	c.Lost += o.Lost
	c.Saved += o.Saved
}

// sample is what a worker published of a session's size at a turn.
type sample struct {
	turn      int64
	input     int64 // tokens of the next call, before what was done then
	whole     int64 // the same, had nothing been compacted so far
	available int64 // tokens that the model takes
}

func newSessionReport(a events.Address, s transcript.Session) *SessionReport {
	r := &SessionReport{Name: s.Name, Turns: len(s.Turns), address: a}
	for _, t := range s.Turns {
		r.Messages += len(t.Messages)
		r.sizes = append(r.sizes, len(t.Payload))
	}
	return r
}

// note takes an outcome, and returns the compaction that it is, nil if it is none.
func (s *SessionReport) note(body any) *events.Compacted {
	switch b := body.(type) {
	case *events.Rejected:
		s.Rejected = append(s.Rejected, b.Code)
	case *events.BudgetChanged:
		if n := len(s.Generations); n == 0 || s.Generations[n-1].Turn != b.Through.Turn { // else it reports the same
			s.sample(b.Through.Turn, b.Budget.EstimatedInput, b.Budget.AvailableInput)
		}
	case *events.Compacted:
		s.sample(b.Through.Turn, b.TokensBefore, b.AvailableInput)
		if b.Compacted {
			s.Generations = append(s.Generations, generation(b))
			return b
		}
	}
	return nil
}

// end takes how the session stood after its last turn.
func (s *SessionReport) end(stats *events.StatsResponse) {
	if stats.Known {
		s.Repeated = stats.Rereads + stats.Reruns
		s.sample(stats.Through.Turn, stats.Budget.EstimatedInput, stats.Budget.AvailableInput)
	}
}

func (s *SessionReport) sample(turn, input, available int64) {
	s.samples = append(s.samples, sample{turn, input, input + s.Saved(), available})
}

func generation(b *events.Compacted) Generation {
	var cost Cost
	if b.Cache != nil {
		cost = Cost{b.Cache.Lost, b.Cache.Saved}
	}
	return Generation{
		Cost: cost,

		Number: b.Generation, Turn: b.Through.Turn, Reason: b.Reason, Stages: b.StagesUsed, Before: b.TokensBefore, After: b.TokensAfter,
		Messages: len(b.Messages), Violations: validate.Messages(b.Format, b.Messages),
	}
}

// Peak is the largest input that was published of, in tokens; 0 if none was.
func (s *SessionReport) Peak() (tokens int64) {
	for _, x := range s.samples {
		tokens = max(tokens, x.input)
	}
	return tokens
}

// Saved is what all compactions took off, in tokens.
func (s *SessionReport) Saved() (tokens int64) {
	for _, g := range s.Generations {
		tokens += g.Before - g.After
	}
	return tokens
}

// Cost is that of all compactions.
func (s *SessionReport) Cost() (c Cost) {
	for _, g := range s.Generations {
		c.add(g.Cost)
	}
	return c
}

// Stages counts the compactions that each stage took part in.
func (s *SessionReport) Stages() map[events.Stage]int {
	n := map[events.Stage]int{}
	for _, g := range s.Generations {
		for _, stage := range g.Stages {
			n[stage]++
		}
	}
	return n
}

// Largest returns the compaction that took most off, and its session; nil where there
// was none.
func (r *Report) Largest() (a events.Address, largest *Generation) {
	for _, s := range r.Sessions {
		for i := range s.Generations {
			if g := &s.Generations[i]; largest == nil || g.Before-g.After > largest.Before-largest.After {
				a, largest = s.address, g
			}
		}
	}
	return a, largest
}

// Invalid counts the compacted histories that their provider would refuse.
func (s *SessionReport) Invalid() (n int) {
	for _, g := range s.Generations {
		if len(g.Violations) > 0 {
			n++
		}
	}
	return n
}

// Overflow is the turn with which the history, had it not been compacted, would have
// been larger than what its model takes; 0 if it never was. Between two turns that
// a worker published, tokens are shared out by the size of the payloads.
func (s *SessionReport) Overflow() int64 {
	var before sample
	for _, x := range s.samples {
		if x.whole > x.available {
			return s.crossing(before, x)
		}
		before = x
	}
	return 0
}

// crossing is the turn between two samples with which the second's limit is passed.
func (s *SessionReport) crossing(from, to sample) int64 {
	if from.turn >= to.turn || to.turn > int64(len(s.sizes)) {
		return to.turn
	}
	sizes := s.sizes[from.turn:to.turn]
	sum, part := 0, 0
	for _, n := range sizes {
		sum += n
	}
	for i, n := range sizes {
		part += n
		if from.whole+(to.whole-from.whole)*int64(part)/int64(sum) > to.available {
			return from.turn + int64(i) + 1
		}
	}
	return to.turn
}
