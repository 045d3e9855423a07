package stage_test

import (
	"encoding/json"
	"math"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/testkit/reference"
)

// Our answers, compared with what the reference system answered (docs/comparison.md).
func TestConformance(t *testing.T) { suite.Run(t) }

var suite = reference.Suite{
	Answers: map[string]func(*reference.Case) any{
		"pruneToolOutputs":                           answerPrune,
		"deduplicateFileReads":                       answerDeduplicate,
		"truncateWithSlidingWindow":                  answerTruncate,
		"repairToolPairs":                            answerRepair,
		"ContextCompactor.compact":                   answerCompact,
		"ContextCompactor.compact.summarize":         answerSummarize,
		"SummarizationEngine.findSplitIndexByTokens": answerSplit,
		"emergencyContentTruncation":                 answerEmergency,
	},
	Rules: []reference.Rule{
		reference.Namesakes,
		reference.NewRule("B3", "pruneToolOutputs", "a result that is shorter than its placeholder stays", clearsShort, keepsShort),
		reference.NewRule("B5", "deduplicateFileReads", "only results are reads; words such as \"thread pool\" are no path; a second pass changes nothing", reference.Always, dedupeIsSound),
		reference.NewRule("B6", "SummarizationEngine.findSplitIndexByTokens", "the newest message stays, and a call with its results", reference.Always, splitIsSound),
		reference.NewRule("B7", "truncateWithSlidingWindow", "the smallest cut that fits; the first exchange is whole; a call stays with its results", isLong, historyIsSound),
		reference.NewRule("B8", "truncateWithSlidingWindow", "contents are cut in proportion and never grow; a small gain is kept", reference.Always, smallIsSound),
		reference.NewRule("B9", "emergencyContentTruncation", "cut at boundaries, the dots counted, never to nothing", reference.Always, emergencyIsSound),
		reference.NewRule("B10", "repairToolPairs", "parallel calls find their results; calls open at the end await theirs", reference.Always, repairIsSound),
		reference.NewRule("B10", "ContextCompactor.compact", "messages without words are left out", lacksBlanks, compactedIsSound),
		reference.NewRule("B10", "ContextCompactor.compact.summarize", "messages without words are left out", lacksBlanks, compactedIsSound),
		reference.NewRule("B8", "ContextCompactor.compact", "contents of four messages or less are cut in proportion", isShort, smallCompactIsSound),
		reference.NewRule("B8", "ContextCompactor.compact.summarize", "contents of four messages or less are cut in proportion", isShort, smallCompactIsSound),
		reference.NewRule("B10", "ContextCompactor.compact", "repair is part of a compaction: parallel calls stay, open calls at the end too", recordNeedsRepair, compactedIsSound),
		reference.NewRule("B5", "ContextCompactor.compact", "only results of tools are reads", used(events.StageDeduplicate), compactedIsSound),
		reference.NewRule("B7", "ContextCompactor.compact", "the smallest cut that fits; the first exchange is whole", used(events.StageTruncate), compactedIsSound),
		reference.NewRule("C2b", "ContextCompactor.compact.summarize", "framed as a condensed summary; the newest message stays; a call with its results", reference.Always, compactedIsSound),
	},
}

// stageInput is what the stages take.
type stageInput struct {
	Messages []codec.Raw
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

func stageOf(c *reference.Case) (in stageInput, d *stage.Draft) {
	c.Into(&in)
	in.profile = c.Release.Profile
	return in, stage.NewDraft(reference.Entries(in.Messages), events.NeuroLink, c.Release.Rate(in.Config.Provider))
}

// rendered writes what a draft or plan made of the messages.
func (in *stageInput) rendered(entries []measure.Entry) []json.RawMessage {
	texts := reference.Read(in.Messages)
	return rendered(entries, in.profile, func(measure.Seq) ([]dialect.Message, error) { return texts, nil })
}

// rendered writes entries as a profile has them rendered.
func rendered(entries []measure.Entry, profile string, texts render.Texts) []json.RawMessage {
	raws, _, err := render.Render(&render.View{
		Format: events.NeuroLink, Entries: entries, Uncited: stage.Uncite(entries, math.MaxInt64),
		PlaceholderRole: measure.CustomOf(profile).PlaceholderRole,
	}, texts)
	if err != nil {
		panic(err)
	}
	return reference.AsJSON(raws)
}

func answerPrune(c *reference.Case) any {
	in, d := stageOf(c)
	before := d.Tokens()
	minimum := reference.Or(in.Config.MinimumSavings, c.Release.MinimumTokens)
	d.Prune(reference.Or(in.Config.ProtectTokens, 40_000), minimum, reference.Or(in.Config.ProtectedTools, []string{"skill"}))
	saved := before - d.Tokens()
	return reference.Fields{"pruned": saved >= minimum, "tokensSaved": saved, "messages": in.rendered(d.Entries())}
}

func answerDeduplicate(c *reference.Case) any {
	in, d := stageOf(c)
	d.Deduplicate(300_000)
	files := map[dialect.Key]bool{}
	for _, e := range d.Entries() {
		if e.Op == measure.OpDeduplicate {
			files[e.Path] = true
		}
	}
	return reference.Fields{"deduplicated": len(d.Edits()) > 0, "filesDeduped": len(files), "messages": in.rendered(d.Entries())}
}

// noTarget is a target that no cut reaches: the fraction decides.
const noTarget = -1 << 40

func answerTruncate(c *reference.Case) any {
	in, d := stageOf(c)
	target := measure.Tokens(noTarget)
	if in.Config.TargetTokens != nil && c.Release != reference.Seed { // which ignores it
		target = *in.Config.TargetTokens - c.Release.Rate(in.Config.Provider).PerConversation
	}
	before := len(in.Messages)
	d.Truncate(target, measure.PPM(reference.Or(in.Config.Fraction, 0.5)*1e6+0.5))
	if before <= 4 && target != noTarget && d.Tokens() > target {
		d.Trim(target, 0)
	}
	messages := in.rendered(d.Entries())
	cut := len(d.Edits()) > 0
	removed := 0
	if cut && before > 4 {
		removed = before + 1 - len(messages)
	}
	return reference.Fields{"truncated": cut, "messagesRemoved": removed, "messages": messages}
}

func answerRepair(c *reference.Case) any {
	in, d := stageOf(c)
	d.Repair()
	count := counted(d.Edits())
	return reference.Fields{
		"repaired": len(d.Edits()) > 0, "orphanedCallsFixed": count[events.OpAnswer], "orphanedResultsFixed": count[events.OpCall],
		"messages": in.rendered(d.Entries()),
	}
}

// targeted plans for a target, with every stage but a summary.
func targeted(entries []measure.Entry, f events.Format, r measure.Rate, p *policy.Policy, window, target measure.Tokens) stage.Plan {
	return stage.MakePlan(historyOf(entries, f, r), p, window, stage.Means{
		Target: target, Truncate: true, Whole: target, Enough: target, WholeEnough: target,
	})
}

// historyOf is a history of entries, for a plan.
func historyOf(entries []measure.Entry, f events.Format, r measure.Rate) stage.History {
	return stage.History{View: func(out []measure.Entry) []measure.Entry { return append(out, entries...) }, Format: f, Rate: r}
}

// condensable is the range that a summary of at most ceiling tokens would take the
// place of: the entry behind it, and whether it is worth it.
func condensable(d *stage.Draft, recent, ceiling measure.Tokens) (end int, ok bool) {
	end, saved, _ := d.Condensable(recent, math.MaxInt64)
	return end, end > 0 && saved > ceiling
}

// policy is the policy that a compaction of the record ran under.
func (in *stageInput) policy(m *reference.Release) policy.Policy {
	p := policy.Default()
	p.Summarize.Enabled = false
	p.Prune.ScaleBelow, p.Prune.ToTarget = 0, false
	p.ToolOutput.MaxBytes = 0 // the reference limits outputs when they arrive (B14), and never again
	p.Prune.Enabled = reference.Or(in.Config.EnablePrune, true)
	p.Prune.ProtectTokens = reference.Or(in.Config.PruneProtectTokens, 40_000)
	p.Prune.MinimumTokens = reference.Or(in.Config.PruneMinimumSavings, m.MinimumTokens)
	p.Prune.ProtectedTools = reference.Or(in.Config.PruneProtectedTools, []string{"skill"})
	p.Deduplicate.Enabled = reference.Or(in.Config.EnableDeduplicate, true)
	p.Truncate.Enabled = reference.Or(in.Config.EnableTruncate, true)
	p.Truncate.Fraction = measure.PPM(reference.Or(in.Config.TruncationFraction, 0.5)*1e6 + 0.5)
	return p
}

func answerCompact(c *reference.Case) any {
	in, _ := stageOf(c)
	p, r := in.policy(c.Release), c.Release.Rate(in.Config.Provider)
	plan := targeted(reference.Entries(in.Messages), events.NeuroLink, r, &p, 128_000, in.TargetTokens-r.PerConversation)
	out := in.compacted(c.Release, plan, reference.Read(in.Messages), nil)
	if c.Release != reference.Seed { // which was not given
		count := counted(plan.Edits)
		out["repaired"] = reference.Fields{
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
func (in *stageInput) compacted(m *reference.Release, plan stage.Plan, texts []dialect.Message, summary *events.Summary) reference.Fields {
	messages := rendered(plan.Entries, m.Profile, func(seq measure.Seq) ([]dialect.Message, error) {
		if seq == 2 {
			return []dialect.Message{summary.Message()}, nil
		}
		return texts, nil
	})
	framing := m.Rate(in.Config.Provider).PerConversation
	if len(in.Messages) == 0 {
		framing = 0
	}
	return reference.Fields{
		"compacted": len(plan.Used) > 0, "stagesUsed": append([]events.Stage{}, plan.Used...),
		"tokensBefore": plan.Before + framing, "tokensAfter": plan.After + framing, "tokensSaved": plan.Before - plan.After,
		"messages": messages,
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
func answerSummarize(c *reference.Case) any {
	in, _ := stageOf(c)
	var recorded summaryInput
	c.Into(&recorded)
	p, r := in.policy(c.Release), c.Release.Rate(in.Config.Provider)
	target := in.TargetTokens - r.PerConversation
	cheap := p
	cheap.Truncate.Enabled = false
	plan := targeted(reference.Entries(in.Messages), events.NeuroLink, r, &cheap, 128_000, target)
	called := false
	summary := &events.Summary{Text: recorded.Summarizer.Reply}
	if plan.After > target {
		entries := plan.Entries
		d := stage.NewDraft(entries, events.NeuroLink, r)
		size := reference.Size(summary.Message().Parts[0].Text)
		ceiling := r.Text(size) + r.PerMessage
		var end int
		end, called = condensable(d, target-ceiling, ceiling)
		plan = targeted(reference.Entries(in.Messages), events.NeuroLink, r, &p, 128_000, target)
		if called && !recorded.Summarizer.Fail {
			to := entries[end-1].End()
			to.Part = 0
			plan = stage.MakePlan(historyOf(reference.Entries(in.Messages), events.NeuroLink, r), &p, 0, stage.Means{
				Target: target, Whole: target, Summary: &stage.Summary{Seq: 2, To: to, Units: size}, Truncate: true,
			})
		}
	}
	out := in.compacted(c.Release, plan, reference.Read(in.Messages), summary)
	out["summarizerCalled"], out["incrementalPrompt"] = called, false
	return out
}

// answerSplit computes which messages a summary would replace. The record counts with
// an estimator of its own: a quarter more, no framing.
func answerSplit(c *reference.Case) any {
	var in struct {
		Messages           []codec.Raw
		TargetRecentTokens float64
	}
	c.Into(&in)
	r := measure.NewRate(measure.Profile{TextUnits: 4, ResultUnits: 4, MarginPercent: 125}, "")
	entries := reference.Entries(in.Messages)
	d := stage.NewDraft(entries, events.NeuroLink, r)
	total, split := d.Tokens(), 0
	if end, ok := condensable(d, measure.Tokens(in.TargetRecentTokens), 0); ok {
		split = int(entries[end-1].Index) + 1
	}
	return reference.Fields{"splitIndex": split, "totalTokens": total}
}

// emergencyInput is a history with what is available for the whole call.
type emergencyInput struct {
	Messages        []codec.Raw
	AvailableTokens measure.Tokens
	Provider        string
	Breakdown       struct{ SystemPrompt, CurrentPrompt, ToolDefinitions, FileAttachments measure.Tokens }
}

// room is what the history may cost, framing included.
func (in *emergencyInput) room() measure.Tokens {
	b := &in.Breakdown
	return in.AvailableTokens - b.SystemPrompt - b.CurrentPrompt - b.ToolDefinitions - b.FileAttachments
}

// answerEmergency cuts contents until they fit beside what else the call holds.
func answerEmergency(c *reference.Case) any {
	var in emergencyInput
	c.Into(&in)
	r := c.Release.Rate(in.Provider)
	d := stage.NewDraft(reference.Entries(in.Messages), events.NeuroLink, r)
	if target := in.room() - r.PerConversation; d.Tokens() > target {
		d.Trim(target, 0)
	}
	return reference.Fields{"messages": (&stageInput{Messages: in.Messages}).rendered(d.Entries())}
}
