package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
)

// weekChecks is after how many compactions facts are looked for.
const weekChecks = 10

// mostLost is how many facts that a session of a week has lost are printed of a kind.
const mostLost = 5

// week joins sessions into one, again and again until it has so many turns. In each round but
// the first all work is new: absolute paths have another root, and the words of users begin
// with the number of the round. Usage goes: it was counted for another history.
func week(all []*recording, turns int) (*recording, error) {
	out := &recording{name: "week", format: all[0].format}
	at := int64(0)
	for n := 0; len(out.turns) < turns; n++ {
		for k, r := range all {
			if r.format != out.format {
				continue
			}
			last := int64(0)
			for _, t := range r.turns {
				payload, err := renewed(t.payload, len(out.turns)+1, n, n*len(all)+k)
				if err != nil {
					return nil, fmt.Errorf("join sessions: %w", err)
				}
				if last > 0 && t.at > last {
					at += t.at - last
				}
				last = t.at
				if err := out.add(payload, at); err != nil {
					return nil, fmt.Errorf("join sessions: %w", err)
				}
			}
			at += 3_600_000
		}
	}
	return out, nil
}

// The parts of a turn's payload that are new in each round of a week. Texts that agents
// put into the messages of users begin otherwise.
var (
	absolute = regexp.MustCompile(`":\s*"/[a-zA-Z]`)
	worded   = regexp.MustCompile(`"role":\s*"user","content":(?:\[\{"type":\s*"text","text":)?\s*"[a-zAD-Z]`)
)

// renewed is the payload of a turn as one with another number, in a round, of the session with
// another number.
func renewed(payload []byte, turn, round, session int) ([]byte, error) {
	var fields map[string]codec.Raw
	if err := codec.Unmarshal(payload, &fields); err != nil {
		return nil, err
	}
	for _, f := range []string{"usage", "generation", "id"} {
		delete(fields, f)
	}
	fields["turn"] = codec.Raw(strconv.Itoa(turn))
	data, err := codec.Marshal(fields)
	if err != nil {
		return nil, err
	}
	data = ids.ReplaceAll(data, fmt.Appendf(nil, "${1}${2}-%d\"", session))
	if round == 0 {
		return data, nil
	}
	data = absolute.ReplaceAllFunc(data, func(b []byte) []byte {
		root := len(b) - 2
		return fmt.Appendf(nil, "%s/round%d%s", b[:root], round, b[root:])
	})
	return worded.ReplaceAllFunc(data, func(b []byte) []byte { return fmt.Appendf(nil, "%sRound %d: %s", b[:len(b)-1], round, b[len(b)-1:]) }), nil
}

// held are facts of one kind: those that a history has, and those that it has or names the
// turns of.
type held struct {
	verbatim, addressable facts.Share
	lost                  []facts.Probe
}

// evalWeek prints how the summary of a session of a week grows, and what its history still has.
func evalWeek(ctx context.Context, c *corpus, turns int, p printer) (err error) {
	if len(c.long()) == 0 {
		p.note("week: no session is long enough")
		return nil
	}
	ws, stop, err := writers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r, err := week(c.long(), turns)
	if err != nil {
		return err
	}
	worst, growth := 0.0, 0.0
	worstOf := make([]held, len(facts.Kinds))
	for _, w := range ws {
		s, err := live(ctx, r, w.summarizer, weekChecks)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if len(s.units) < 10 {
			p.note("week/%s: %d compactions are no week", w.name, len(s.units))
			continue
		}
		most := slices.Max(s.shares)
		grown := float64(s.units[len(s.units)-1]) / float64(s.units[9])
		worst, growth = max(worst, most), max(growth, grown)
		p.line("week_share_max/"+w.name, most, goal{}, fmt.Sprintf("%d turns, %d compactions with a summary", s.turns, len(s.units)))
		p.line("week_growth/"+w.name, grown, goal{}, fmt.Sprintf("UTF-16 units after each fifth compaction %v", fifthOf(s.units)))
		for i, k := range facts.Kinds {
			h := s.facts[i]
			if h.verbatim.All == 0 {
				continue
			}
			p.line("week_"+k.Name+"/"+w.name, h.addressable.Ratio(), goal{}, fmt.Sprintf("%s of %d checks; verbatim %s", h.addressable, s.checks, number(h.verbatim.Ratio())))
			for _, f := range h.lost[:min(len(h.lost), mostLost)] {
				p.note("lost: %s of %s: %q", k.Name, r.name, []string(f))
			}
			worstOf[i] = least(worstOf[i], h)
		}
	}
	p.line("week_share_max", worst, atMost(0.04), "the largest")
	p.line("week_growth", growth, atMost(1.2), "the largest, the last over the tenth")
	for i, k := range facts.Kinds {
		if worstOf[i].addressable.All > 0 {
			p.line("week_"+k.Name, worstOf[i].addressable.Ratio(), atLeast(1), "the least, verbatim or addressable")
		}
	}
	return nil
}

func fifthOf(units []int) (out []int) {
	for i := 4; i < len(units); i += 5 {
		out = append(out, units[i])
	}
	return out
}

func (h *held) add(o held) {
	h.verbatim, h.addressable = h.verbatim.Plus(o.verbatim), h.addressable.Plus(o.addressable)
	h.lost = append(h.lost, o.lost...)
}

// more is a line of a record that stands for facts that had no room, and the turns it names.
var more = regexp.MustCompile(`^- (\w+) \(turns? [\d-]+\): \d+ more, recall turns? ([\d, -]+)$`)

// recordKinds are the kinds of a record's lines that hold a kind of facts.
var recordKinds = map[string]string{"paths": "path_changed", "user_messages": "user", "failures": "failure", "todos": "todo", "instructions": "instruction"}

// look looks for facts word by word, or for the turns where they stand.
func look(history []dialect.Message, f *facts.Facts, k facts.Kind) (h held) {
	lines := facts.Lines(history)
	named := addresses(history)[recordKinds[k.Name]]
	var lost []facts.Probe
	h.verbatim, lost = lines.Holds(k.Of(f))
	h.addressable = h.verbatim
	for _, x := range lost {
		if slices.ContainsFunc(f.Turns(x), func(n int64) bool { return named[n] }) {
			h.addressable.Kept++
		} else {
			h.lost = append(h.lost, x)
		}
	}
	return h
}

// addresses are the turns that records name for what they have no room for, by kind.
func addresses(history []dialect.Message) map[string]map[int64]bool {
	out := map[string]map[int64]bool{}
	for _, m := range history {
		for i := range m.Parts {
			for l := range strings.Lines(m.Parts[i].Text) {
				if x := more.FindStringSubmatch(strings.TrimSpace(l)); x != nil {
					if out[x[1]] == nil {
						out[x[1]] = map[int64]bool{}
					}
					name(out[x[1]], x[2])
				}
			}
		}
	}
	return out
}

// name notes the turns of a list such as "3, 7-9".
func name(turns map[int64]bool, list string) {
	for s := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(s), "-")
		a, _ := strconv.ParseInt(from, 10, 64)
		b := a
		if ranged {
			b, _ = strconv.ParseInt(to, 10, 64)
		}
		for n := a; n <= b; n++ {
			turns[n] = true
		}
	}
}
