package extract

import (
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/snippet"
)

// shares bound all sections but the rules, which come first, each to parts per thousand of the text and to a
// number of lines. Unused room goes to other sections in the same order, that of the loss with a line.
var shares = [...]struct {
	kind     Kind
	permille int
	lines    int
}{
	{Goal, 1_000, 7}, // two requests and a model's goal
	{tasks, 120, 50},
	{Next, 100, 3},
	{work, 100, maxWork},
	{filesUsed, 150, 80},
	{decisions, 120, 40},
	{errorsMade, 120, 40},
	{course, 120, 60},
	{Discoveries, 80, 30},
}

// goalFloor is kept free of rules for the goal of the session, in units.
const goalFloor = 300

// minLine is the shortest piece of a line that is worth having.
const minLine = 24

// shelf has the lines of one section while lines are chosen.
type shelf struct {
	lines []Line
	order []int // in which lines are taken
	taken []bool
	left  int // lines that may still be taken
	used  int // units
	title string
}

// Fit returns the text of the sections within room, in units; it is empty if nothing fits. If not everything
// fits, rules go first, newer lines before older ones, and lines with a word of the focus before all others.
func (s *Sections) Fit(room int, focus []string) string {
	var shelves [Kinds]*shelf
	for k := range Kinds {
		shelves[k] = newShelf(k, s[k], focus)
	}
	rules := fitRules(s[Rules], room-min(room/4, goalFloor))
	shelves[Rules] = newShelf(Rules, rules, nil)
	shelves[Rules].left = len(rules)
	for i, l := range shelves[Goal].lines {
		shelves[Goal].lines[i].Text = snippet.Clip(l.Text, max(minLine, min(room/4, GoalUnits))+len(LatestLabel))
	}
	for i, l := range shelves[Next].lines {
		shelves[Next].lines[i].Text = snippet.Clip(l.Text, max(minLine, min(room/8, snippet.SentenceUnits)))
	}
	left := room - shelves[Rules].take(room)
	room = left
	for _, share := range shares {
		f := shelves[share.kind]
		f.left = share.lines
		left -= f.take(min(left, room*share.permille/1_000))
		if share.kind == Goal && f.used == 0 {
			left -= f.takePiece(left)
		}
	}
	for _, share := range shares {
		left -= shelves[share.kind].take(left)
	}
	for _, share := range shares {
		if left < room {
			break
		}
		left -= shelves[share.kind].takePiece(room) // tiny: a piece of the first line there is
	}
	return render(shelves[:])
}

func newShelf(k Kind, lines []Line, focus []string) *shelf {
	f := &shelf{lines: slices.Clone(lines), taken: make([]bool, len(lines)), title: titles[k]}
	switch k {
	case Rules, Goal, Next: // in the order of their first use
		f.order = f.pick(func(int) bool { return true })
	case filesUsed: // newest first already
		f.order = slices.Concat(f.pick(f.changed), f.pick(func(i int) bool { return !f.changed(i) }))
	default:
		focused, others := f.pick(func(i int) bool { return f.focused(i, focus) }), f.pick(func(i int) bool { return !f.focused(i, focus) })
		slices.Reverse(focused)
		slices.Reverse(others)
		f.order = slices.Concat(focused, others)
	}
	return f
}

func (f *shelf) pick(want func(int) bool) []int {
	var out []int
	for i := range f.lines {
		if want(i) {
			out = append(out, i)
		}
	}
	return out
}

func (f *shelf) changed(i int) bool { return strings.HasSuffix(f.lines[i].Text, changedSuffix) }

func (f *shelf) focused(i int, focus []string) bool {
	return len(focus) > 0 && anyOf(snippet.Lowered(f.lines[i].Text), strings.Contains, focus...)
}

// headCost is the cost of the heading and the blank line before it.
func (f *shelf) headCost() int { return snippet.TextCost("## "+f.title) + 1 }

// take takes lines in their order while they fit into room more units, and returns the units taken.
func (f *shelf) take(room int) int {
	before := f.used
	for len(f.order) > 0 && f.left > 0 {
		i := f.order[0]
		cost := snippet.TextCost(f.lines[i].String())
		if f.used == 0 {
			cost += f.headCost()
		}
		if f.used-before+cost > room {
			break
		}
		f.used += cost
		f.taken[i] = true
		f.order = f.order[1:]
		f.left--
	}
	return f.used - before
}

// takePiece takes the head of the first line, if room is worth it, and returns the units taken.
func (f *shelf) takePiece(room int) int {
	if len(f.order) == 0 {
		return 0
	}
	i := f.order[0]
	l := f.lines[i]
	for n := room; n >= minLine; n-- {
		l.Text = snippet.Clip(l.Text, n)
		f.used = f.headCost() + snippet.TextCost(l.String())
		if f.used <= room {
			f.lines[i], f.taken[i], f.order = l, true, f.order[1:]
			return f.used
		}
	}
	f.used = 0
	return 0
}

func render(shelves []*shelf) string {
	var b strings.Builder
	for _, f := range shelves {
		if !slices.Contains(f.taken, true) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("## " + f.title + "\n")
		for i, l := range f.lines {
			if f.taken[i] {
				b.WriteString(l.String() + "\n")
			}
		}
	}
	return b.String()
}

// minNoticed is the least room, in units, of a text that begins with the notice.
const minNoticed = 2_000

// NoticeRoom is the part of a room for the notice, in units: 0 if too little would be left.
func NoticeRoom(room int) int {
	if room < minNoticed {
		return 0
	}
	return snippet.TextCost(notice) + 1
}

// Noticed returns a text after the notice, if there is room for it.
func Noticed(text string, room int) string {
	if text == "" || NoticeRoom(room) == 0 {
		return text
	}
	return notice + "\n\n" + text
}

// Text returns all lines if they fit, else those chosen by Fit.
func (s *Sections) Text(room int, focus []string) string {
	shelves := make([]*shelf, Kinds)
	for k := range Kinds {
		shelves[k] = newShelf(k, s[k], nil)
		for i := range shelves[k].taken {
			shelves[k].taken[i] = true
		}
	}
	if whole := render(shelves); codec.Units(whole)+3*snippet.Tags(whole) <= room {
		return whole
	}
	return s.Fit(room, focus)
}
