package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Bounds of single fields. max_entries has at least two turns, and at most a plan of some 20 ms.
const (
	leastEntries = 2 * events.MaxTurnMessages
	mostEntries  = 50_000
	maxPins      = 16
	maxPattern   = 200
	maxModelName = 200   // bytes
	mostWorth    = 1_000 // of keep
	mostCents    = 1_000_000_000
	mostDays     = 36_500

	// MaxRestored bounds the files that a policy may restore.
	MaxRestored = 100
)

// problems are what is wrong with a policy. Each begins with the path of its field.
type problems []error

func (found *problems) check(ok bool, format string, args ...any) {
	if !ok {
		*found = append(*found, fmt.Errorf(format, args...))
	}
}

func (found *problems) between(name string, v, least, most int64) {
	found.check(least <= v && v <= most, "%s must be between %d and %d", name, least, most)
}

func (found *problems) tokens(name string, v measure.Tokens) {
	found.between(name, int64(v), 0, events.MaxTokens)
}

func (found *problems) share(name string, v measure.PPM) {
	found.check(0 < v && v <= measure.Million, "%s must be above 0 and at most 1", name)
}

func (found *problems) oneOf(name, v string, all ...string) {
	found.check(slices.Contains(all, v), "%s must be one of %s", name, strings.Join(all, ", "))
}

// Validate returns every invalid field in one error, made by [errors.Join]: each
// begins with the path of its field, such as summarize.prepare, and a space.
func (p Policy) Validate() error {
	var found problems
	p.validateTrigger(&found)
	found.share("deduplicate.minimum", p.Deduplicate.Minimum)
	found.share("truncate.fraction", p.Truncate.Fraction)
	found.share("summarize.prepare", p.Summarize.Prepare)
	found.share("summarize.ceiling_share", p.Summarize.CeilingShare)
	found.between("summarize.summary_seconds", p.Summarize.SummarySeconds, 0, 3600)
	found.check(p.Summarize.Failures > 0, "summarize.failures must be above 0")
	found.between("summarize.cooldown_seconds", p.Summarize.CooldownSeconds, 0, 1<<31)
	found.tokens("prune.protect_tokens", p.Prune.ProtectTokens)
	found.tokens("prune.minimum_tokens", p.Prune.MinimumTokens)
	found.tokens("prune.scale_below", p.Prune.ScaleBelow)
	found.tokens("summarize.ceiling_tokens", p.Summarize.CeilingTokens)
	p.Summarize.validate(&found)
	p.Buffers.validate(&found)
	if p.MaxEntries != 0 {
		found.between("max_entries", p.MaxEntries, leastEntries, mostEntries)
	}
	found.between("prune.micro.from_messages", p.Prune.Micro.FromMessages, 0, events.MaxNumber)
	found.between("prune.micro.keep_messages", p.Prune.Micro.KeepMessages, 1, events.MaxNumber)
	found.between("prune.micro.idle_minutes", p.Prune.Micro.IdleMinutes, 0, 1<<31)
	found.between("prune.micro.idle_keep", p.Prune.Micro.IdleKeep, 0, events.MaxNumber)
	p.validateContents(&found)
	found.between("cache.seconds", p.Cache.Seconds, 0, 86_400)
	found.tokens("cache.history", p.Cache.History)
	found.between("keep.written", p.Keep.Written, 1, mostWorth)
	found.between("keep.tools", p.Keep.Tools, 1, mostWorth)
	found.between("keep.words", p.Keep.Words, 1, mostWorth)
	found.between("keep.large_factor", p.Keep.LargeFactor, 1, mostWorth)
	found.tokens("keep.large_tokens", p.Keep.LargeTokens)
	found.between("limits.month_cents", p.Limits.MonthCents, 0, mostCents)
	found.between("limits.idle_days", p.Limits.IdleDays, 0, mostDays)
	for _, path := range p.Locked {
		found.check(slices.ContainsFunc(allFields, func(f string) bool { return covers(path, f) }), "locked names %q, which is no field of the policy", path)
	}
	return errors.Join(found...)
}

// validateTrigger checks what is no part of a group.
func (p *Policy) validateTrigger(found *problems) {
	found.oneOf("profile", p.Profile, slices.Sorted(maps.Keys(measure.Profiles))...)
	found.tokens("window_tokens", p.WindowTokens)
	found.oneOf("trigger_mode", p.TriggerMode, modeBuffer, modeRatio, modeTokens)
	found.oneOf("shares_of", cmp.Or(p.SharesOf, sharesOfInput), sharesOfHistory, sharesOfInput)
	found.tokens("threshold_tokens", p.ThresholdTokens)
	found.check(p.TriggerMode != modeTokens || p.ThresholdTokens > 0, "threshold_tokens must be above 0 with trigger_mode tokens")
	found.oneOf("recall", cmp.Or(p.Recall, recallNone), recallHash, recallMCP, recallNone, recallTool)
	found.check(len(p.Pins) <= maxPins, "pins must be at most %d", maxPins)
	for _, pattern := range p.Pins {
		found.check(pattern != "" && len(pattern) <= maxPattern, "pins must have 1 to %d bytes each", maxPattern)
	}
	found.share("threshold", p.Threshold)
	found.share("target", p.Target)
	found.share("info", p.Info)
	found.share("threshold_cap", p.ThresholdCap)
	found.tokens("limit_tokens", p.LimitTokens)
	found.check(p.Target < p.Threshold, "target must be below threshold")
	found.check(p.Info <= p.Threshold, "info must not be above threshold")
	found.check(!p.Summarize.Enabled || !p.spans() || p.Target < p.Summarize.Prepare && p.Summarize.Prepare <= p.Threshold,
		"summarize.prepare must be above target and not above threshold, at which none is prepared")
}

func (p *Summarize) validate(found *problems) {
	found.share("summarize.keep", p.Keep)
	found.check(modelName(p.Provider) && !strings.Contains(p.Provider, "/"), "summarize.provider must be the name of a provider, at most %d printable characters without /", maxModelName)
	found.check(modelName(p.Model), "summarize.model must be the name of a model, at most %d printable characters", maxModelName)
	found.check(p.Model == "" || p.Provider != "" && p.Provider != Embedded, "summarize.model must be empty without the summarize.provider of a model")
}

// modelName reports whether a name can be that of a provider or a model, or is "".
func modelName(name string) bool {
	return len(name) <= maxModelName && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (p *Buffers) validate(found *problems) {
	found.tokens("buffers.reserve_tokens", p.ReserveTokens)
	found.tokens("buffers.trigger_tokens", p.TriggerTokens)
	found.tokens("buffers.blocking_tokens", p.BlockingTokens)
	found.tokens("buffers.warning_tokens", p.WarningTokens)
	found.tokens("buffers.error_tokens", p.ErrorTokens)
	found.tokens("buffers.scale_below", p.ScaleBelow)
	found.check(p.BlockingTokens <= p.TriggerTokens, "buffers.blocking_tokens must not be above buffers.trigger_tokens")
	found.check(p.ErrorTokens <= p.WarningTokens, "buffers.error_tokens must not be above buffers.warning_tokens")
}

// validateContents checks what outputs of tools, restored results and files may have.
func (p *Policy) validateContents(found *problems) {
	found.oneOf("tool_output.when", p.ToolOutput.When, onArrival, atCompaction)
	found.between("tool_output.max_bytes", p.ToolOutput.MaxBytes, 0, events.MaxTurnBytes)
	found.between("tool_output.max_lines", p.ToolOutput.MaxLines, 0, math.MaxUint16)
	found.oneOf("tool_output.direction", string(p.ToolOutput.Direction), string(measure.KeepBoth), string(measure.KeepHead), string(measure.KeepLines), string(measure.KeepTail))
	found.between("restore.files", p.Restore.Files, 0, MaxRestored)
	found.tokens("restore.file_tokens", p.Restore.FileTokens)
	found.tokens("restore.total_tokens", p.Restore.TotalTokens)
	found.tokens("restore.skill_tokens", p.Restore.SkillTokens)
	found.tokens("restore.skills_total_tokens", p.Restore.SkillsTotalTokens)
	f := &p.Files
	found.share("files.share", f.Share)
	found.check(0 <= f.Reserve && f.Reserve < measure.Million, "files.reserve must be at least 0 and below 1")
	found.between("files.fast_path_bytes", f.FastPathBytes, 0, events.MaxTokens)
	found.between("files.preview_bytes", f.PreviewBytes, 0, events.MaxTokens)
	found.between("files.preview_units", f.PreviewUnits, 0, events.MaxTokens)
	found.tokens("files.summary_min_tokens", f.MinSummary)
	found.tokens("files.summary_max_tokens", f.MaxSummary)
	found.check(f.MinSummary <= f.MaxSummary, "files.summary_min_tokens must not be above files.summary_max_tokens")
}
