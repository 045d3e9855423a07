package policy

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Files bounds the files attached to a call, before they are in the history. Only compactd.attach and
// compactd.check use it, no compaction.
type Files struct {
	// Share of the free tokens of a call is for files. Reserve of the available input stays free of files
	// when files are summarized.
	Share   measure.PPM `json:"share"`
	Reserve measure.PPM `json:"reserve"`
	// A file below FastPathBytes is not cut for its own size; a file above PreviewBytes is cut to its first
	// PreviewUnits UTF-16 units. The share holds for both.
	FastPathBytes int64 `json:"fast_path_bytes"`
	PreviewBytes  int64 `json:"preview_bytes"`
	PreviewUnits  int64 `json:"preview_units"`
	// Summarize summarizes files that do not fit, the largest first; else they are cut. A summary has at
	// least SummaryMinTokens, at most SummaryMaxTokens.
	Summarize        bool           `json:"summarize"`
	SummaryMinTokens measure.Tokens `json:"summary_min_tokens"`
	SummaryMaxTokens measure.Tokens `json:"summary_max_tokens"`
}

func defaultFiles() Files {
	l := measure.DefaultFileLimits()
	return Files{
		Share: l.Share, Reserve: l.Reserve, FastPathBytes: l.FastPathBytes, PreviewBytes: l.PreviewBytes, PreviewUnits: l.PreviewUnits,
		Summarize: true, SummaryMinTokens: l.MinSummary, SummaryMaxTokens: l.MaxSummary,
	}
}

// Limits are the bounds that the policy sets.
func (p *Files) Limits() measure.FileLimits {
	return measure.FileLimits{
		Share: p.Share, Reserve: p.Reserve, FastPathBytes: p.FastPathBytes, PreviewBytes: p.PreviewBytes, PreviewUnits: p.PreviewUnits,
		MinSummary: p.SummaryMinTokens, MaxSummary: p.SummaryMaxTokens,
	}
}

func (p *Files) validate(check func(ok bool, format string, args ...any)) {
	check(0 < p.Share && p.Share <= measure.Million, "files.share must be above 0 and at most 1")
	check(0 <= p.Reserve && p.Reserve < measure.Million, "files.reserve must be at least 0 and below 1")
	for _, n := range []struct {
		name string
		v    int64
	}{
		{"fast_path_bytes", p.FastPathBytes},
		{"preview_bytes", p.PreviewBytes},
		{"preview_units", p.PreviewUnits},
		{"summary_min_tokens", int64(p.SummaryMinTokens)},
		{"summary_max_tokens", int64(p.SummaryMaxTokens)},
	} {
		check(0 <= n.v && n.v <= events.MaxTokens, "files.%s must be between 0 and %d", n.name, int64(events.MaxTokens))
	}
	check(p.SummaryMinTokens <= p.SummaryMaxTokens, "files.summary_min_tokens must not be above files.summary_max_tokens")
}
