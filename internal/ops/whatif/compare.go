package whatif

import (
	"context"
	"reflect"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Choice is a policy of a comparison on one session, and what would have become of it.
type Choice struct {
	// Recorded is the published session: the first choice. Set has the fields as in --set; none is the policy
	// in force.
	Recorded bool     `json:"recorded,omitzero"`
	Set      []string `json:"set"`
	// Equal are further sets of the request with the same result.
	Equal [][]string `json:"equal,omitzero"`

	// Policy holds the fields that say when the session is compacted, and how far.
	Policy struct {
		Enabled     bool        `json:"enabled"`
		TriggerMode string      `json:"trigger_mode"`
		Threshold   measure.PPM `json:"threshold"`
		Target      measure.PPM `json:"target"`
		Info        measure.PPM `json:"info"`
	} `json:"policy"`
	// The same in tokens, at the end of the session.
	Available int64 `json:"available_input_tokens"`
	Trigger   int64 `json:"trigger_tokens"`
	Target    int64 `json:"target_tokens"`

	// Writer is the model whose prices summaries have, or embedded, which costs nothing; Unpriced
	// states that no list has its price.
	Writer   string `json:"summaries_by"`
	Unpriced bool   `json:"summaries_unpriced,omitzero"`

	*Figures

	config *compaction.Config
	end    End
}

// Embedded is the writer of summaries that costs nothing.
const Embedded = "embedded"

// Compare decides a session of a log again under policies: sets[i] names the fields in which configs[i] differs
// from the config in force. The first choice is the recording. A choice with the result of an earlier one is folded
// into that.
func Compare(ctx context.Context, s *Session, sets [][]string, configs []*compaction.Config, o Options) ([]*Choice, error) {
	o.Writer = s.writer(o.Writer)
	policies := []Policy{{Name: Recorded}}
	for _, c := range configs {
		policies = append(policies, Policy{Config: c})
	}
	sets = append([][]string{{}}, sets...)
	configs = append([]*compaction.Config{s.Events[len(s.Events)-1].Config}, configs...)
	r := NewReport(policies, o)
	if err := r.Add(ctx, s); err != nil {
		return nil, err
	}
	var out []*Choice
	for i, column := range r.Policies {
		c := &Choice{Recorded: i == 0, Set: sets[i], Figures: &column.Figures, config: configs[i], end: column.BySession[0].End}
		if !c.fold(out) {
			c.describe(o.Writer)
			out = append(out, c)
		}
	}
	return out, nil
}

// fold adds the choice to an earlier one that it equals.
func (c *Choice) fold(earlier []*Choice) bool {
	c.end.Policy.Locked = nil // fields of the request beside set
	for _, e := range earlier {
		if reflect.DeepEqual(c.end, e.end) && reflect.DeepEqual(c.Figures, e.Figures) {
			e.Equal = append(e.Equal, c.Set)
			return true
		}
	}
	return false
}

func (c *Choice) describe(writer func(*events.Job) string) {
	p, b := &c.end.Policy, &c.end.Budget
	c.Policy.Enabled, c.Policy.TriggerMode = p.Enabled, p.TriggerMode
	c.Policy.Threshold, c.Policy.Target, c.Policy.Info = p.Threshold, p.Target, p.Info
	c.Available, c.Trigger, c.Target = b.AvailableInput, b.TriggerTokens, b.TargetTokens
	if c.Writer = writer(&events.Job{Provider: p.Summarize.Provider, Model: p.Summarize.Model}); c.Writer == "" {
		c.Writer = Embedded
		return
	}
	_, priced := c.config.Prices.Of(c.Writer)
	c.Unpriced = !priced
}
