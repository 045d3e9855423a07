package whatif

import (
	"context"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/extent"
	"compactd/internal/ops/facts"
)

// Figures are what became of some sessions under one policy. Tokens are those of
// the one ruler, but for peak, saved and overflow, which are the policy's own, corrected by
// usage, as its outcomes have them. A call is counted after each turn, with what its history
// would have been by then.
type Figures struct {
	Calls int64 `json:"calls"`

	Compactions int                   `json:"compactions"`
	Stages      map[events.Stage]int  `json:"stages"`  // compactions that used one
	Reasons     map[events.Reason]int `json:"reasons"` // compactions
	// Nothing counts the times that nothing could be done at the trigger.
	Nothing int `json:"nothing_to_do"`

	Mean  measure.Tokens `json:"mean_tokens"` // of a call
	Peak  measure.Tokens `json:"peak_tokens"` // of any outcome
	Sent  measure.Tokens `json:"sent_tokens"` // of all calls together
	Saved measure.Tokens `json:"saved_tokens"`
	// Avoided is what all calls together would have carried besides, if nothing had been
	// taken off.
	Avoided measure.Tokens `json:"spared_tokens"`

	Summaries Summaries `json:"summaries"`
	Costs     Costs     `json:"costs"`

	// Blocked are turns after which the history was over the hard limit, by the
	// policy's own count; Over are calls too large for their model, by the ruler.
	Blocked int `json:"blocked"`
	Over    int `json:"over_window"`

	// Rereads are reads of files that a compaction had taken out of view, and Reruns other calls
	// that it had taken the results of.
	Rereads int64 `json:"rereads"`
	Reruns  int64 `json:"reruns"`

	// Overflow is the turn with which the history would no longer have fit its model
	// if nothing had been taken off; 0 is never, and for all sessions
	// together. Overflowing counts the sessions that have one.
	Overflow    int64 `json:"overflow_turn,omitzero"`
	Overflowing int   `json:"would_overflow"`

	// Facts counts, by kind, the facts of a session's turns so far that its history keeps. They are counted
	// after each tenth of the turns.
	Facts map[string]facts.Share `json:"facts"`

	Invalid  int `json:"invalid_histories"`
	Rejected int `json:"rejected_events"`
	// Diverged counts the sessions in which something else was published than was
	// recorded.
	Diverged int `json:"diverged_sessions"`

	taken measure.Tokens // off the history by now, by the ruler
}

// end takes what was published over the whole of a session.
func (f *Figures) end(t *extent.Tracker) {
	f.Peak, f.Saved, f.Overflow = measure.Tokens(t.Peak()), measure.Tokens(t.Saved()), t.Overflow()
	if f.Overflow > 0 {
		f.Overflowing = 1
	}
}

// Summaries are the requests of a policy to a summarizer.
type Summaries struct {
	Requested int `json:"requested"`
	Late      int `json:"late"` // requested at the trigger or after it: none was prepared
	Made      int `json:"made"`
	Failed    int `json:"failed"`
	Used      int `json:"used"` // put in place of their range
	// Input is read to make them, Output is their cost in a history.
	Input  measure.Tokens `json:"input_tokens"`
	Output measure.Tokens `json:"output_tokens"`
}

func newFigures() *Figures {
	f := &Figures{Stages: map[events.Stage]int{}, Reasons: map[events.Reason]int{}, Facts: map[string]facts.Share{}}
	for _, k := range facts.Kinds {
		f.Facts[k.Name] = facts.Share{}
	}
	return f
}

// carry counts a call.
func (f *Figures) carry(t, available measure.Tokens) {
	f.Calls++
	f.Sent += t
	f.Avoided += f.taken
	f.Mean = f.Sent / measure.Tokens(f.Calls)
	if t > available {
		f.Over++
	}
}

// kept looks for facts in a history.
func (f *Figures) kept(ctx context.Context, all *facts.Facts, history []dialect.Message) error {
	lines := facts.Lines(history)
	for _, k := range facts.Kinds {
		for _, fact := range k.Of(all) { // each in all of the history
			if err := ctx.Err(); err != nil { // it may let others compute
				return err
			}
			s, _ := lines.Holds([]facts.Probe{fact})
			f.Facts[k.Name] = f.Facts[k.Name].Plus(s)
		}
	}
	return nil
}

// add adds the figures of another session.
func (f *Figures) add(o *Figures) {
	f.Calls += o.Calls
	f.Compactions += o.Compactions
	for k, n := range o.Stages {
		f.Stages[k] += n
	}
	for k, n := range o.Reasons {
		f.Reasons[k] += n
	}
	f.Nothing += o.Nothing
	f.Peak = max(f.Peak, o.Peak)
	f.Sent += o.Sent
	f.Mean = f.Sent / measure.Tokens(max(1, f.Calls))
	f.Saved += o.Saved
	f.Avoided += o.Avoided
	f.Summaries.add(&o.Summaries)
	f.Costs.add(&o.Costs)
	f.Blocked += o.Blocked
	f.Over += o.Over
	f.Rereads += o.Rereads
	f.Reruns += o.Reruns
	f.Overflowing += o.Overflowing
	for k, s := range o.Facts {
		f.Facts[k] = f.Facts[k].Plus(s)
	}
	f.Invalid += o.Invalid
	f.Rejected += o.Rejected
	f.Diverged += o.Diverged
}

func (s *Summaries) add(o *Summaries) {
	s.Requested += o.Requested
	s.Late += o.Late
	s.Made += o.Made
	s.Failed += o.Failed
	s.Used += o.Used
	s.Input += o.Input
	s.Output += o.Output
}
