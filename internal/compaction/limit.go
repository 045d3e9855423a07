package compaction

import (
	"errors"
	"fmt"
	"math"

	"compactd/internal/events"
)

// OutputPolicy bounds what one result of a tool keeps once the agent has answered
// it. It is part of the first stage.
type OutputPolicy struct {
	// A result of more than MaxBytes is cut to MaxBytes, and MaxLines of it, the
	// notice not counted. 0 sets no limit; without MaxBytes none is cut.
	MaxBytes int64 `json:"max_bytes"`
	MaxLines int64 `json:"max_lines"`
	// Direction is the end that is kept: tail, head or both.
	Direction Direction `json:"direction"`
}

func defaultOutput() OutputPolicy {
	l := DefaultOutputLimits()
	return OutputPolicy{MaxBytes: l.MaxBytes, MaxLines: l.MaxLines, Direction: l.Keep}
}

func (p OutputPolicy) validate() error {
	var errs []error
	if p.MaxBytes < 0 || p.MaxBytes > events.MaxTurnBytes {
		errs = append(errs, fmt.Errorf("tool_output.max_bytes must be between 0 and %d", events.MaxTurnBytes))
	}
	if p.MaxLines < 0 || p.MaxLines > math.MaxUint16 {
		errs = append(errs, fmt.Errorf("tool_output.max_lines must be between 0 and %d", math.MaxUint16))
	}
	if trimOf(p.Direction) == opTrim {
		errs = append(errs, errors.New("tool_output.direction must be one of both, head, tail"))
	}
	return errors.Join(errs...)
}

// Limit cuts results that are larger than the limits of a tool's output: to their
// bytes and lines. Sizes are known in units, which are never more than bytes, so
// what is cut is larger for certain; how many lines a result has is not known, and
// alone no reason to cut it. Results that the agent has not answered yet stay, and
// those with images. It reports whether it cut any.
func (d *Draft) Limit(p *OutputPolicy) bool {
	if p.MaxBytes == 0 {
		return false
	}
	x := events.Edit{Units: p.MaxBytes + limitNotice, Direction: string(p.Direction), Lines: p.MaxLines}
	answered := len(d.entries) - 1
	for answered >= 0 && d.entries[answered].Role != RoleAssistant {
		answered--
	}
	was := len(d.edits)
	for i := range max(answered, 0) {
		if e := &d.entries[i]; e.whole() && e.cuttable() && e.size() > x.Units {
			d.trim(i, x)
		}
	}
	return len(d.edits) > was
}

// limited returns the end or ends of a tool's output that are kept. The ceiling of
// units holds for bytes as well; most is what the text that stays may weigh.
func limited(e *Entry, text string, most int64) string {
	l := DefaultOutputLimits()
	room, notice := e.kept()
	l.MaxLines, l.Keep = int64(e.Lines), e.Op.direction()
	l.Whole = fmt.Sprintf(limitTail, e.Turn, e.Index)
	if l.MaxLines == 0 {
		l.MaxLines = math.MaxInt64
	}
	return fitWeight(room, most+ceilDiv(notice, plainUnits), func(room int64) string {
		l.MaxBytes = room
		s, _ := LimitOutput(text, l)
		return s
	})
}
