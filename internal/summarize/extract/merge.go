package extract

import (
	"cmp"
	"slices"
	"strings"

	"compactd/internal/summarize/snippet"
)

const maxGoalLines = 6 // of a model's goal

// Sections returns the lines of all sections, merged with the previous summary, each section oldest first,
// files by their last use.
func (d *Digest) Sections() *Sections {
	old := &Sections{}
	if d.Previous != nil {
		old = Parse(d.Previous.Text)
	}
	var out Sections
	out[Goal] = d.goal(old[Goal])
	rules, more := d.userRules()
	out[Rules] = more.behind(rules)
	out[decisions] = appended(old[decisions], d.decisions)
	out[Discoveries] = appended(old[Discoveries], d.discoveries)
	out[filesUsed] = d.filesUsed(old[filesUsed])
	out[errorsMade] = d.errors(old[errorsMade])
	out[tasks] = d.openTasks(old[tasks])
	further := d.Users
	if len(old[Goal]) == 0 && len(further) > 0 {
		further = further[1:]
	}
	out[course] = appended(old[course], clipped(further, requestUnits))
	out[work] = appended(old[work], d.work)
	out[work] = out[work][max(0, len(out[work])-maxWork):]
	if out[Next] = old[Next]; len(d.Users) > 0 {
		out[Next] = clipped(d.Users[len(d.Users)-1:], snippet.SentenceUnits)
	}
	return &out
}

// goal is the first request of the session, and the latest one.
func (d *Digest) goal(old []Line) []Line {
	var out, latest []Line
	for _, l := range old {
		if strings.HasPrefix(l.Text, LatestLabel) {
			latest = []Line{l}
		} else if len(out) < maxGoalLines {
			out = append(out, l)
		}
	}
	n := len(d.Users)
	if n == 0 {
		return append(out, latest...)
	}
	if len(out) == 0 {
		l := d.Users[0]
		l.Text = FirstLabel + l.Text
		out = append(out, l)
	}
	l := d.Users[n-1]
	if out[0].Text == FirstLabel+l.Text {
		return out
	}
	l.Text = LatestLabel + l.Text
	return append(out, l)
}

// United keeps the order of the first occurrences.
func United(old, fresh []Line) []Line {
	var s set
	for _, l := range slices.Concat(old, fresh) {
		s.add(l)
	}
	return s.all()
}

// appended moves repeated lines to the end.
func appended(old, fresh []Line) []Line {
	var s set
	for _, l := range slices.Concat(old, fresh) {
		s.again(l)
	}
	return s.all()
}

func clipped(lines []Line, n int) []Line {
	out := slices.Clone(lines)
	for i := range out {
		out[i].Text = snippet.Clip(out[i].Text, n)
	}
	return out
}

// filesUsed lists files by last use, newest first. A changed file stays a changed one.
func (d *Digest) filesUsed(old []Line) []Line {
	all := map[string]*file{}
	var order []*file
	var other []Line // of a model's text
	for i, l := range old {
		f := &file{last: -i}
		switch {
		case strings.HasSuffix(l.Text, changedSuffix):
			f.path, f.changed = strings.TrimSuffix(l.Text, changedSuffix), l.Turns
		case strings.HasSuffix(l.Text, readSuffix):
			f.path, f.read = strings.TrimSuffix(l.Text, readSuffix), l.Turns
		default:
			other = append(other, l)
			continue
		}
		if all[f.path] == nil {
			all[f.path] = f
			order = append(order, f)
		}
	}
	for _, f := range d.files {
		g := *f
		if o := all[f.path]; o != nil {
			g.changed, g.read = JoinTurns(o.changed, f.changed), JoinTurns(o.read, f.read)
			*o = g
			continue
		}
		order = append(order, &g)
	}
	slices.SortStableFunc(order, func(a, b *file) int { return cmp.Compare(b.last, a.last) })
	out := make([]Line, 0, len(order)+len(other))
	for _, f := range order {
		out = append(out, f.line())
	}
	return append(out, other...)
}

// line names the turn of the newest change, or of the newest read.
func (f *file) line() Line {
	if f.changed != [2]int64{} {
		return Line{Text: f.path + changedSuffix, Turns: [2]int64{f.changed[1], f.changed[1]}}
	}
	return Line{Text: f.path + readSuffix, Turns: [2]int64{f.read[1], f.read[1]}}
}

// errors appends the failures of the range; older ones are marked if their call has succeeded since.
func (d *Digest) errors(old []Line) []Line {
	fresh := make([]Line, len(d.failures))
	for i, f := range d.failures {
		fresh[i] = f.Line
	}
	old = slices.Clone(old)
	for i := range old {
		if h := headOf(old[i].Text); h != "" && d.succeeded[h] {
			old[i].fixed = true
		}
	}
	return appended(old, fresh)
}

// openTasks drops done tasks, and the items of an older list if there is a newer one.
func (d *Digest) openTasks(old []Line) []Line {
	old = slices.DeleteFunc(slices.Clone(old), func(l Line) bool { return d.closed(l.Text) })
	return appended(old, d.tasks.all())
}

// closed reports whether a task of the previous summary is over.
func (d *Digest) closed(text string) bool {
	return d.ticked[text] || d.taskList && !strings.HasPrefix(text, emptyBox)
}
