package sanitize

import (
	"errors"
	re "regexp/syntax"
	"slices"
	"strings"
)

// Expressions of rules are matched by a small machine of our own: they are lists of
// alternatives, each a chain of runs of bytes of a class. Its work at one place is
// bounded by the length of the chain, not by that of the text: where a run of a class
// ends is looked up once for all places in it. Package regexp would need its time at
// each place again.

// class is a set of bytes.
type class [4]uint64

func (c *class) add(b byte)      { c[b>>6] |= 1 << (b & 63) }
func (c *class) has(b byte) bool { return c[b>>6]&(1<<(b&63)) != 0 }

// not is the set of all other bytes.
func (c class) not() class { return class{^c[0], ^c[1], ^c[2], ^c[3]} }

func (c *class) meets(o *class) bool {
	return c[0]&o[0]|c[1]&o[1]|c[2]&o[2]|c[3]&o[3] != 0
}

// kinds of links.
const (
	linkRun      = iota // min to max bytes of a class
	linkBoundary        // between a word and something else
	linkStart           // of the text
	linkEnd             // of the text
	linkStop            // behind a value: a quote, white space, a semicolon, \n written out, the end of the text
	linkOpen            // of a group
	linkClose           // of a group
)

// link is one step of a chain.
type link struct {
	kind     int
	min, max int  // max < 0 is no bound
	gives    bool // it may have to be shorter than it can be
	class    class
	id       int // of the class, or of the group
}

type chain []link

const (
	maxChains  = 4_096
	maxUnroll  = 4 // repetitions of more than one byte
	openSpread = 3 // lengths of a run that become a chain each
	maxSpread  = 3 // letters of a class that become a chain each
	noBound    = -1

	// gitleaksStop is how rules of gitleaks end; stopRune stands for it.
	gitleaksStop = `(?:[\x60'"\s;]|\\[nr]|$)`
	stopRune     = '\uf8ff'
)

var errExpr = errors.New("the expression is not a list of chains")

// chainsOf reads an expression. A run of few lengths becomes a chain for each length, and a small class one for
// each member, so that words are long and have a fixed place.
func chainsOf(expr string) ([]chain, error) {
	parsed, err := re.Parse(strings.ReplaceAll(expr, gitleaksStop, string(stopRune)), re.Perl)
	if err != nil {
		return nil, err
	}
	all, err := chains(parsed)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = all[i].joined()
		all[i].keepSuffixes()
	}
	return all, nil
}

func chains(x *re.Regexp) ([]chain, error) {
	switch x.Op {
	case re.OpEmptyMatch:
		return []chain{nil}, nil
	case re.OpLiteral:
		var c chain
		for _, r := range x.Rune {
			c = append(c, literal(r, x.Flags&re.FoldCase != 0)...)
		}
		return []chain{c}, nil
	case re.OpCharClass, re.OpAnyChar, re.OpAnyCharNotNL:
		return spread(run(x, 1, 1)), nil
	case re.OpStar:
		return repeated(x.Sub[0], 0, noBound)
	case re.OpPlus:
		return repeated(x.Sub[0], 1, noBound)
	case re.OpQuest:
		return repeated(x.Sub[0], 0, 1)
	case re.OpRepeat:
		return repeated(x.Sub[0], x.Min, x.Max)
	case re.OpConcat:
		return product(x.Sub)
	case re.OpAlternate:
		var all []chain
		for _, sub := range x.Sub {
			c, err := chains(sub)
			if err != nil {
				return nil, err
			}
			if all = append(all, c...); len(all) > maxChains {
				return nil, errExpr
			}
		}
		return all, nil
	case re.OpCapture:
		all, err := chains(x.Sub[0])
		for i, c := range all {
			all[i] = slices.Concat(chain{{kind: linkOpen, id: x.Cap}}, c, chain{{kind: linkClose, id: x.Cap}})
		}
		return all, err
	case re.OpWordBoundary:
		return []chain{{{kind: linkBoundary}}}, nil
	case re.OpBeginText, re.OpBeginLine:
		return []chain{{{kind: linkStart}}}, nil
	case re.OpEndText, re.OpEndLine:
		return []chain{{{kind: linkEnd}}}, nil
	default:
		return nil, errExpr
	}
}

func product(subs []*re.Regexp) ([]chain, error) {
	all := []chain{nil}
	for _, sub := range subs {
		next, err := chains(sub)
		if err != nil {
			return nil, err
		}
		if len(all)*len(next) > maxChains {
			return nil, errExpr
		}
		var out []chain
		for _, a := range all {
			for _, b := range next {
				out = append(out, slices.Concat(a, b))
			}
		}
		all = out
	}
	return all, nil
}

func repeated(sub *re.Regexp, least, most int) ([]chain, error) {
	if sub.Op == re.OpLiteral && len(sub.Rune) == 1 || sub.Op == re.OpCharClass || sub.Op == re.OpAnyChar || sub.Op == re.OpAnyCharNotNL {
		if most > least && most-least < openSpread && least > 1 {
			var all []chain
			for n := most; n >= least; n-- {
				all = append(all, chain{run(sub, n, n)})
			}
			return all, nil
		}
		l := run(sub, least, most)
		if all := spread(l); least == 0 && most == 1 && len(all) > 1 {
			return append(all, nil), nil
		}
		return []chain{{l}}, nil
	}
	if most < 0 || most > maxUnroll {
		return nil, errExpr
	}
	var all []chain
	for n := most; n >= least; n-- {
		c, err := product(slices.Repeat([]*re.Regexp{sub}, n))
		if err != nil {
			return nil, err
		}
		all = append(all, c...)
	}
	return all, nil
}

// run is a link of one class.
func run(x *re.Regexp, least, most int) link {
	l := link{min: least, max: most}
	switch x.Op {
	case re.OpLiteral:
		l.class = literal(x.Rune[0], x.Flags&re.FoldCase != 0)[0].class
	case re.OpCharClass:
		for i := 0; i < len(x.Rune); i += 2 {
			for r := x.Rune[i]; r <= min(x.Rune[i+1], 0x7f); r++ {
				l.class.add(byte(r))
			}
			if x.Rune[i+1] >= 0x10000 { // a negated class: every other character
				l.class[2], l.class[3] = ^uint64(0), ^uint64(0)
			}
		}
	default:
		l.class = class{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
		if x.Op == re.OpAnyCharNotNL {
			l.class[0] &^= 1 << '\n'
		}
	}
	return l
}

func literal(r rune, fold bool) chain {
	if r == stopRune {
		return chain{{kind: linkStop}}
	}
	if r >= 0x80 {
		var c chain
		for _, b := range []byte(string(r)) {
			l := link{min: 1, max: 1}
			l.class.add(b)
			c = append(c, l)
		}
		return c
	}
	l := link{min: 1, max: 1}
	l.class.add(byte(r))
	if other := byte(r) ^ 0x20; fold && (other|0x20 >= 'a' && other|0x20 <= 'z') {
		l.class.add(other)
	}
	return chain{l}
}

// joined puts neighbours of one class together.
func (c chain) joined() chain {
	var out chain
	for _, l := range c {
		if n := len(out) - 1; n >= 0 && l.kind == linkRun && out[n].kind == linkRun && l.class == out[n].class && (l.min != 1 || l.max != 1) {
			out[n].min += l.min
			if out[n].max += l.max; out[n].max < l.max || l.max < 0 {
				out[n].max = noBound
			}
			continue
		}
		out = append(out, l)
	}
	return out
}

// keepSuffixes marks the runs that may have to give bytes back to what follows them.
func (c chain) keepSuffixes() {
	for i := range c {
		l := &c[i]
		if l.kind != linkRun || l.min == l.max {
			continue
		}
		for k := i + 1; k < len(c); k++ {
			next := &c[k]
			if next.kind != linkRun {
				continue
			}
			if l.class.meets(&next.class) {
				l.gives = true
			}
			if next.min > 0 {
				break
			}
		}
	}
}

// spread makes a chain for each letter of a small class, so that they are part of
// a word.
func spread(l link) []chain {
	var all []chain
	for b := range 0x80 {
		if !l.class.has(byte(b)) {
			continue
		}
		if len(all) == maxSpread || l.class[2]|l.class[3] != 0 {
			return []chain{{l}}
		}
		one := link{min: 1, max: 1}
		one.class.add(byte(b))
		all = append(all, chain{one})
	}
	return all
}

// word is the longest literal of a chain that has a fixed place in it, in small
// letters, and that place.
func (c chain) word() (word string, at int) {
	place, here, start := 0, "", 0
	for i := range c {
		l := &c[i]
		if l.kind != linkRun {
			continue
		}
		b, ok := l.class.letter()
		if !ok || l.min != l.max {
			here = ""
			if l.min != l.max {
				break
			}
			place += l.min
			continue
		}
		if here == "" {
			start = place
		}
		here += strings.Repeat(string(rune(b)), l.min)
		place += l.min
		if len(here) > len(word) {
			word, at = here, start
		}
	}
	return word, at
}

// fixed reports a chain of single bytes.
func (c chain) fixed() bool {
	for i := range c {
		if c[i].kind != linkRun || c[i].min != 1 || c[i].max != 1 {
			return false
		}
	}
	return true
}

// lines reports a chain that only matches more than one line.
func (c chain) lines() bool {
	for i := range c {
		if l := &c[i]; l.kind == linkRun && l.min > 0 && l.class == newLine {
			return true
		}
	}
	return false
}

var newLine = class{1 << '\n'}

// letter is the only ASCII byte of a class, in small letters.
func (c *class) letter() (byte, bool) {
	found := -1
	for b := range 0x80 {
		if !c.has(byte(b)) {
			continue
		}
		small := b
		if b >= 'A' && b <= 'Z' {
			small += 'a' - 'A'
		}
		if found >= 0 && found != small {
			return 0, false
		}
		found = small
	}
	return byte(max(found, 0)), found >= 0 && c[2]|c[3] == 0
}
