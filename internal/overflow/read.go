package overflow

import (
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Read makes the request of a session.overflow from its payload. Its error is an
// [*events.Invalid]: the payload is malformed. An error in it that is no overflow
// is part of the request, and published by Decide: so what was once answered otherwise,
// by a version that has other texts, is applied as it was recorded.
func Read(data []byte, seq measure.Seq) (*compaction.Request, error) {
	e, err := events.DecodeOverflow(data)
	if err != nil {
		return nil, err
	}
	f := Detect(e.Error, e.Status)
	o := compaction.Overflow{Model: e.Model, Generation: e.Generation, Refused: f.Refuse(), Bytes: f.Class == ClassBytes, Media: f.Class == ClassMedia, Unrecorded: measure.Tokens(e.Unrecorded)}
	if f.Class == ClassThinking && e.Unbind {
		o.Thinking, o.Refused = true, nil
	}
	if f.Overflow() {
		o.Limit, o.Actual = f.Limit, f.Actual
	}
	if f.Class == ClassSum {
		o.Output = f.Output
	}
	return compaction.NewOverflow(o, e.ID, seq), nil
}
