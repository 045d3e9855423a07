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

func (x *problems) check(ok bool, format string, args ...any) {
	if !ok {
		*x = append(*x, fmt.Errorf(format, args...))
	}
}

func (x *problems) between(name string, v, least, most int64) {
	x.check(least <= v && v <= most, "%s must be between %d and %d", name, least, most)
}

func (x *problems) tokens(name string, v measure.Tokens) {
	x.between(name, int64(v), 0, events.MaxTokens)
}

func (x *problems) share(name string, v measure.PPM) {
	x.check(0 < v && v <= measure.Million, "%s must be above 0 and at most 1", name)
}

func (x *problems) oneOf(name, v string, all ...string) {
	x.check(slices.Contains(all, v), "%s must be one of %s", name, strings.Join(all, ", "))
}

// Validate returns every invalid field in one error, made by [errors.Join]: each
// begins with the path of its field, such as summarize.prepare, and a space.
func (p Policy) Validate() error {
	var x problems
	p.validateTrigger(&x)
	x.share("deduplicate.minimum", p.Deduplicate.Minimum)
	x.share("truncate.fraction", p.Truncate.Fraction)
	x.share("summarize.prepare", p.Summarize.Prepare)
	x.share("summarize.ceiling_share", p.Summarize.CeilingShare)
	x.between("summarize.summary_seconds", p.Summarize.SummarySeconds, 0, 3600)
	x.check(p.Summarize.Failures > 0, "summarize.failures must be above 0")
	x.between("summarize.cooldown_seconds", p.Summarize.CooldownSeconds, 0, 1<<31)
	x.tokens("prune.protect_tokens", p.Prune.ProtectTokens)
	x.tokens("prune.minimum_tokens", p.Prune.MinimumTokens)
	x.tokens("prune.scale_below", p.Prune.ScaleBelow)
	x.tokens("summarize.ceiling_tokens", p.Summarize.CeilingTokens)
	p.Summarize.validate(&x)
	p.Buffers.validate(&x)
	if p.MaxEntries != 0 {
		x.between("max_entries", p.MaxEntries, leastEntries, mostEntries)
	}
	x.between("prune.micro.from_messages", p.Prune.Micro.FromMessages, 0, events.MaxNumber)
	x.between("prune.micro.keep_messages", p.Prune.Micro.KeepMessages, 1, events.MaxNumber)
	x.between("prune.micro.idle_minutes", p.Prune.Micro.IdleMinutes, 0, 1<<31)
	x.between("prune.micro.idle_keep", p.Prune.Micro.IdleKeep, 0, events.MaxNumber)
	p.validateContents(&x)
	x.between("cache.seconds", p.Cache.Seconds, 0, 86_400)
	x.tokens("cache.history", p.Cache.History)
	x.between("keep.written", p.Keep.Written, 1, mostWorth)
	x.between("keep.tools", p.Keep.Tools, 1, mostWorth)
	x.between("keep.words", p.Keep.Words, 1, mostWorth)
	x.between("keep.large_factor", p.Keep.LargeFactor, 1, mostWorth)
	x.tokens("keep.large_tokens", p.Keep.LargeTokens)
	x.between("limits.month_cents", p.Limits.MonthCents, 0, mostCents)
	x.between("limits.idle_days", p.Limits.IdleDays, 0, mostDays)
	for _, path := range p.Locked {
		x.check(slices.ContainsFunc(allFields, func(f string) bool { return covers(path, f) }), "locked names %q, which is no field of the policy", path)
	}
	return errors.Join(x...)
}

// validateTrigger checks what is no part of a group.
func (p *Policy) validateTrigger(x *problems) {
	x.oneOf("profile", p.Profile, slices.Sorted(maps.Keys(measure.Profiles))...)
	x.tokens("window_tokens", p.WindowTokens)
	x.oneOf("trigger_mode", p.TriggerMode, modeBuffer, modeRatio, modeTokens)
	x.oneOf("shares_of", cmp.Or(p.SharesOf, sharesOfInput), sharesOfHistory, sharesOfInput)
	x.tokens("threshold_tokens", p.ThresholdTokens)
	x.check(p.TriggerMode != modeTokens || p.ThresholdTokens > 0, "threshold_tokens must be above 0 with trigger_mode tokens")
	x.oneOf("recall", cmp.Or(p.Recall, recallNone), recallHash, recallMCP, recallNone, recallTool)
	x.check(len(p.Pins) <= maxPins, "pins must be at most %d", maxPins)
	for _, pattern := range p.Pins {
		x.check(pattern != "" && len(pattern) <= maxPattern, "pins must have 1 to %d bytes each", maxPattern)
	}
	x.share("threshold", p.Threshold)
	x.share("target", p.Target)
	x.share("info", p.Info)
	x.share("threshold_cap", p.ThresholdCap)
	x.tokens("limit_tokens", p.LimitTokens)
	x.check(p.Target < p.Threshold, "target must be below threshold")
	x.check(p.Info <= p.Threshold, "info must not be above threshold")
	x.check(!p.Summarize.Enabled || !p.spans() || p.Target < p.Summarize.Prepare && p.Summarize.Prepare <= p.Threshold,
		"summarize.prepare must be above target and not above threshold, at which none is prepared")
}

func (p *Summarize) validate(x *problems) {
	x.share("summarize.keep", p.Keep)
	x.check(modelName(p.Provider) && !strings.Contains(p.Provider, "/"), "summarize.provider must be the name of a provider, at most %d printable characters without /", maxModelName)
	x.check(modelName(p.Model), "summarize.model must be the name of a model, at most %d printable characters", maxModelName)
	x.check(p.Model == "" || p.Provider != "" && p.Provider != Embedded, "summarize.model must be empty without the summarize.provider of a model")
}

// modelName reports whether a name can be that of a provider or a model, or is "".
func modelName(name string) bool {
	return len(name) <= maxModelName && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (p *Buffers) validate(x *problems) {
	x.tokens("buffers.reserve_tokens", p.ReserveTokens)
	x.tokens("buffers.trigger_tokens", p.TriggerTokens)
	x.tokens("buffers.blocking_tokens", p.BlockingTokens)
	x.tokens("buffers.warning_tokens", p.WarningTokens)
	x.tokens("buffers.error_tokens", p.ErrorTokens)
	x.tokens("buffers.scale_below", p.ScaleBelow)
	x.check(p.BlockingTokens <= p.TriggerTokens, "buffers.blocking_tokens must not be above buffers.trigger_tokens")
	x.check(p.ErrorTokens <= p.WarningTokens, "buffers.error_tokens must not be above buffers.warning_tokens")
}

// validateContents checks what outputs of tools, restored results and files may have.
func (p *Policy) validateContents(x *problems) {
	x.oneOf("tool_output.when", p.ToolOutput.When, onArrival, atCompaction)
	x.between("tool_output.max_bytes", p.ToolOutput.MaxBytes, 0, events.MaxTurnBytes)
	x.between("tool_output.max_lines", p.ToolOutput.MaxLines, 0, math.MaxUint16)
	x.oneOf("tool_output.direction", string(p.ToolOutput.Direction), string(measure.KeepBoth), string(measure.KeepHead), string(measure.KeepLines), string(measure.KeepTail))
	x.between("restore.files", p.Restore.Files, 0, MaxRestored)
	x.tokens("restore.file_tokens", p.Restore.FileTokens)
	x.tokens("restore.total_tokens", p.Restore.TotalTokens)
	x.tokens("restore.skill_tokens", p.Restore.SkillTokens)
	x.tokens("restore.skills_total_tokens", p.Restore.SkillsTotalTokens)
	f := &p.Files
	x.share("files.share", f.Share)
	x.check(0 <= f.Reserve && f.Reserve < measure.Million, "files.reserve must be at least 0 and below 1")
	x.between("files.fast_path_bytes", f.FastPathBytes, 0, events.MaxTokens)
	x.between("files.preview_bytes", f.PreviewBytes, 0, events.MaxTokens)
	x.between("files.preview_units", f.PreviewUnits, 0, events.MaxTokens)
	x.tokens("files.summary_min_tokens", f.MinSummary)
	x.tokens("files.summary_max_tokens", f.MaxSummary)
	x.check(f.MinSummary <= f.MaxSummary, "files.summary_min_tokens must not be above files.summary_max_tokens")
}
