package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Policy decides when and how far a session is compacted.
type Policy struct {
	// Enabled switches automatic compaction. Levels are published either way.
	Enabled bool `json:"enabled"`
	// Profile names the estimator, a key of Profiles.
	Profile string `json:"profile"`

	// WindowTokens replaces the table of windows; a smaller window that a turn states still counts. 0 uses
	// the table.
	WindowTokens measure.Tokens `json:"window_tokens"`

	// TriggerMode is the source of the trigger, one of ratio, tokens and buffer: the share Threshold of the
	// available input, the number ThresholdTokens, or the rest of the window after the distances in Buffers.
	// Under tokens and buffer the other shares keep their relation to Threshold.
	TriggerMode     string         `json:"trigger_mode"`
	ThresholdTokens measure.Tokens `json:"threshold_tokens"`

	// SharesOf is the base of the shares Threshold, Target, Info and Summarize.Prepare. history: the
	// available input less the part that no compaction reduces, which counts below all of them. input: all of
	// the available input. Absent is input.
	SharesOf string `json:"shares_of"`
	// Threshold is the share at which compaction runs, Target its goal, Info the share at which level info
	// begins.
	Threshold measure.PPM `json:"threshold"`
	Target    measure.PPM `json:"target"`
	Info      measure.PPM `json:"info"`

	// ThresholdCap is an upper bound of the trigger, as a share of the available input, for every
	// TriggerMode.
	ThresholdCap measure.PPM `json:"threshold_cap"`
	// LimitTokens is the hard limit, at most the available input; 0 leaves it to TriggerMode. The trigger is
	// never above it.
	LimitTokens measure.Tokens `json:"limit_tokens"`
	Buffers     Buffers        `json:"buffers"`
	// LearnReserve replaces the share of a window that is kept free for the answer by the lengths of a
	// session's answers, if no turn states the longest answer of its model.
	LearnReserve bool `json:"learn_reserve,omitzero"`
	// MaxEntries bounds the messages in view, each call and result counting as one: the oldest beyond it are
	// hidden behind a truncation notice, whatever their cost. 0 sets no bound.
	MaxEntries int64 `json:"max_entries,omitzero"`

	// Recall is the way in which a model looks up originals: hash (by the hash in a placeholder), mcp, tool
	// (a tool of the agent over compactd.recall) or none. A notice to recall would make a model without that
	// tool call a tool that does not exist. Absent is none.
	Recall string `json:"recall"`
	// RecallNotice makes every placeholder name the place of its original, unless Recall is none.
	RecallNotice bool `json:"recall_notice"`
	// Pins are patterns of messages that are pinned, like those with "pin":true. A message is compared when
	// it arrives; earlier messages keep their state.
	Pins measure.Patterns `json:"pins,omitzero"`

	Keep        Keep               `json:"keep"`
	Prune       Prune              `json:"prune"`
	Deduplicate Deduplicate        `json:"deduplicate"`
	Summarize   Summarize          `json:"summarize"`
	Truncate    Truncate           `json:"truncate"`
	ToolOutput  ToolOutput         `json:"tool_output"`
	Restore     Restore            `json:"restore"`
	Files       measure.FileLimits `json:"files"`
	Cache       Cache              `json:"cache"`

	// Limits bound a tenant. They do not change decisions about a session, and sessions cannot set them.
	Limits Limits `json:"limits,omitzero"`

	// Locked are the paths of fields that sessions cannot set, such as
	// summarize.enabled, or summarize for all of its fields.
	Locked []string `json:"locked,omitzero"`
}

// Values of Recall.
const (
	recallNone = "none"
	recallTool = "tool"
	recallMCP  = "mcp"

	// recallHash is for models whose tool takes the hash in a placeholder.
	recallHash = "hash"
)

// NamesPlaces reports whether placeholders name the places of their originals.
func (p *Policy) NamesPlaces() bool {
	return p.RecallNotice && !p.Limits.Private && (p.Recall == recallTool || p.Recall == recallMCP || p.Recall == recallHash)
}

// NamesHashes reports whether they name hashes of the originals instead of places.
func (p *Policy) NamesHashes() bool { return p.NamesPlaces() && p.Recall == recallHash }

// Set returns the policy with the fields of a JSON object: objects field by field, lists as a whole. Null
// switches off a group that has a switch. A preparation that the object does not set moves between the target
// and the threshold. The policy may be invalid. Unknown and duplicate fields, and wrong types, are errors.
func (p Policy) Set(object codec.Raw) (Policy, error) {
	out, fit, err := p.set(object)
	fit(&out)
	return out, err
}

// set is Set without moving the preparation, which fit does.
func (p Policy) set(object codec.Raw) (out Policy, fit func(*Policy), err error) {
	out = p
	out.Prune.ProtectedTools = slices.Clone(p.Prune.ProtectedTools)
	out.Prune.Micro.Tools = slices.Clone(p.Prune.Micro.Tools)
	out.Restore.SkillTools = slices.Clone(p.Restore.SkillTools)
	out.Pins = slices.Clone(p.Pins)
	out.Locked = slices.Clone(p.Locked)
	out.Summarize.Prepare = unset
	if err = codec.UnmarshalStrict(events.DisableNulls(object, hasSwitch), &out); err != nil { //nolint:forbidigo // which fields are set depends on the text, and what they are set over on the config
		err = fmt.Errorf("set policy: %w", err)
	}
	fit = func(*Policy) {}
	if out.Summarize.Prepare == unset {
		out.Summarize.Prepare = p.Summarize.Prepare
		fit = func(x *Policy) { x.fitPrepare(p.preparesNone()) }
	}
	if len(out.Pins) == 0 {
		out.Pins = nil
	}
	return out, fit, err
}

// hasSwitch reports whether the field at a path, such as a stage, can be switched off.
func hasSwitch(path string) bool { return slices.Contains(allFields, path+".enabled") }

// unset is no share that JSON can set.
const unset measure.PPM = math.MinInt64

// preparesNone reports whether the policy prepares no summary before the threshold.
func (p *Policy) preparesNone() bool { return p.Summarize.Prepare >= p.Threshold }

// spans reports whether there is room between target and threshold.
func (p *Policy) spans() bool { return p.Target < p.Threshold && p.Threshold <= measure.Million }

// fitPrepare moves a preparation that is not between target and threshold to the middle of the two, or to the
// threshold if it is off.
func (p *Policy) fitPrepare(off bool) {
	switch {
	case off:
		p.Summarize.Prepare = min(p.Threshold, measure.Million)
	case p.spans() && (p.Summarize.Prepare <= p.Target || p.preparesNone()):
		p.Summarize.Prepare = p.Target + (p.Threshold-p.Target+1)/2
	}
}

// With is Set for a policy from the wire: an invalid result is an error too, and errors have the code
// bad_policy. Locked fields keep their values.
func (p Policy) With(object codec.Raw) (Policy, error) {
	p, _, err := p.Over(object)
	return p, err
}

// Over is With, and lists the locked fields that the object would have changed. An object that is valid by
// itself, but not with the locked values, is ignored as a whole.
func (p Policy) Over(object codec.Raw) (out Policy, ignored []string, err error) {
	sent, fit, err := p.set(object)
	if err != nil {
		return sent, nil, events.NewInvalid(events.CodeBadPolicy, "policy", "has an unknown or duplicate field, or one of the wrong type")
	}
	out, ignored = sent.restore(&p)
	if !p.locks("summarize.prepare") {
		fit(&out)
	}
	if out.Limits != p.Limits {
		out.Limits, ignored = p.Limits, append(ignored, "limits")
	}
	out.MaxEntries = cmp.Or(out.MaxEntries, p.MaxEntries) // a session cannot lift the bound
	if err := out.Validate(); err != nil {
		differ := p.Differences(&sent)
		if fit(&sent); len(ignored) > 0 && sent.valid() {
			return p, differ, nil
		}
		return out, nil, events.NewInvalid(events.CodeBadPolicy, "policy", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return out, ignored, nil
}

// At returns the policy with the trigger at a share of the available input, and lower fields adjusted: a
// target at or above it becomes three quarters of it, and a preparation outside the new range moves to its
// middle.
func (p Policy) At(trigger measure.PPM) Policy {
	off := p.preparesNone()
	p.TriggerMode, p.Threshold = modeRatio, trigger
	if p.Target >= p.Threshold {
		p.Target = p.Threshold * 3 / 4
	}
	p.Info = min(p.Info, p.Threshold)
	p.fitPrepare(off)
	return p
}
