package events

import (
	"math"
	"strings"

	"compactd/internal/events/codec"
)

// MaxFocusBytes bounds the focus of a manual compaction.
const MaxFocusBytes = 4 << 10

// Compact is a session.compact: compact now, whatever the usage.
type Compact struct {
	ID    string `json:"id,omitzero"`
	Focus string `json:"focus,omitzero"` // what the summary shall keep in mind, "" for nothing
	// Model and Policy hold for this compaction alone; nil is the session's own.
	Model  *Model `json:"model,omitzero"`
	Policy Raw    `json:"policy,omitzero"`
}

// DecodeCompact reads the payload of a session.compact. Its error is an [*Invalid].
func DecodeCompact(data []byte) (*Compact, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	c := &Compact{ID: env.text("id"), Focus: env.words("focus", MaxFocusBytes), Model: env.model(), Policy: env.raw("policy", '{')}
	return c, env.problems.err()
}

// Rewind is a session.rewind: return to the view of an earlier generation. One of
// the two fields is set.
type Rewind struct {
	ID         string `json:"id,omitzero"`
	Generation *int64 `json:"generation,omitzero"` // 0 is the history as it was published
	Steps      int64  `json:"steps,omitzero"`      // compactions in view to undo
}

// DecodeRewind reads the payload of a session.rewind. Its error is an [*Invalid].
func DecodeRewind(data []byte) (*Rewind, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	r := &Rewind{ID: env.text("id"), Steps: env.count("steps", 1, MaxNumber)}
	_, steps := env.take("steps")
	if _, ok := env.take("generation"); ok {
		n := env.count("generation", 0, MaxNumber)
		r.Generation = &n
	}
	if (r.Generation != nil) == steps {
		env.problems.add(CodeMissingField, "generation", "or steps is required, not both")
	}
	return r, env.problems.err()
}

// Idle is a session.idle: nothing was heard of a session since the turn at a
// sequence of the log. Only workers publish it.
type Idle struct {
	Header
	Since uint64 `json:"since"`
}

// DecodeIdle reads the payload of a session.idle. Its error is an [*Invalid].
func DecodeIdle(data []byte) (*Idle, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	i := &Idle{Header: Header{V: Version, ID: env.text("id")}, Since: uint64(env.count("since", 1, math.MaxInt64))}
	if i.Since == 0 && len(env.problems) == 0 {
		env.problems.add(CodeMissingField, "since", "is required")
	}
	return i, env.problems.err()
}

// DecodeEnd reads the payload of a session.end, which holds an id at most. Its
// error is an [*Invalid].
func DecodeEnd(data []byte) (id string, err error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return "", err
	}
	return env.text("id"), env.problems.err()
}

// words reads a text for people or models, of at most limit bytes.
func (e *envelope) words(name string, limit int) string {
	v, ok := e.take(name)
	if !ok {
		return ""
	}
	s, ok := codec.Text(v)
	switch {
	case !ok:
		e.problems.add(CodeBadType, name, "must be a string")
	case len(s) > limit:
		e.problems.add(CodeTooLarge, name, "is longer than %d bytes", limit)
		return ""
	}
	return strings.TrimSpace(s)
}
