package extract

import (
	"cmp"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/snippet"
)

const (
	maxIdents    = 60
	maxReads     = 120
	maxDecisions = 40
	// textFloor is kept free for a text beside the record, in units.
	textFloor = 600
	// minRecord is the least room for a record, in units.
	minRecord = 250
	// freshUsers are the newest user messages, which are cut last.
	freshUsers = 3
	// freshFailures are the newest failures, which are not cut, and not dropped early when a
	// later call succeeded.
	freshFailures = 8
	// firstRecord bounds a record, mergedRecord one that continues another, in units: less than 2,500 and
	// 4,000 tokens by the default estimate for Claude.
	firstRecord  = 7_000
	mergedRecord = 12_500
	// recordPermille bounds a record as a part of the message. leastPermille is the part that it may take
	// whatever the rules need.
	recordPermille, leastPermille = 710, 300
	// instructionPermille bounds the system's words, the newest, in a record that is too long.
	instructionPermille = 750
)

// factOrder is the order of kinds in a record.
var factOrder = []events.RecordKind{
	events.RecordInstruction, events.RecordUser, events.RecordPathChanged, events.RecordPathRead, events.RecordTodo,
	events.RecordFailure, events.RecordDecision, events.RecordIdentifier,
}

// Record makes the record of a range for a message of at most maxMessage units. It is nil if none of the
// facts fits: there is no summary without its record.
func (d *Digest) Record(maxMessage int) []events.RecordLine {
	all := d.facts()
	most := firstRecord
	if d.Previous != nil {
		most = mergedRecord
	}
	rules, more := d.userRules()
	text := textFloor + rulesCost(more.behind(rules))
	least := max(maxMessage*leastPermille/1_000, minRecord)
	room := min(max(maxMessage*recordPermille/1_000, minRecord), max(maxMessage-summarize.Frame-text, least), most) - summarize.RecordFrame
	f := newFitter(all, d.folds(), room)
	f.ruled(rules)
	f.fit(room * instructionPermille / 1_000)
	return f.lines()
}

// facts merges the facts of the range into those of the previous summary.
func (d *Digest) facts() map[events.RecordKind][]Line {
	old := map[events.RecordKind][]Line{}
	if d.Previous != nil {
		for _, r := range d.Previous.Record {
			if _, ok := parseFold(r); ok {
				continue
			}
			if l := factLine(r); l.Text != "" {
				old[r.Kind] = append(old[r.Kind], l)
			}
		}
	}
	paths := map[events.RecordKind][]Line{}
	for _, f := range d.files {
		if f.changed != [2]int64{} {
			paths[events.RecordPathChanged] = append(paths[events.RecordPathChanged], Line{Text: f.path, Turns: f.changed})
		} else {
			paths[events.RecordPathRead] = append(paths[events.RecordPathRead], Line{Text: f.path, Turns: f.read})
		}
	}
	changed := United(old[events.RecordPathChanged], paths[events.RecordPathChanged])
	return map[events.RecordKind][]Line{
		events.RecordInstruction: appended(old[events.RecordInstruction], d.instructions),
		events.RecordUser:        United(old[events.RecordUser], clipped(d.userFacts, userUnits)),
		events.RecordPathChanged: newestFirst(changed),
		events.RecordPathRead:    newestFirst(without(United(old[events.RecordPathRead], paths[events.RecordPathRead]), changed)),
		events.RecordTodo:        d.openTasks(old[events.RecordTodo]),
		events.RecordFailure:     d.errors(old[events.RecordFailure]),
		events.RecordDecision:    lastLines(appended(old[events.RecordDecision], d.decisions), maxDecisions),
		events.RecordIdentifier:  lastLines(appended(old[events.RecordIdentifier], d.idents.all()), maxIdents),
	}
}

// factLine reads a line of the previous record.
func factLine(r events.RecordLine) Line {
	if r.Kind == events.RecordInstruction {
		return Line{Text: r.Text, Turns: r.Turns}
	}
	l := Line{Text: snippet.Clip(r.Text, lineUnits), Turns: r.Turns}
	if r.Kind == events.RecordFailure {
		l.Text, l.fixed = strings.CutSuffix(l.Text, " ("+fixedNote+")")
	}
	return l
}

func newestFirst(lines []Line) []Line {
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(b.Turns[1], a.Turns[1]) })
	return lines
}

func lastLines(lines []Line, n int) []Line { return lines[max(0, len(lines)-n):] }

// without drops the lines with the same text as one of others.
func without(lines, others []Line) []Line {
	known := textsOf(others)
	return slices.DeleteFunc(lines, func(l Line) bool { return known[l.Text] })
}

func textsOf(lines []Line) map[string]bool {
	out := make(map[string]bool, len(lines))
	for _, l := range lines {
		out[l.Text] = true
	}
	return out
}

// fact is a line of a record during fitting.
type fact struct {
	events.RecordLine
	fixed bool
	cost  int
	gone  bool
	ruled bool // a message of the user that is a rule of the text, word for word
}

// fitter makes a record fit: it drops and shortens the least needed facts first. Some kinds have a fold, a
// line with the turns of dropped lines.
type fitter struct {
	facts []fact // in the order of the record
	age   []int  // oldest first
	room  int
	over  int // units too many
	costs map[events.RecordKind]int

	earlier map[events.RecordKind]fold // of lines dropped earlier
	folds   []events.RecordLine        // of lines dropped now
	folding int                        // their units
}

func newFitter(all map[events.RecordKind][]Line, earlier map[events.RecordKind]fold, room int) *fitter {
	f := &fitter{room: room, over: -room, costs: map[events.RecordKind]int{}, earlier: earlier}
	for _, k := range factOrder {
		lines := all[k]
		if k == events.RecordPathRead {
			lines = lines[:min(len(lines), maxReads)]
		}
		for _, l := range lines {
			r := fact{RecordLine: events.RecordLine{Kind: k, Text: l.Text, Turns: l.Turns}, fixed: l.fixed}
			if l.fixed {
				r.Text += " (" + fixedNote + ")"
			}
			f.price(&r)
			f.age = append(f.age, len(f.facts))
			f.facts = append(f.facts, r)
		}
	}
	slices.SortStableFunc(f.age, func(a, b int) int {
		return cmp.Compare(f.facts[a].Turns[1], f.facts[b].Turns[1])
	})
	return f
}

// ruled marks the messages of users that the text contains as rules.
func (f *fitter) ruled(rules []Line) {
	known := textsOf(rules)
	first := f.firstUser()
	for i := range f.facts {
		r := &f.facts[i]
		r.ruled = r.Kind == events.RecordUser && known[r.Text] && r != first
	}
}

// recordShares are the shares of a record that each kind keeps when all are too long, per thousand of the
// room beside instructions.
var recordShares = []struct {
	kind     events.RecordKind
	permille int
}{
	{events.RecordUser, 350}, {events.RecordPathChanged, 250}, {events.RecordFailure, 250}, {events.RecordTodo, 150},
}

// fit goes through its steps until nothing is over, and then folds the dropped lines, which may take room
// again. Instructions are cut to so many units first, and dropped last.
func (f *fitter) fit(instructions int) {
	for f.drops(instructions); f.fold(); {
		f.drops(instructions)
	}
}

func (f *fitter) drops(instructions int) {
	is := func(k events.RecordKind) func(*fact) bool { return func(r *fact) bool { return r.Kind == k } }
	f.capInstructions(instructions)
	f.drop(is(events.RecordPathRead))
	f.drop(is(events.RecordIdentifier))
	f.drop(is(events.RecordDecision))
	f.drop(func(r *fact) bool { return r.ruled })
	f.cut(events.RecordUser, freshUsers, func(s string) string {
		if strings.HasPrefix(s, attachedLabel) {
			return clipUser(s, 80)
		}
		return s
	})
	f.cut(events.RecordUser, freshUsers, func(s string) string { return clipUser(s, 160) })
	f.cut(events.RecordUser, freshUsers, func(s string) string { return clipUser(s, 80) })
	f.cut(events.RecordFailure, freshFailures, func(s string) string { return shortened(s, commandUnits, 80) })
	f.cut(events.RecordFailure, freshFailures, func(s string) string { return shortened(s, 56, 64) })
	fresh := f.newest(events.RecordFailure, freshFailures)
	f.drop(func(r *fact) bool { return r.Kind == events.RecordFailure && r.fixed && !slices.Contains(fresh, r) })
	first := f.firstUser()
	left := f.room - f.folding - f.costs[events.RecordInstruction]
	for _, x := range recordShares {
		most := left * x.permille / 1_000
		for _, i := range f.age {
			r := &f.facts[i]
			if f.over <= 0 || f.costs[x.kind] <= most {
				break
			}
			if r.Kind == x.kind && r != first {
				f.remove(r)
			}
		}
	}
	f.cut(events.RecordUser, freshUsers, func(s string) string { return clipUser(s, 40) })
	f.drop(is(events.RecordFailure))
	f.drop(func(r *fact) bool { return r != first && r.Kind != events.RecordInstruction })
	f.drop(is(events.RecordInstruction))
	f.drop(func(*fact) bool { return true })
}

// clipUser shortens a message of a user after its label.
func clipUser(s string, n int) string {
	if rest, ok := strings.CutPrefix(s, attachedLabel); ok {
		return attachedLabel + snippet.Clip(rest, n)
	}
	return snippet.Clip(s, n)
}

// price counts the cost of a fact whose text is new.
func (f *fitter) price(r *fact) {
	was := r.cost
	r.cost = summarize.RecordCost(r.RecordLine)
	f.over += r.cost - was
	f.costs[r.Kind] += r.cost - was
}

func (f *fitter) remove(r *fact) {
	if !r.gone {
		r.gone = true
		f.over -= r.cost
		f.costs[r.Kind] -= r.cost
	}
}

// capInstructions drops instructions that do not fit into most units; the newest are kept first. One that
// alone exceeds it is cut.
func (f *fitter) capInstructions(most int) {
	if f.over <= 0 {
		return
	}
	left := most
	for _, i := range slices.Backward(f.age) {
		r := &f.facts[i]
		if r.Kind != events.RecordInstruction || r.gone {
			continue
		}
		if left == most && r.cost > most {
			r.Text = snippet.Head(r.Text, max(len(r.Text)*(most-minInstruction)/r.cost, minInstruction)) + snippet.Ellipsis
			f.price(r)
		}
		if r.cost > left {
			f.remove(r)
			left = 0
			continue
		}
		left -= r.cost
	}
}

// minInstruction is the shortest piece of an instruction that is worth having, in bytes.
const minInstruction = 80

// drop drops the selected facts, oldest first.
func (f *fitter) drop(which func(*fact) bool) {
	for _, i := range f.age {
		if f.over <= 0 {
			return
		}
		if r := &f.facts[i]; which(r) {
			f.remove(r)
		}
	}
}

// newest lists the newest n lines of a kind, oldest first.
func (f *fitter) newest(k events.RecordKind, n int) (all []*fact) {
	for _, i := range f.age {
		if r := &f.facts[i]; r.Kind == k && !r.gone {
			all = append(all, r)
		}
	}
	return all[max(0, len(all)-n):]
}

// cut shortens the lines of a kind, oldest first, except the newest.
func (f *fitter) cut(k events.RecordKind, newest int, by func(string) string) {
	all := f.newest(k, len(f.facts))
	for _, r := range all[:max(0, len(all)-newest)] {
		if f.over <= 0 {
			return
		}
		text, note := r.Text, ""
		if r.fixed {
			note = " (" + fixedNote + ")"
			text = strings.TrimSuffix(text, note)
		}
		r.Text = by(text) + note
		f.price(r)
	}
}

// firstUser is the first request of the session.
func (f *fitter) firstUser() *fact {
	for i := range f.facts {
		if r := &f.facts[i]; r.Kind == events.RecordUser {
			return r
		}
	}
	return nil
}

func (f *fitter) lines() []events.RecordLine {
	if len(f.facts) == 0 {
		return []events.RecordLine{}
	}
	var out []events.RecordLine
	for i := range f.facts {
		if r := &f.facts[i]; !r.gone {
			out = append(out, r.RecordLine)
		}
	}
	return append(out, f.folds...)
}
