package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/tools/needs"
)

// COMPINT (github.com/ZhiqiEliWang/compaction-integrity, MIT, read on 2026-11-24) puts a side
// constraint in front of a user's message and has a model decide whether the compacted context still
// states it. Its contexts come from data sets that are not at hand: here they are recorded sessions,
// cut to its sizes, and a constraint survives only word by word, in the summary alone. Three
// constraints are put into each context, at its three places.

// compintSizes are the contexts of COMPINT, in tokens.
var compintSizes = []int64{10_000, 50_000, 100_000, 220_000}

// compintPlaces are where a constraint is put: in front of the first, the middle and the last message
// of the user.
var compintPlaces = []string{"top", "middle", "bottom"}

// compintRounds are how many compactions a context goes through, and compintMore is the share of it
// that comes between two of them.
const (
	compintRounds = 3
	compintMore   = 4
)

// constraint is a side constraint in one framing.
type constraint struct{ text, framed string }

var (
	compintText    = regexp.MustCompile(`(?m)^\s*"sssc": (?:"(.*)"|'(.*)'),$`)
	compintFraming = regexp.MustCompile(`(?m)^\s*ret \+= "(.*)"$`)
)

// readConstraints reads the constraints of a checkout, in each framing.
func readConstraints(dir string) (framings [][]constraint, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "src", "compaction_integrity", "sssc.py"))
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, m := range compintText.FindAllStringSubmatch(string(data), -1) {
		texts = append(texts, m[1]+m[2])
	}
	before := []string{""}
	for _, m := range compintFraming.FindAllStringSubmatch(string(data), -1) {
		before = append(before, m[1])
	}
	if len(texts) == 0 || len(before) == 1 {
		return nil, fmt.Errorf("%s has no constraints, or no framings, of COMPINT", dir)
	}
	for _, b := range before {
		var of []constraint
		for _, t := range texts {
			c := constraint{t, t}
			if b != "" {
				c.text = strings.ToLower(t[:1]) + t[1:]
				c.framed = b + c.text
			}
			of = append(of, c)
		}
		framings = append(framings, of)
	}
	return framings, nil
}

// compintContext is the beginning of a session, and places of its user's messages.
type compintContext struct {
	messages []summarize.Message
	users    []int
	tokens   int64
}

// newCompintContext cuts a session to a size; ok is false where it is shorter, or has too few messages of
// a user.
func newCompintContext(r *recording, size int64) (c compintContext, ok bool) {
	for _, t := range r.turns {
		for k, m := range t.messages {
			if c.tokens += t.tokens[k]; c.tokens > size {
				return c, len(c.users) >= len(compintPlaces)
			}
			if m.Role == dialect.RoleUser && slices.ContainsFunc(m.Parts, isText) {
				c.users = append(c.users, len(c.messages))
			}
			c.messages = append(c.messages, summarize.Message{Turn: t.number, Index: int64(k), Message: m})
		}
	}
	return c, false
}

func isText(p dialect.Part) bool { return p.Kind == dialect.PartText }

// with puts a constraint in front of the message at a place.
func (c *compintContext) with(messages []summarize.Message, place int, text string) {
	at := []int{c.users[0], c.users[len(c.users)/2], c.users[len(c.users)-1]}[place]
	m := &messages[at].Message
	m.Parts = slices.Clone(m.Parts)
	i := slices.IndexFunc(m.Parts, isText)
	m.Parts[i].Text = text + "\n\n" + m.Parts[i].Text
}

// run compacts a context with three constraints, and counts those that survive the first and the last
// compaction.
func (c *compintContext) run(ctx context.Context, three []constraint, out *[2][3]facts.Share) error {
	messages := slices.Clone(c.messages)
	for place := range compintPlaces {
		c.with(messages, place, three[place].framed)
	}
	preset := policy.Default()
	in := summarize.Input{Messages: messages, MaxUnits: estimate.Units(preset.Summarize.Ceiling(measure.Tokens(c.tokens)))}
	for round := range compintRounds {
		made, err := extract.New().Summarize(ctx, in)
		if errors.Is(err, summarize.ErrNothing) && in.Previous != nil {
			made, err = in.Previous, nil // what came since has nothing that is kept
		}
		text := "" // no room: all is lost
		switch {
		case err == nil:
			in.Previous, text = made, flat(needs.Text([]dialect.Message{made.Message()}))
		case !errors.Is(err, summarize.ErrNoRoom):
			return err
		}
		in.Messages = c.more(round)
		if round > 0 && round < compintRounds-1 {
			continue
		}
		for place := range compintPlaces {
			s := &out[min(round, 1)][place]
			s.All++
			if strings.Contains(text, flat(three[place].text)) {
				s.Kept++
			}
		}
	}
	return nil
}

// more are messages that come between two compactions: some of the session, again.
func (c *compintContext) more(round int) []summarize.Message {
	n := len(c.messages) / compintMore
	out := slices.Clone(c.messages[round*n : (round+1)*n])
	for i := range out {
		out[i].Turn += int64(round+1) * 1_000_000
	}
	return out
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// evalCompint prints which constraints summaries state after one and after three compactions, without a
// model.
func evalCompint(ctx context.Context, dir string, cs []*corpus, p printer) error {
	if dir == "" {
		p.note("compint: set COMPINT to a checkout of github.com/ZhiqiEliWang/compaction-integrity")
		return nil
	}
	framings, err := readConstraints(dir)
	if err != nil {
		return err
	}
	var all [2]facts.Share
	for _, size := range compintSizes {
		var contexts []compintContext
		for _, c := range cs {
			for _, r := range c.long() {
				if x, ok := newCompintContext(r, size); ok {
					contexts = append(contexts, x)
				}
			}
		}
		if len(contexts) == 0 {
			p.note("compint: no session has %d messages of a user in its first %d tokens, and is longer", len(compintPlaces), size)
			continue
		}
		var kept [2][3]facts.Share
		for f, of := range framings {
			for i := range of {
				three := []constraint{of[i], of[(i+len(of)/3)%len(of)], of[(i+2*len(of)/3)%len(of)]}
				if err := contexts[(f*len(of)+i)%len(contexts)].run(ctx, three, &kept); err != nil {
					return err
				}
			}
		}
		for i, rounds := range []int{1, compintRounds} {
			var sum facts.Share
			for place, name := range compintPlaces {
				s := kept[i][place]
				sum = sum.Plus(s)
				p.line(fmt.Sprintf("compint/%d/%s/%d", size, name, rounds), s.Ratio(), goal{}, s.String())
			}
			all[i] = all[i].Plus(sum)
		}
		p.note("compint/%d: %d sessions are long enough", size, len(contexts))
	}
	for i, rounds := range []int{1, compintRounds} {
		p.line(fmt.Sprintf("compint/%d", rounds), all[i].Ratio(), atLeast(0.956), all[i].String())
	}
	p.note("compint: %d constraints in %d framings; published, by a model that decides whether the meaning is stated, 0.17 in the mean of compactors, and 0.903 to 0.956 with an extractor that is a model", len(framings[0]), len(framings))
	return nil
}
