package compaction

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"compactd/internal/events"
)

// What a text that was cut says. The log keeps the whole for as long as it keeps
// anything, and its place names it there.
const (
	trimTail  = "\n[Content cut to fit the context window; the whole is kept as turn %d, message %d]"
	limitTail = "The whole output is kept as turn %d, message %d: ask compactd.recall for it"

	trimNotice  = 128 // most units of trimTail, numbers included
	limitNotice = 192 // most units of all that LimitOutput adds

	// leastTrim is the size that no content is cut below: less says nothing.
	leastTrim = 256

	// spared is how many times larger than others a content may stay that is worth
	// more: the first and the last words of the user, and what the agent has not
	// read yet. It is a factor and no order, since an order would wear everything
	// else down to nothing for the sake of one content that may be the trouble.
	spared = 4
)

// trims reports whether an op cuts a text.
func (o op) trims() bool { return o >= opTrim }

// trimOf returns the op of a trim with a direction.
func trimOf(d Direction) op {
	switch d {
	case KeepTail:
		return opTail
	case KeepHead:
		return opHead
	case KeepBoth:
		return opBoth
	default:
		return opTrim
	}
}

func (o op) direction() Direction {
	switch o {
	case opTail:
		return KeepTail
	case opHead:
		return KeepHead
	case opBoth:
		return KeepBoth
	default:
		return ""
	}
}

// trimmed is the ceiling of an entry whose text is cut, framing of its message
// excluded: what stays of a text may be the densest of it.
func (r Rate) trimmed(e *Entry) Tokens {
	t, per := Tokens(e.Images)*r.PerImage, r.TextUnits
	if e.Kind == KindResult {
		t, per = t+r.PerTool, r.ResultUnits
	}
	base := ceilDiv(int64(e.Ceiling), per)
	if e.JSON > 0 {
		base += ceilDiv(int64(e.JSON), max(r.JSONUnits, 2))
	}
	return t + r.scale(base)
}

// size is the number of UTF-16 units of text that are in view.
func (e *Entry) size() int64 {
	if e.Op.trims() {
		return int64(e.Ceiling)
	}
	return int64(e.Text)
}

// trimTo is the entry under a trim to so many units.
func (e *Entry) trimTo(ceiling int64) Entry {
	x := *e
	x.set(&events.Edit{Op: events.OpTrim, Units: ceiling})
	return x
}

// trim cuts the content of an entry.
func (d *Draft) trim(i int, x events.Edit) {
	x.Op, x.Position = events.OpTrim, d.entries[i].position()
	d.entries[i].set(&x)
	d.edits = append(d.edits, x)
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

// cuttable reports whether the text of an entry may be cut: a result without
// images, or words of a user or assistant without reasoning.
func (e *Entry) cuttable() bool {
	switch {
	case e.Flags.has(FlagEmpty) || e.Role == RoleSystem || e.Op != opNone && !e.Op.trims():
		return false
	case e.Kind == KindResult:
		return e.Images == 0
	default:
		return e.Kind == KindWords && !e.Flags.has(FlagThinking)
	}
}

// content is an entry whose text may be cut. Its ceiling is a share of weight.
type content struct {
	at     int
	weight int64
}

func (c content) ceiling(share PPM) int64 {
	return max(c.weight*int64(share)/million, leastTrim)
}

// Trim cuts contents until the history is at most target tokens, and no more than
// that takes: the largest come down to one size, some of them to a multiple of it.
// In a history of four messages or less all come down in proportion, since each is
// a large part of what was said. No content goes below leastTrim units. Where that
// does not reach the target it goes half the way to what it reaches, from enough
// on, and all the way where even that is out of reach. Calls, reasoning, images,
// summaries, words of the system and those beside calls that await their results
// stay.
func (d *Draft) Trim(target, enough Tokens) {
	contents := d.contents()
	total := repaired(d.entries, d.format, d.rate)
	if least := total - d.cuttingAll(contents, 0); least > target {
		target = max(least, (least+enough)/2)
	}
	share := PPM(sort.Search(million+1, func(n int) bool { return total-d.cuttingAll(contents, PPM(n)) > target }) - 1)
	for _, c := range contents {
		if d.cutting(c, share) > 0 {
			d.trim(c.at, events.Edit{Units: c.ceiling(share)})
		}
	}
}

// cuttingAll is what it saves to cut all contents to their ceilings.
func (d *Draft) cuttingAll(contents []content, share PPM) (sum Tokens) {
	for _, c := range contents {
		sum += d.cutting(c, share)
	}
	return sum
}

// cutting is what it saves to cut a content to its ceiling.
func (d *Draft) cutting(c content, share PPM) Tokens {
	e := &d.entries[c.at]
	n := c.ceiling(share)
	if n >= e.size() {
		return 0
	}
	x := e.trimTo(n)
	return max(d.rate.Entry(e)-d.rate.Entry(&x), 0)
}

// contents lists what Trim may cut.
func (d *Draft) contents() []content {
	var out []content
	var largest int64
	awaiting := d.awaiting(d.exchanges())
	for i := range d.entries {
		e := &d.entries[i]
		if !e.cuttable() || e.size() <= leastTrim || i >= awaiting && e.Role == RoleAssistant {
			continue
		}
		out = append(out, content{i, e.size()})
		largest = max(largest, e.size())
	}
	if d.messages() <= minMessages {
		return out
	}
	worthMore := d.worthMore()
	for i := range out {
		if out[i].weight = largest; worthMore(out[i].at) {
			out[i].weight *= spared
		}
	}
	return out
}

// worthMore returns what tells the contents that are spared.
func (d *Draft) worthMore() func(i int) bool {
	first, last, unread := -1, -1, 0
	for i := range d.entries {
		switch e := &d.entries[i]; {
		case e.Role == RoleAssistant:
			unread = i + 1
		case e.Kind == KindWords && e.Role == RoleUser && !e.Flags.has(FlagEmpty):
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return func(i int) bool { return i == first || i == last || i >= unread }
}

// spare is the end of the last stage: what is restored gives way before contents
// are cut, and those only while the history is over what is enough.
func (d *Draft) spare(m *Means) {
	if repaired(d.entries, d.format, d.rate) > m.Enough {
		d.release(m.Target)
	}
	if repaired(d.entries, d.format, d.rate) > m.Enough {
		d.Trim(m.Target, m.Enough)
	}
}

// trimmed returns the parts of an entry whose text is cut. Several texts are cut
// as one: what stands behind the cut goes. All other parts stay.
func trimmed(m *events.Message, e *Entry) []events.Part {
	var out []events.Part
	room := int64(e.Ceiling) - trimNotice
	for k := int(e.Part); k < int(e.Part+e.Parts); k++ {
		p := &m.Parts[k]
		n := int64(events.Units(p.Text))
		switch {
		case p.Kind == events.PartResult && e.Op != opTrim:
			m.SetText(k, e.limited(p.Text))
		case p.Kind != events.PartResult && p.Kind != events.PartText:
			n = 0
		case room <= 0:
			m.Edited = true
			continue
		case n >= room:
			m.SetText(k, e.cut(p.Text, room))
		}
		room -= n
		out = append(out, *p)
	}
	return out
}

// cut returns the head of a text, at most room units of it, and says so.
func (e *Entry) cut(text string, room int64) string {
	head, _ := CutUnits(text, room)
	return head + fmt.Sprintf(trimTail, e.Turn, e.Index)
}

// limited returns the end or ends of a tool's output that are kept. The ceiling of
// units holds for bytes as well.
func (e *Entry) limited(text string) string {
	l := DefaultOutputLimits()
	l.MaxBytes, l.MaxLines, l.Keep = int64(e.Ceiling)-limitNotice, int64(e.Lines), e.Op.direction()
	l.Whole = fmt.Sprintf(limitTail, e.Turn, e.Index)
	if l.MaxLines == 0 {
		l.MaxLines = math.MaxInt64
	}
	text, _ = LimitOutput(text, l)
	return text
}

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
		errs = append(errs, errors.New("tool_output.direction is none of both, head, tail"))
	}
	return errors.Join(errs...)
}
