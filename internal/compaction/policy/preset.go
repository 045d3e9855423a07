package policy

import (
	"maps"
	"slices"

	"compactd/internal/compaction/measure"
)

// presets are complete policies by name. They are data: no stage branches on a preset.
var presets = map[string]func() Policy{
	"default":   Default,
	"neurolink": neurolinkPolicy,
	"claude":    claudePolicy,
}

// Preset returns the policy of a name, and whether there is one.
func Preset(name string) (Policy, bool) {
	p, ok := presets[name]
	if !ok {
		return Policy{}, false
	}
	return p(), true
}

// PresetNames lists the presets.
func PresetNames() []string { return slices.Sorted(maps.Keys(presets)) }

// Default is the preset "default". The other presets begin with its values.
func Default() Policy {
	return Policy{
		Enabled:      true,
		Profile:      "default",
		TriggerMode:  modeRatio,
		SharesOf:     sharesOfHistory,
		Threshold:    800_000,
		Target:       600_000,
		Info:         600_000,
		ThresholdCap: measure.Million,
		Buffers: Buffers{
			ReserveTokens: 20_000, TriggerTokens: 13_000, BlockingTokens: 3_000,
			WarningTokens: 20_000, ErrorTokens: 10_000, ScaleBelow: 200_000,
		},
		MaxEntries:   20_000,
		Recall:       recallNone,
		RecallNotice: true,
		Keep:         Keep{Written: 16, Tools: 4, Words: 2, LargeTokens: 4_000, LargeFactor: 3},
		Prune: Prune{
			Enabled: true, ProtectTokens: 10_000, MinimumTokens: 20_000, ScaleBelow: 200_000, ToTarget: true,
			ProtectedTools: []string{"skill"},
			Micro: Micro{
				FromMessages: 10, KeepMessages: 8, IdleMinutes: 60, IdleKeep: 5,
				Tools: []string{"Read", "Grep", "Glob", "Bash", "Edit", "Write"},
			},
		},
		Deduplicate: Deduplicate{Enabled: true, Minimum: 300_000},
		Summarize: Summarize{
			Enabled: true, Prepare: 700_000, SummarySeconds: 60, CeilingTokens: 20_000, CeilingShare: 40_000, Failures: 3, CooldownSeconds: 1800, Keep: 300_000,
		},
		Truncate:   Truncate{Enabled: true, Fraction: 500_000},
		ToolOutput: defaultOutput(),
		Restore:    defaultRestore(),
		Files:      measure.DefaultFileLimits(),
		Cache:      Cache{Seconds: 300, History: 100_000},
	}
}

// neurolinkPolicy is the preset "neurolink": the documented settings of the reference, as far as this product
// has them. It prepares no summary, shrinks nothing for small windows, and uses the one target that the
// reference states.
func neurolinkPolicy() Policy {
	p := Default()
	p.Profile = "seed"
	p.RecallNotice = false
	p.SharesOf = sharesOfInput
	p.Prune.ProtectTokens, p.Prune.ToTarget = 40_000, false
	p.Prune.MinimumTokens = measure.CustomOf(p.Profile).MinimumTokens
	p.Target = 700_000
	p.Prune.ScaleBelow = 0
	p.Restore.Enabled = false
	p.Summarize.Prepare = p.Threshold
	p.Cache.Seconds = 0
	return p
}

// claudePolicy is the preset "claude": an agent that counts by the block, keeps its distance from the window
// in tokens, and clears the results of its file and shell tools first.
func claudePolicy() Policy {
	p := Default()
	p.Profile = "blocks"
	p.TriggerMode = modeBuffer
	p.Prune.Micro.Enabled = true
	return p
}
