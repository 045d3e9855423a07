package compaction_test

import (
	"encoding/json"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

func init() {
	for name, answer := range map[string]func(*vectorCase) any{
		"pruneToolOutputs":          answerPrune,
		"deduplicateFileReads":      answerDeduplicate,
		"truncateWithSlidingWindow": answerTruncate,
		"repairToolPairs":           answerRepair,
		"ContextCompactor.compact":  answerCompact,
	} {
		answers[name] = answer
	}
}

// stageInput is what the stages take.
type stageInput struct {
	Messages []events.Raw
	Config   struct {
		ProtectTokens, MinimumSavings *compaction.Tokens
		ProtectedTools                *[]string
		Provider                      string
		Fraction                      *float64
		TargetTokens, CurrentTokens   *compaction.Tokens

		EnablePrune, EnableDeduplicate, EnableTruncate *bool
		PruneProtectTokens, PruneMinimumSavings        *compaction.Tokens
		PruneProtectedTools                            *[]string
		TruncationFraction                             *float64
	}
	TargetTokens compaction.Tokens
}

func (c *vectorCase) stage() (in stageInput, d *compaction.Draft) {
	c.into(&in)
	return in, compaction.NewDraft(entriesOf(in.Messages), events.NeuroLink, c.manner.rate(in.Config.Provider))
}

// rendered writes what a draft or plan made of the messages.
func (in *stageInput) rendered(v *compaction.View) []json.RawMessage {
	texts := read(in.Messages)
	raws, err := compaction.Render(v, func(compaction.Seq) ([]events.Message, error) { return texts, nil })
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
	d.Prune(or(in.Config.ProtectTokens, 40_000), or(in.Config.MinimumSavings, c.manner.minimum), or(in.Config.ProtectedTools, []string{"skill"}))
	return fields{"pruned": len(d.Edits()) > 0, "tokensSaved": before - d.Tokens(), "messages": in.rendered(d.View())}
}

func answerDeduplicate(c *vectorCase) any {
	in, d := c.stage()
	d.Deduplicate(300_000)
	files := map[compaction.Key]bool{}
	for _, e := range d.View().Entries() {
		if e.Deduplicated() {
			files[e.Path] = true
		}
	}
	return fields{"deduplicated": len(d.Edits()) > 0, "filesDeduped": len(files), "messages": in.rendered(d.View())}
}

// noTarget is a target that no cut reaches: the fraction decides.
const noTarget = -1 << 40

func answerTruncate(c *vectorCase) any {
	in, d := c.stage()
	target := compaction.Tokens(noTarget)
	if in.Config.TargetTokens != nil && c.manner != mannerOfSeed { // which ignores it
		target = *in.Config.TargetTokens - c.manner.rate(in.Config.Provider).PerConversation
	}
	before := len(in.Messages)
	d.Truncate(target, compaction.PPM(or(in.Config.Fraction, 0.5)*1e6+0.5))
	messages := in.rendered(d.View())
	cut := len(d.Edits()) > 0
	removed := 0
	if cut {
		removed = before + 1 - len(messages)
	}
	return fields{"truncated": cut, "messagesRemoved": removed, "messages": messages}
}

func answerRepair(c *vectorCase) any {
	in, d := c.stage()
	d.Repair()
	count := map[events.Op]int{}
	for _, e := range d.Edits() {
		count[e.Op]++
	}
	return fields{
		"repaired": len(d.Edits()) > 0, "orphanedCallsFixed": count[events.OpAnswer], "orphanedResultsFixed": count[events.OpCall],
		"messages": in.rendered(d.View()),
	}
}

func answerCompact(c *vectorCase) any {
	in, _ := c.stage()
	p := withoutSummaries()
	p.Prune.ScaleBelow = 0
	p.Prune.Enabled = or(in.Config.EnablePrune, true)
	p.Prune.ProtectTokens = or(in.Config.PruneProtectTokens, 40_000)
	p.Prune.MinimumTokens = or(in.Config.PruneMinimumSavings, c.manner.minimum)
	p.Prune.ProtectedTools = or(in.Config.PruneProtectedTools, []string{"skill"})
	p.Deduplicate.Enabled = or(in.Config.EnableDeduplicate, true)
	p.Truncate.Enabled = or(in.Config.EnableTruncate, true)
	p.Truncate.Fraction = compaction.PPM(or(in.Config.TruncationFraction, 0.5)*1e6 + 0.5)
	r := c.manner.rate(in.Config.Provider)
	plan := compaction.MakePlan(entriesOf(in.Messages), events.NeuroLink, r, &p, 128_000, in.TargetTokens-r.PerConversation)
	messages := in.rendered(plan.View(events.NeuroLink))
	framing := r.PerConversation
	if len(in.Messages) == 0 {
		framing = 0
	}
	return fields{
		"compacted": len(plan.Used) > 0, "stagesUsed": append([]events.Stage{}, plan.Used...),
		"tokensBefore": plan.Before + framing, "tokensAfter": plan.After + framing, "tokensSaved": plan.Before - plan.After,
		"messages": messages,
	}
}
