package summarize

import (
	"cmp"
	"slices"
	"strings"
)

const maxGoalLines = 6 // of a goal that a model wrote

// sections returns the lines of all sections, those of the previous summary
// merged in, each section oldest first, but files by their last use.
func (d *digest) sections() *sections {
	old := &sections{}
	if d.previous != nil {
		old = parse(d.previous.Text)
	}
	var out sections
	out[goal] = d.goal(old[goal])
	out[rules] = united(old[rules], d.rules)
	out[decisions] = appended(old[decisions], d.decisions)
	out[discoveries] = appended(old[discoveries], d.discoveries)
	out[filesUsed] = d.filesUsed(old[filesUsed])
	out[errorsMade] = d.errors(old[errorsMade])
	out[tasks] = d.openTasks(old[tasks])
	further := d.users
	if len(old[goal]) == 0 && len(further) > 0 {
		further = further[1:]
	}
	out[course] = appended(old[course], clipped(further, requestUnits))
	out[work] = appended(old[work], d.work)
	out[work] = out[work][max(0, len(out[work])-maxWork):]
	if out[next] = old[next]; len(d.users) > 0 {
		out[next] = clipped(d.users[len(d.users)-1:], sentenceUnits)
	}
	return &out
}

// goal is the first request of all, and the latest one.
func (d *digest) goal(old []line) []line {
	var out, latest []line
	for _, l := range old {
		if strings.HasPrefix(l.text, latestMark) {
			latest = []line{l}
		} else if len(out) < maxGoalLines {
			out = append(out, l)
		}
	}
	n := len(d.users)
	if n == 0 {
		return append(out, latest...)
	}
	if len(out) == 0 {
		l := d.users[0]
		l.text = firstMark + l.text
		out = append(out, l)
	}
	l := d.users[n-1]
	if out[0].text == firstMark+l.text {
		return out
	}
	l.text = latestMark + l.text
	return append(out, l)
}

// united keeps the order in which lines first came.
func united(old, fresh []line) []line {
	var s set
	for _, l := range slices.Concat(old, fresh) {
		s.add(l)
	}
	return s.all()
}

// appended moves what comes again to the end.
func appended(old, fresh []line) []line {
	var s set
	for _, l := range slices.Concat(old, fresh) {
		s.again(l)
	}
	return s.all()
}

func clipped(lines []line, n int) []line {
	out := slices.Clone(lines)
	for i := range out {
		out[i].text = clip(out[i].text, n)
	}
	return out
}

// filesUsed lists files by last use, newest first. A file that was ever changed
// counts as changed.
func (d *digest) filesUsed(old []line) []line {
	all := map[string]*file{}
	var order []*file
	var other []line // of a text that a model wrote
	for i, l := range old {
		f := &file{last: -i}
		switch {
		case strings.HasSuffix(l.text, changedMark):
			f.path, f.changed = strings.TrimSuffix(l.text, changedMark), l.turns
		case strings.HasSuffix(l.text, readMark):
			f.path, f.read = strings.TrimSuffix(l.text, readMark), l.turns
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
			g.changed, g.read = joined(o.changed, f.changed), joined(o.read, f.read)
			*o = g
			continue
		}
		order = append(order, &g)
	}
	slices.SortStableFunc(order, func(a, b *file) int { return cmp.Compare(b.last, a.last) })
	out := make([]line, 0, len(order)+len(other))
	for _, f := range order {
		out = append(out, f.line())
	}
	return append(out, other...)
}

// line names the turn of the newest change, or of the newest read.
func (f *file) line() line {
	if f.changed != [2]int64{} {
		return line{text: f.path + changedMark, turns: [2]int64{f.changed[1], f.changed[1]}}
	}
	return line{text: f.path + readMark, turns: [2]int64{f.read[1], f.read[1]}}
}

// errors appends the failures of the range; older ones whose call has succeeded
// since are marked.
func (d *digest) errors(old []line) []line {
	fresh := make([]line, len(d.failures))
	for i, f := range d.failures {
		fresh[i] = f.line
	}
	old = slices.Clone(old)
	for i := range old {
		if h := headOf(old[i].text); h != "" && d.succeeded[h] {
			old[i].fixed = true
		}
	}
	return appended(old, fresh)
}

// openTasks drops what is done, and the items of an older list when there is a
// newer one.
func (d *digest) openTasks(old []line) []line {
	old = slices.DeleteFunc(slices.Clone(old), func(l line) bool { return d.closed(l.text) })
	return appended(old, d.tasks.all())
}

// closed reports whether a task of the previous summary is over.
func (d *digest) closed(text string) bool {
	return d.ticked[text] || d.taskList && !strings.HasPrefix(text, boxMark)
}
