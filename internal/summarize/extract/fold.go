package extract

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"compactd/internal/events"
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize"
)

// A record has a fold for items without room: one line for each kind with their number and turns, so that a
// recall finds them. A fold includes the fold of the previous record, and has a bound of its own: if its
// turns are too many, the nearest become a range.

// foldKinds are the kinds with folds.
var foldKinds = []events.RecordKind{
	events.RecordInstruction, events.RecordUser, events.RecordPathChanged, events.RecordTodo, events.RecordFailure,
}

const (
	// foldUnits bounds the turns of a fold, and foldShare them by the room of the record.
	foldUnits, foldShare = 480, 16
	// foldFrom is the least room of a record with folds: in a smaller one they would take the place of facts.
	foldFrom = 1_500
)

// fold counts the dropped lines of a kind, and has their turns: spans, in order.
type fold struct {
	count int
	turns [][2]int64
}

var foldLine = lazyregexp.New(`^(\d{1,9}) more, recall turns? ([\d, -]+)$`)

// parseFold reads the line of a fold in a record.
func parseFold(r events.RecordLine) (f fold, ok bool) {
	if !slices.Contains(foldKinds, r.Kind) {
		return f, false
	}
	return foldOf(r.Text)
}

// foldOf reads the text of a fold.
func foldOf(text string) (f fold, ok bool) {
	m := foldLine().FindStringSubmatch(text)
	if m == nil {
		return f, false
	}
	f.count, _ = strconv.Atoi(m[1])
	for s := range strings.SplitSeq(m[2], ", ") {
		from, to, ranged := strings.Cut(s, "-")
		a, err := strconv.ParseInt(from, 10, 64)
		b := a
		if ranged && err == nil {
			b, err = strconv.ParseInt(to, 10, 64)
		}
		if err != nil || b < a {
			return f, false
		}
		f.turns = append(f.turns, [2]int64{a, b})
	}
	return f, true
}

// movedTo returns the text of a line that names the turns of another history: the lines of a fold are now in
// the turn of the message that contains it.
func movedTo(text string, turn int64) string {
	if f, ok := foldOf(text); ok {
		text, _ = fold{f.count, [][2]int64{{turn, turn}}}.text(0)
	}
	return text
}

// folds returns the folds of the previous record.
func (d *Digest) folds() map[events.RecordKind]fold {
	out := map[events.RecordKind]fold{}
	if d.Previous != nil {
		for _, r := range d.Previous.Record {
			if f, ok := parseFold(r); ok {
				out[r.Kind] = out[r.Kind].with(f)
			}
		}
	}
	return out
}

// with joins two folds.
func (f fold) with(o fold) fold {
	all := slices.SortedFunc(slices.Values(slices.Concat(f.turns, o.turns)), func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	out := fold{count: f.count + o.count}
	for _, t := range all {
		if n := len(out.turns); n > 0 && t[0] <= out.turns[n-1][1]+1 {
			out.turns[n-1][1] = max(out.turns[n-1][1], t[1])
			continue
		}
		out.turns = append(out.turns, t)
	}
	return out
}

// line is the line of a fold whose turns take at most so many units.
func (f fold) line(k events.RecordKind, units int) events.RecordLine {
	text, turns := f.text(units)
	return events.RecordLine{Kind: k, Text: text, Turns: turns}
}

// text is the text of a fold whose turns take at most so many units, with the turns from the first to the
// last.
func (f fold) text(units int) (text string, from [2]int64) {
	gaps := make([]int, len(f.turns)-1) // the spans behind them, the shortest gap first
	for i := range gaps {
		gaps[i] = i + 1
	}
	gap := func(i int) int64 { return f.turns[i][0] - f.turns[i-1][1] }
	slices.SortStableFunc(gaps, func(a, b int) int { return cmp.Compare(gap(a), gap(b)) })
	near := sort.Search(len(gaps), func(n int) bool { return len(listed(f.joined(gaps[:n]))) <= units })
	turns := f.joined(gaps[:near])
	list := listed(turns)
	word := "turns"
	if len(turns) == 1 && turns[0][0] == turns[0][1] {
		word = "turn"
	}
	return fmt.Sprintf("%d more, recall %s %s", f.count, word, list), [2]int64{turns[0][0], turns[len(turns)-1][1]}
}

// joined returns the turns of a fold, where each span that ends one of the gaps is joined with the one before it.
func (f fold) joined(gaps []int) [][2]int64 {
	closed := make([]bool, len(f.turns))
	for _, i := range gaps {
		closed[i] = true
	}
	var out [][2]int64
	for i, t := range f.turns {
		if closed[i] {
			out[len(out)-1][1] = t[1]
		} else {
			out = append(out, t)
		}
	}
	return out
}

func listed(turns [][2]int64) string {
	parts := make([]string, len(turns))
	for i, t := range turns {
		if parts[i] = strconv.FormatInt(t[0], 10); t[1] > t[0] {
			parts[i] += "-" + strconv.FormatInt(t[1], 10)
		}
	}
	return strings.Join(parts, ", ")
}

// fold makes the lines for dropped items, and reports whether the record is too long with them.
func (f *fitter) fold() bool {
	if f.room < foldFrom {
		return false
	}
	f.over -= f.folding
	f.folds, f.folding = nil, 0
	for _, k := range foldKinds {
		x, dropped := f.earlier[k], fold{}
		for i := range f.facts {
			if r := &f.facts[i]; r.Kind == k && r.gone && !r.ruled {
				dropped.count++
				dropped.turns = append(dropped.turns, turnsOf(r.Turns)...)
			}
		}
		if dropped.count > 0 {
			x = x.with(dropped)
		}
		if x.count > 0 {
			l := x.line(k, min(foldUnits, f.room/foldShare))
			f.folds = append(f.folds, l)
			f.folding += summarize.RecordCost(l)
		}
	}
	f.over += f.folding
	return f.over > 0 && slices.ContainsFunc(f.facts, func(r fact) bool { return !r.gone })
}
