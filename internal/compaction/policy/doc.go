// Package policy owns the settings of compaction: their presets, their validation, and the
// thresholds in tokens that follow from them.
//
//	p, ok := policy.Preset("claude")
//	p, err := p.With(codec.Raw(`{"threshold":0.7,"target":0.5,"info":0.5}`)) // a session's own
//	t := p.Thresholds(window, reserve, fixed, window)
//	compact := t.BudgetOf(prompt, window, &p).ShouldCompact
//
// # Terms
//
// The trigger is the input in tokens at which compaction runs. The trigger mode is its source: the threshold,
// a share of the room for the history (ratio), a number (tokens), or a distance from the end of the window
// (buffer). The target is the goal of a compaction. A locked field keeps its value whatever a session sends.
//
// # Guarantees
//
//   - A policy that validates has its thresholds in order: target below trigger, trigger at
//     or below the hard limit, the hard limit at or below the available input.
//   - Presets are data: no stage branches on one.
//
// # Concurrency
//
// A [Policy] is a value; its lists are not changed after validation.
//
// # On failure
//
// [Policy.Validate] returns every invalid field in one error, each with its path.
package policy
