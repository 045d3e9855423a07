package replay

import (
	"testing"

	"compactd/internal/events"
)

// Where a history would have overflowed: what compactions saved is added to what
// was published after them, and the turns between two figures have their share by size.
func TestOverflow(t *testing.T) {
	compacted := func(turn, before, after int64) *events.Compacted {
		return &events.Compacted{
			Compacted: true, Through: events.Through{Turn: turn}, TokensBefore: before, TokensAfter: after, AvailableInput: 1000, Format: events.OpenAI,
		}
	}
	level := func(turn, input int64) *events.BudgetChanged {
		return &events.BudgetChanged{Through: events.Through{Turn: turn}, Budget: events.Budget{EstimatedInput: input, AvailableInput: 1000}}
	}
	for name, test := range map[string]struct {
		outcomes []any
		end      int64
		overflow int64
		peak     int64
		saved    int64
	}{
		"fits":                             {end: 900, peak: 900},
		"nothing is known":                 {},
		"compacted, and would have fit":    {outcomes: []any{compacted(6, 800, 600)}, end: 700, peak: 800, saved: 200},
		"in the first turns":               {outcomes: []any{compacted(2, 1200, 100)}, end: 500, overflow: 2, peak: 1200, saved: 1100},
		"between turns of one size":        {outcomes: []any{compacted(5, 800, 300)}, end: 800, overflow: 8, peak: 800, saved: 500},
		"a level after the compaction":     {outcomes: []any{compacted(5, 800, 300), level(5, 300)}, end: 800, overflow: 8, peak: 800, saved: 500},
		"a level before":                   {outcomes: []any{level(4, 700), compacted(5, 800, 300)}, end: 800, overflow: 8, peak: 800, saved: 500},
		"two compactions":                  {outcomes: []any{compacted(5, 800, 500), compacted(9, 800, 300)}, end: 350, overflow: 8, peak: 800, saved: 800},
		"one that changed nothing":         {outcomes: []any{&events.Compacted{Through: events.Through{Turn: 5}, TokensBefore: 1500, AvailableInput: 1000}}, overflow: 4, peak: 1500},
		"turns that the log no longer has": {outcomes: []any{compacted(40, 1500, 500)}, overflow: 40, peak: 1500, saved: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			s := &SessionReport{}
			for range 10 {
				s.Turn(10)
			}
			for _, o := range test.outcomes {
				s.note(o)
			}
			if test.end > 0 {
				s.end(&events.StatsResponse{Known: true, Through: events.Through{Turn: 10}, Budget: events.Budget{EstimatedInput: test.end, AvailableInput: 1000}})
			}
			if s.Overflow() != test.overflow || s.Peak() != test.peak || s.Saved() != test.saved {
				t.Errorf("overflow at %d, peak %d, saved %d; want %d, %d, %d", s.Overflow(), s.Peak(), s.Saved(), test.overflow, test.peak, test.saved)
			}
		})
	}
}
