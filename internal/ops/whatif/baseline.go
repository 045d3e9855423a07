package whatif

import (
	"compactd/internal/compaction"
	"compactd/internal/compaction/policy"
)

// Baselines are columns to compare a policy with, by name: an agent that compacts nothing, and
// one that cuts its oldest messages at the trigger and down to the target of the policy.
var Baselines = map[string]func(*policy.Policy){
	"none": func(p *policy.Policy) { p.Enabled = false },
	"cut": func(p *policy.Policy) {
		p.Prune.Enabled, p.Deduplicate.Enabled, p.Summarize.Enabled, p.Restore.Enabled = false, false, false, false
		p.Cache.History = 0
	},
}

// Baseline is the column of a name of [Baselines] for the policy of a config.
func Baseline(name string, c *compaction.Config) (Policy, error) {
	p := c.Policy
	Baselines[name](&p)
	config, err := c.WithPolicy(p)
	return Policy{Name: name, Config: config}, err
}
