package whatif

import (
	"context"
	"fmt"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/transcript"
)

// Recorded is the name of the column that states what was published when the sessions
// were recorded.
const Recorded = "recorded"

// Delay is the default time of a summary.
const Delay = time.Minute

// Policy is one column of a report. Without a Config it is the recorded one.
type Policy struct {
	Name   string
	Config *compaction.Config
}

// Options say how the simulation around the sessions is simulated.
type Options struct {
	// Delay is the time of a summary, in the time of the log.
	Delay time.Duration
	// Largest keeps, of the first policy, the compaction that took most off.
	Largest bool
	// NoFacts looks for no facts, which takes half of the time.
	NoFacts bool
	// Writer is the model that writes the summary of a job, as provider/model, and whose prices it
	// has; "" is the embedded summarizer, which costs nothing. Nil: the model of the session. A session of a
	// log with a summary has the writer of that.
	Writer func(*events.Job) string
}

// Report compares policies over some sessions.
type Report struct {
	Sessions int `json:"sessions"`
	// LeftOut counts the sessions that could not be decided again, by why.
	LeftOut map[string]int `json:"left_out,omitzero"`

	SummarySeconds float64   `json:"summary_seconds"`
	Policies       []*Column `json:"policies"`

	delay   int64
	options Options
	largest *diff.Change // nil where it is not kept
	gaps    transcript.Gaps
}

// Column has the results of one policy.
type Column struct {
	Name   string `json:"name"`
	Config string `json:"config,omitzero"` // its hash; "" for what was recorded
	Figures
	BySession []SessionFigures `json:"by_session"`

	config *compaction.Config
}

// SessionFigures are those of one session.
type SessionFigures struct {
	Tenant  string `json:"tenant"`
	Session string `json:"session"`
	// Missing counts what the recording lacks, by kind.
	Missing map[string]int `json:"missing,omitzero"`
	*Figures

	// End is the session after its last event.
	End End `json:"-"`
}

// End is the end of a session under a policy.
type End struct {
	Policy policy.Policy // of the session: with the fields that it set itself
	Budget events.Budget
}

// NewReport is a report of no sessions yet.
func NewReport(policies []Policy, o Options) *Report {
	r := &Report{SummarySeconds: o.Delay.Seconds(), delay: o.Delay.Milliseconds(), options: o}
	if o.Largest {
		r.largest = &diff.Change{}
	}
	for _, p := range policies {
		c := &Column{Name: p.Name, Figures: *newFigures(), BySession: []SessionFigures{}, config: p.Config}
		if p.Config != nil {
			c.Config = p.Config.Hash()
		}
		r.Policies = append(r.Policies, c)
	}
	return r
}

// Add plays a session under each policy.
func (r *Report) Add(ctx context.Context, s *Session) error {
	var paid *paid
	for i, c := range r.Policies {
		w := newSimulation(s, c.config, r.delay)
		w.noFacts, w.writer = r.options.NoFacts, s.writer(r.options.Writer)
		if i == 0 {
			w.largest = r.largest
		}
		f, err := w.run(ctx)
		if err != nil {
			return fmt.Errorf("play session %s under %s: %w", s.Address, c.Name, err)
		}
		if c.config == nil { // in front of the policies that are compared with it
			paid = w.recorded()
		}
		f.Costs.scale(paid)
		c.add(f)
		c.BySession = append(c.BySession, SessionFigures{s.Address.Tenant, s.Address.Session, s.Missing, f, w.end()})
	}
	r.Sessions++
	r.gaps.Add(s.Missing)
	return nil
}

// LeaveOut counts a session that cannot be played, and why.
func (r *Report) LeaveOut(why string) {
	if r.LeftOut == nil {
		r.LeftOut = map[string]int{}
	}
	r.LeftOut[why]++
}

// Invalid counts the histories that their provider would refuse, under all policies together.
// Each is a defect.
func (r *Report) Invalid() (n int) {
	for _, c := range r.Policies {
		n += c.Figures.Invalid
	}
	return n
}
