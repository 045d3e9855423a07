package compaction_test

import (
	"encoding/json"
	"maps"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

func init() {
	maps.Copy(answers, map[string]func(*vectorCase) any{
		"pruneToolOutputs":                           answerPrune,
		"deduplicateFileReads":                       answerDeduplicate,
		"truncateWithSlidingWindow":                  answerTruncate,
		"repairToolPairs":                            answerRepair,
		"ContextCompactor.compact":                   answerCompact,
		"ContextCompactor.compact.summarize":         answerSummarize,
		"SummarizationEngine.findSplitIndexByTokens": answerSplit,
	})
}

// stageInput is what the stages take.
type stageInput struct {
	Messages []events.Raw
	Config   struct {
		ProtectTokens, MinimumSavings *measure.Tokens
		ProtectedTools                *[]string
		Provider                      string
		Fraction                      *float64
		TargetTokens, CurrentTokens   *measure.Tokens

		EnablePrune, EnableDeduplicate, EnableTruncate *bool
		PruneProtectTokens, PruneMinimumSavings        *measure.Tokens
		PruneProtectedTools                            *[]string
		TruncationFraction                             *float64
	}
	TargetTokens measure.Tokens

	profile string
}

func (c *vectorCase) stage() (in stageInput, d *stage.Draft) {
	c.into(&in)
	in.profile = c.manner.profile
	return in, compaction.NewDraft(entriesOf(in.Messages), events.NeuroLink, c.manner.rate(in.Config.Provider))
}

// rendered writes what a draft or plan made of the messages.
func (in *stageInput) rendered(v *render.View) []json.RawMessage {
	texts := read(in.Messages)
	raws, _, err := render.Render(withRole(v, in.profile), func(measure.Seq) ([]events.Message, error) { return texts, nil })
	if err != nil {
		panic(err)
	}
	return asJSON(raws)
}

func asJSON(raws []events.Raw) []json.RawMessage {
	out := make([]json.RawMessage, len(raws))
	for i, r := range raws {
		out[i] = json.RawMessage(r)
	}
	return out
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func answerPrune(c *vectorCase) any {
	in, d := c.stage()
	before := d.Tokens()
	minimum := or(in.Config.MinimumSavings, c.manner.MinimumTokens)
	d.Prune(or(in.Config.ProtectTokens, 40_000), minimum, or(in.Config.ProtectedTools, []string{"skill"}))
	saved := before - d.Tokens()
	return fields{"pruned": saved >= minimum, "tokensSaved": saved, "messages": in.rendered(draftView(d, events.NeuroLink))}
}

func answerDeduplicate(c *vectorCase) any {
	in, d := c.stage()
	d.Deduplicate(300_000)
	files := map[measure.Key]bool{}
	for _, e := range d.Entries() {
		if e.Op == measure.OpDeduplicate {
			files[e.Path] = true
		}
	}
	return fields{"deduplicated": len(d.Edits()) > 0, "filesDeduped": len(files), "messages": in.rendered(draftView(d, events.NeuroLink))}
}

// noTarget is a target that no cut reaches: the fraction decides.
const noTarget = -1 << 40

func answerTruncate(c *vectorCase) any {
	in, d := c.stage()
	target := measure.Tokens(noTarget)
	if in.Config.TargetTokens != nil && c.manner != mannerOfSeed { // which ignores it
		target = *in.Config.TargetTokens - c.manner.rate(in.Config.Provider).PerConversation
	}
	before := len(in.Messages)
	d.Truncate(target, measure.PPM(or(in.Config.Fraction, 0.5)*1e6+0.5))
	if before <= 4 && target != noTarget && d.Tokens() > target {
		d.Trim(target, 0)
	}
	messages := in.rendered(draftView(d, events.NeuroLink))
	cut := len(d.Edits()) > 0
	removed := 0
	if cut && before > 4 {
		removed = before + 1 - len(messages)
	}
	return fields{"truncated": cut, "messagesRemoved": removed, "messages": messages}
}

func answerRepair(c *vectorCase) any {
	in, d := c.stage()
	d.Repair()
	count := counted(d.Edits())
	return fields{
		"repaired": len(d.Edits()) > 0, "orphanedCallsFixed": count[events.OpAnswer], "orphanedResultsFixed": count[events.OpCall],
		"messages": in.rendered(draftView(d, events.NeuroLink)),
	}
}

// policy is the policy that a compaction of the record ran under.
func (in *stageInput) policy(m *manner) policy.Policy {
	p := withoutSummaries()
	p.Prune.ScaleBelow, p.Prune.ToTarget = 0, false
	p.ToolOutput.MaxBytes = 0 // the reference limits outputs when they arrive (B14), and never again
	p.Prune.Enabled = or(in.Config.EnablePrune, true)
	p.Prune.ProtectTokens = or(in.Config.PruneProtectTokens, 40_000)
	p.Prune.MinimumTokens = or(in.Config.PruneMinimumSavings, m.MinimumTokens)
	p.Prune.ProtectedTools = or(in.Config.PruneProtectedTools, []string{"skill"})
	p.Deduplicate.Enabled = or(in.Config.EnableDeduplicate, true)
	p.Truncate.Enabled = or(in.Config.EnableTruncate, true)
	p.Truncate.Fraction = measure.PPM(or(in.Config.TruncationFraction, 0.5)*1e6 + 0.5)
	return p
}

func answerCompact(c *vectorCase) any {
	in, _ := c.stage()
	p, r := in.policy(c.manner), c.manner.rate(in.Config.Provider)
	plan := makePlan(entriesOf(in.Messages), events.NeuroLink, r, &p, 128_000, in.TargetTokens-r.PerConversation)
	out := in.compacted(c.manner, plan, read(in.Messages), nil)
	if c.manner != mannerOfSeed { // which was not given
		count := counted(plan.Edits)
		out["repaired"] = fields{
			"repaired":           count[events.OpAnswer]+count[events.OpCall] > 0,
			"orphanedCallsFixed": count[events.OpAnswer], "orphanedResultsFixed": count[events.OpCall],
			"messageCount": len(out["messages"].([]json.RawMessage)),
		}
	}
	return out
}

func counted(edits []events.Edit) map[events.Op]int {
	count := map[events.Op]int{}
	for _, e := range edits {
		count[e.Op]++
	}
	return count
}

// compacted is what a plan did, in the words of the record. The summary is at
// sequence 2, the messages at 1.
func (in *stageInput) compacted(m *manner, plan stage.Plan, texts []events.Message, summary *events.Summary) fields {
	raws, _, err := render.Render(withRole(planView(plan, events.NeuroLink), m.profile), func(seq measure.Seq) ([]events.Message, error) {
		if seq == 2 {
			return []events.Message{summary.Message()}, nil
		}
		return texts, nil
	})
	if err != nil {
		panic(err)
	}
	framing := m.rate(in.Config.Provider).PerConversation
	if len(in.Messages) == 0 {
		framing = 0
	}
	return fields{
		"compacted": len(plan.Used) > 0, "stagesUsed": append([]events.Stage{}, plan.Used...),
		"tokensBefore": plan.Before + framing, "tokensAfter": plan.After + framing, "tokensSaved": plan.Before - plan.After,
		"messages": asJSON(raws),
	}
}

// summaryInput is the part of a compaction with a summarizer that contains what it
// answered.
type summaryInput struct {
	Summarizer struct {
		Reply string
		Fail  bool
	}
}

// answerSummarize plans with the cheap stages alone; if they do not do, a summary
// is requested; with it, or without it when it failed, the plan is made again.
func answerSummarize(c *vectorCase) any {
	in, _ := c.stage()
	var recorded summaryInput
	c.into(&recorded)
	p, r := in.policy(c.manner), c.manner.rate(in.Config.Provider)
	target := in.TargetTokens - r.PerConversation
	cheap := p
	cheap.Truncate.Enabled = false
	plan := makePlan(entriesOf(in.Messages), events.NeuroLink, r, &cheap, 128_000, target)
	called := false
	summary := &events.Summary{Text: recorded.Summarizer.Reply}
	if plan.After > target {
		entries := plan.Entries
		d := compaction.NewDraft(entries, events.NeuroLink, r)
		size := size(summary.Message().Parts[0].Text)
		ceiling := r.Text(size) + r.PerMessage
		var end int
		end, called = condensable(d, target-ceiling, ceiling)
		plan = makePlan(entriesOf(in.Messages), events.NeuroLink, r, &p, 128_000, target)
		if called && !recorded.Summarizer.Fail {
			to := entries[end-1].End()
			to.Part = 0
			plan = compaction.PlanWithSummary(entriesOf(in.Messages), events.NeuroLink, r, &p, target, 2, to, size)
		}
	}
	out := in.compacted(c.manner, plan, read(in.Messages), summary)
	out["summarizerCalled"], out["incrementalPrompt"] = called, false
	return out
}

// answerSplit computes which messages a summary would replace. The record counts with
// an estimator of its own: a quarter more, no framing.
func answerSplit(c *vectorCase) any {
	var in struct {
		Messages           []events.Raw
		TargetRecentTokens float64
	}
	c.into(&in)
	r := measure.NewRate(measure.Profile{TextUnits: 4, ResultUnits: 4, MarginPercent: 125}, "")
	entries := entriesOf(in.Messages)
	d := compaction.NewDraft(entries, events.NeuroLink, r)
	total, split := d.Tokens(), 0
	if end, ok := condensable(d, measure.Tokens(in.TargetRecentTokens), 0); ok {
		split = int(entries[end-1].Index) + 1
	}
	return fields{"splitIndex": split, "totalTokens": total}
}
