package measure

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Direction is the part of a tool's output that is kept.
type Direction string

// The directions.
const (
	KeepTail Direction = "tail" // where a build reports what failed
	KeepHead Direction = "head"
	KeepBoth Direction = "both"
	// KeepLines keeps a part of each end, and between them one line of each shape.
	KeepLines Direction = "lines"
)

// OutputLimits bounds a tool's output in a history.
type OutputLimits struct {
	// MaxBytes and MaxLines bound the kept part, without the notice. Text after the last newline is a line
	// too, even if it is empty.
	MaxBytes, MaxLines int64
	// Keep is the part to keep; any other value than head, both or lines is the tail.
	Keep Direction
	// Named are words for which lines are kept first, under KeepLines.
	Named []string
	// HeadShare is the head's part of both limits under KeepBoth; the tail has the
	// rest.
	HeadShare PPM
	// Whole explains how to get the whole output, in the notice; "" leaves it out.
	Whole string
}

// DefaultOutputLimits are those of the reference system: 50 KiB, 2,000 lines, the
// tail; of both ends a quarter is head.
func DefaultOutputLimits() OutputLimits {
	return OutputLimits{MaxBytes: 51_200, MaxLines: 2_000, Keep: KeepTail, HeadShare: 250_000}
}

// LimitOutput returns text if it is within the limits, else the end or ends to keep, with a notice in place
// of the rest. It cuts between lines, or between two runes if a line alone is too long. The second result
// reports whether anything is missing.
func LimitOutput(text string, l OutputLimits) (string, bool) {
	if int64(len(text)) <= l.MaxBytes && int64(strings.Count(text, "\n")) < l.MaxLines {
		return text, false
	}
	switch l.Keep {
	case KeepHead:
		head := headOf(text, l.MaxLines, l.MaxBytes)
		return head + "\n\n" + l.notice(len(text), len(head)), true
	case KeepBoth:
		lines, bytes := l.headLines(), l.MaxBytes*int64(l.HeadShare)/Million
		head := headOf(text, lines, bytes)
		tail := tailOf(text, l.MaxLines-lines, l.MaxBytes-bytes)
		return head + "\n\n" + l.gap(len(text)-len(head)-len(tail)) + "\n\n" + tail, true
	case KeepLines:
		if out, kept := distinct(text, l.MaxLines, l.MaxBytes, l.Named); kept > 0 {
			return strings.TrimSuffix(out, "\n") + "\n\n" + l.notice(len(text), kept), true
		}
		fallthrough // no line has room
	default:
		tail := tailOf(text, l.MaxLines, l.MaxBytes)
		return "\n\n" + l.notice(len(text), len(tail)) + "\n" + tail, true
	}
}

// headLines is the number of lines for the head: at least one, if there are two.
func (l *OutputLimits) headLines() int64 {
	n := l.MaxLines * int64(l.HeadShare) / Million
	if l.MaxLines < 2 {
		return n
	}
	return max(n, 1)
}

// notice stands beside the kept end.
func (l *OutputLimits) notice(from, to int) string {
	n := fmt.Sprintf("[Output truncated from %d bytes to %d bytes]", from, to)
	if l.Whole != "" {
		n += "\n[" + l.Whole + "]"
	}
	return n
}

// gap stands between two kept ends.
func (l *OutputLimits) gap(missing int) string {
	n := fmt.Sprintf("%d bytes omitted", missing)
	if l.Whole != "" {
		n += ". " + l.Whole
	}
	return "[... " + n + " ...]"
}

// headOf returns the first lines of text, within both limits.
func headOf(text string, lines, bytes int64) string {
	end := 0
	for range max(lines, 0) {
		next := strings.IndexByte(text[end:], '\n')
		if next < 0 {
			end = len(text) + 1
			break
		}
		end += next + 1
	}
	text = text[:max(end-1, 0)] // without the newline of the last
	if int64(len(text)) <= bytes {
		return text
	}
	cut := max(bytes, 0)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// tailOf returns the last lines of text, within both limits.
func tailOf(text string, lines, bytes int64) string {
	start := len(text) + 1
	for n := int64(0); n < lines && start > 0; n++ {
		start = strings.LastIndexByte(text[:start-1], '\n') + 1
	}
	text = text[min(start, len(text)):]
	if int64(len(text)) <= bytes {
		return text
	}
	cut := len(text) - int(max(bytes, 0))
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return text[cut:]
}
