package replay

import (
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/ops/extent"
	"compactd/internal/ops/transcript"
)

// SessionReport is the result of one session.
type SessionReport struct {
	Name        string
	Turns       int
	Messages    int
	Generations []Generation
	Rejected    []events.Code
	Repeated    int64 // calls that repeat one whose result a compaction had taken out of view
	Cost        events.Cost
	// Missing counts what the recording lacks, by kind.
	Missing map[string]int

	extent.Tracker

	address    events.Address
	last       uint64 // sequence of its last turn
	repeated   bool   // the server had one of its turns
	generation int64  // after its last turn
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
}

func newSessionReport(a events.Address, s transcript.Session) *SessionReport {
	r := &SessionReport{Name: s.Name, Turns: len(s.Turns), Missing: s.Missing, address: a}
	for _, t := range s.Turns {
		r.Messages += len(t.Messages)
		r.Turn(len(t.Payload))
	}
	return r
}

// note takes an outcome, and returns its compaction, nil without one.
func (s *SessionReport) note(body any) *events.Compacted {
	s.Note(body)
	switch b := body.(type) {
	case *events.Rejected:
		s.Rejected = append(s.Rejected, b.Code)
	case *events.Compacted:
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
		s.Repeated, s.Cost, s.generation = stats.Rereads+stats.Reruns, stats.Cost, stats.Generation
		s.State(stats.Through.Turn, stats.Budget)
	}
}

func generation(b *events.Compacted) Generation {
	return Generation{
		Number: b.Generation, Turn: b.Through.Turn, Reason: b.Reason, Stages: b.StagesUsed, Before: b.TokensBefore, After: b.TokensAfter,
		Messages: len(b.Messages), Violations: validate.Messages(b.Format, b.Messages),
	}
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
