package compaction

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
)

// Types of the packages below, by shorter names.
type (
	// Tokens counts tokens; see [measure.Tokens].
	Tokens = measure.Tokens
	// PPM is a share in parts per million; see [measure.PPM].
	PPM = measure.PPM
	// Seq is a sequence of the log; see [measure.Seq].
	Seq = measure.Seq
	// Entry is one call, one result or one run of words of a message; see [measure.Entry].
	Entry = measure.Entry
	// Policy defines when and how far a session is compacted; see package policy.
	Policy = policy.Policy
	// View is an effective history in entries, ready to be rendered.
	View = render.View
	// Sourced is a message of a rendered history, and what it was made of; see [render.Sourced].
	Sourced = render.Sourced
)

// DefaultWindows returns the table of context windows.
func DefaultWindows() measure.Windows { return measure.DefaultWindows() }

// DefaultPolicy is the preset "default".
func DefaultPolicy() Policy { return policy.Default() }

// Render writes a view in the session's own dialect; see package render.
func Render(v *View, texts render.Texts) ([]events.Raw, error) {
	messages, _, err := render.Render(v, texts)
	return messages, err
}
