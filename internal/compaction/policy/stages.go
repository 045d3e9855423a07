package policy

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Prune is the policy of the first stage.
type Prune struct {
	Enabled bool `json:"enabled"`
	// ProtectTokens of the newest results stay whole; MinimumTokens is the least saving of clearing. Both
	// hold for windows of ScaleBelow tokens and more and shrink in proportion below; 0 never shrinks them.
	ProtectTokens measure.Tokens `json:"protect_tokens"`
	MinimumTokens measure.Tokens `json:"minimum_tokens"`
	ScaleBelow    measure.Tokens `json:"scale_below"`
	// ToTarget clears no more than the target needs, the greatest burdens first, and lets a summary keep
	// entries that fit below the target. Without it all results outside ProtectTokens are cleared, and a
	// summary hides its whole range.
	ToTarget bool `json:"to_target"`
	// ProtectedTools are tools whose results are never cleared.
	ProtectedTools []string `json:"protected_tools"`
	// Micro is the first step of the stage.
	Micro Micro `json:"micro"`
}

// Scaled shrinks a number of tokens in proportion for small windows.
func (p Prune) Scaled(n, window measure.Tokens) measure.Tokens {
	return measure.Scaled(n, window, p.ScaleBelow)
}

// EveryTurn reports whether results are cleared after every turn.
func (p *Prune) EveryTurn() bool { return p.Enabled && p.Micro.Enabled && p.Micro.EveryTurn }

// IdleAfter is the time without a turn after which results of its tools are cleared, in milliseconds; 0 is
// never.
func (p *Prune) IdleAfter() int64 {
	if !p.Enabled || !p.Micro.Enabled {
		return 0
	}
	return p.Micro.IdleMinutes * 60_000
}

// Micro is the policy of micro-compaction: the first step of prune, which
// clears old results of some tools whatever their size.
type Micro struct {
	Enabled bool `json:"enabled"`
	// In a history of FromMessages or more, results outside the newest KeepMessages are cleared.
	FromMessages int64 `json:"from_messages"`
	KeepMessages int64 `json:"keep_messages"`
	// Tools are the tools whose results are cleared, by exact name.
	Tools []string `json:"tools"`
	// EveryTurn clears after each turn, not at the trigger only. It breaks the
	// provider's cache each time.
	EveryTurn bool `json:"every_turn"`
	// After IdleMinutes without a turn the provider's cache is cold, and all but
	// the newest IdleKeep of these results are cleared; 0 minutes never does.
	IdleMinutes int64 `json:"idle_minutes"`
	IdleKeep    int64 `json:"idle_keep"`
}

// ToolOutput bounds one result of a tool. It is part of the first stage.
type ToolOutput struct {
	// When results are cut: at a compaction, after the agent has answered them, or on arrival, before.
	When string `json:"when"`
	// A result of more than MaxBytes of UTF-8 is cut to MaxBytes, and one of more than MaxLines to MaxLines,
	// without the notice; text after the last newline is a line too. 0 sets no limit.
	MaxBytes int64 `json:"max_bytes"`
	MaxLines int64 `json:"max_lines"`
	// Direction is the part that stays: tail, head, both, or lines.
	Direction measure.Direction `json:"direction"`
}

// When results of tools are cut.
const (
	atCompaction = "compaction"
	onArrival    = "arrival"
)

func defaultOutput() ToolOutput {
	l := measure.DefaultOutputLimits()
	return ToolOutput{When: atCompaction, MaxBytes: l.MaxBytes, MaxLines: l.MaxLines, Direction: l.Keep}
}

// OnArrival reports whether results are cut before the agent has answered them.
func (p *ToolOutput) OnArrival() bool { return p.When == onArrival }

// Exceeds reports whether an entry is a result that the limits make smaller.
func (p *ToolOutput) Exceeds(e *measure.Entry) bool {
	return p.MaxBytes+p.MaxLines > 0 && e.Whole() && e.Cuttable() && e.Size() > p.Cut(e).Units
}

// Cut is the edit that cuts a result to the limits, in units at the mean size of its text. With its notice it
// has fewer tokens than the whole: a result just above a limit loses more than the excess, up to half.
func (p *ToolOutput) Cut(e *measure.Entry) events.Edit {
	units, bytes := int64(e.Text), e.TextBytes()
	most := bytes
	if p.MaxBytes > 0 {
		most = min(most, p.MaxBytes)
	}
	if lines := e.Newlines() + 1; p.MaxLines > 0 && lines > p.MaxLines {
		most = min(most, bytes*p.MaxLines/lines)
	}
	kept := units
	if most < bytes {
		kept = units * most / bytes
		if less := units - noticeWeighs; less < kept && 2*less >= kept {
			kept = less
		}
	}
	return events.Edit{Units: kept + measure.LimitNotice, Direction: string(p.Direction), Lines: p.MaxLines}
}

// noticeWeighs is the number of units of the thinnest text that weigh as much as the notice of a cut.
const noticeWeighs = 3 * measure.LimitNotice

// Keep has the worth of a token of each kind of content, for a choice of what stays: the least worth over age
// in turns goes first.
type Keep struct {
	Written int64 `json:"written"` // the arguments of a call that changes a file
	Tools   int64 `json:"tools"`   // results, twice that for results of a file, and the arguments of other calls
	Words   int64 `json:"words"`   // everything else
	// A result that saves more than LargeTokens has a LargeFactor-th of that worth.
	LargeTokens measure.Tokens `json:"large_tokens"`
	LargeFactor int64          `json:"large_factor"`
}

// Worth is the worth of a token of an entry, at least 1.
func (p *Keep) Worth(e *measure.Entry) int64 {
	switch {
	case e.Kind == measure.KindCall && e.Path != 0 && !e.Flags.Has(measure.FlagRead):
		return max(p.Written, 1)
	case e.Kind == measure.KindResult && e.Path != 0: // its lines are edited next
		return max(2*p.Tools, 1)
	case e.Kind == measure.KindCall || e.Kind == measure.KindResult:
		return max(p.Tools, 1)
	default:
		return max(p.Words, 1)
	}
}

// Deduplicate is the policy of the second stage.
type Deduplicate struct {
	Enabled bool `json:"enabled"`
	// Minimum is the least share of the affected reads that must be saved.
	Minimum measure.PPM `json:"minimum"`
}

// Summarize is the policy of the third stage. While it is enabled, the last
// stage runs only when the available input is used up, or when summaries fail.
type Summarize struct {
	Enabled bool `json:"enabled"`
	// Prepare is the share of the available input at which a summary is requested
	// in the background. It is above the target; at the threshold none is prepared.
	Prepare measure.PPM `json:"prepare"`
	// SummarySeconds is the assumed time of a summary until the session has had one. A summary is requested
	// before Prepare if the history may reach the threshold within that time, and again when a tenth of the
	// available input is in no summary. 0 requests one at Prepare, and no other before it is used.
	SummarySeconds int64 `json:"summary_seconds"`
	// A summary, its record included, costs at most CeilingTokens, and at most CeilingShare of the available
	// input, however long the session lives. If that share is below 2,000 tokens, it may cost these, or a
	// tenth of the input if that is less.
	CeilingTokens measure.Tokens `json:"ceiling_tokens"`
	CeilingShare  measure.PPM    `json:"ceiling_share"`
	// After so many Failures in a row, or as many compactions in a row that did not get below the threshold,
	// no summary is requested for CooldownSeconds of the log's time.
	Failures        int64 `json:"failures"`
	CooldownSeconds int64 `json:"cooldown_seconds"`
	// Keep is the share of the messages outside the summary of a compaction by hand, where the target would
	// keep more.
	Keep measure.PPM `json:"keep"`
	// Provider and Model choose the writer of summaries among the worker's models. "" is any of them, in the
	// worker's order; the provider embedded calls none. If no model matches, the embedded summarizer writes:
	// no text goes to a model that the policy excludes.
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Embedded is the provider that calls no model.
const Embedded = "embedded"

// leastCeiling is the cost that a summary may always have within CeilingTokens, or a tenth of the available
// input if that is less: no conversation can be condensed much further.
const leastCeiling measure.Tokens = 2_000

// Ceiling is the largest cost of a summary, its record included.
func (p *Summarize) Ceiling(available measure.Tokens) measure.Tokens {
	return min(p.CeilingTokens, max(p.CeilingShare.Share(available), min(leastCeiling, available/10)))
}

// Ceiling is the largest cost of a summary for the policy's target: [Summarize.Ceiling] for targets from
// wholeTarget of the trigger on, and less in proportion below, since the newest messages share the room.
func (p *Policy) Ceiling(available measure.Tokens) measure.Tokens {
	most := p.Summarize.Ceiling(available)
	share := min(measure.Million*int64(p.Target)/int64(p.Threshold), wholeTarget)
	return max(most*measure.Tokens(share)/wholeTarget, min(most, leastCeiling/2))
}

// wholeTarget is the least target, as a share of the trigger, at which a summary may have its full cost.
const wholeTarget = 750_000

// Cache has the lifetime of the provider's cache of a history, which breaks from the first changed message
// on, and the goal of compactions for the cost of calls.
type Cache struct {
	// Seconds is the time for which a provider keeps its cache; 0 ignores the cache.
	Seconds int64 `json:"seconds"`
	// History is the number of tokens that such a compaction leaves of the history; 0 makes none.
	History measure.Tokens `json:"history"`
}

// Truncate is the policy of the last stage.
type Truncate struct {
	Enabled bool `json:"enabled"`
	// Fraction of the messages after the first exchange is cut when no cut fits.
	Fraction measure.PPM `json:"fraction"`
}

// Restore selects the results to restore after messages were hidden: those that the agent read last, so that
// it need not read them again.
type Restore struct {
	Enabled bool `json:"enabled"`
	// At most Files files come back, each of at most FileTokens, of TotalTokens
	// together.
	Files       int64          `json:"files"`
	FileTokens  measure.Tokens `json:"file_tokens"`
	TotalTokens measure.Tokens `json:"total_tokens"`
	// Skills have limits of their own: results of the tools that prune protects, and texts that SkillTools
	// launched, by exact name. The text of a skill is the result of its tool, or the user's message after a
	// result that only reports the launch.
	SkillTools        []string       `json:"skill_tools"`
	SkillTokens       measure.Tokens `json:"skill_tokens"`
	SkillsTotalTokens measure.Tokens `json:"skills_total_tokens"`
}

// The figures are those of the third reference system.
func defaultRestore() Restore {
	return Restore{
		Enabled: true, Files: 5, FileTokens: 5_000, TotalTokens: 50_000,
		SkillTools: []string{"Skill", "skill"}, SkillTokens: 5_000, SkillsTotalTokens: 25_000,
	}
}
