package sanitize

import (
	"cmp"
	_ "embed" // the rules
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// rule finds secrets by their form. The secret is the group, or the first non-empty group, or the whole
// match.
type rule struct {
	name    string
	expr    string
	entropy float64 // bits a character; a secret has more
	group   int
	allow   []allowed
	plain   func(secret string) bool
}

// allowed lists matches of a rule that are not secrets.
type allowed struct {
	target string   // what exprs look at: the secret, or its "match" or "line"
	exprs  []string // one of them matches
	words  []string // in small letters; the secret holds one of them
}

// compiled is a rule in the form that texts are matched with.
type compiled struct {
	rule
	chains []chain       // of the whole expression, or of the value that is assigned to a name
	lists  func() []list // of allow
}

// How rules of gitleaks for an assignment to a name are written: the name stands
// between the first and the second part.
var (
	assignLead = []string{`[\w.-]{0,50}?`, `(?i:`, `(?i)`}
	assignMids = []string{
		`(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`,
		`(?:[ \t\w.-]{0,20})[\s'"]{0,3})(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`,
	}
)

// assignment splits the expression of an assignment into name and value.
func assignment(expr string) (name, value string, ok bool) {
	for _, mid := range assignMids {
		name, value, ok = strings.Cut(expr, mid)
		if !ok {
			continue
		}
		fold := strings.HasPrefix(name, "(?i)")
		for again := true; again; {
			again = false
			for _, lead := range assignLead {
				if rest, cut := strings.CutPrefix(name, lead); cut {
					name, again = rest, true
				}
			}
		}
		if fold {
			value = "(?i)" + value
		}
		return "(?i)" + name, value, true
	}
	return "", "", false
}

// A use is what a word in a text may begin, or be a part of.
type use struct {
	kind  useKind
	rule  int // in machine.rules
	chain int
	at    int   // of the word in the chain
	name  chain // of a useName, a byte each
	own   func(f *finder, from, to int)
}

type useKind int

const (
	useChain useKind = iota // the chain of a rule that has the word
	useName                 // a name whose assignments a rule finds
	useOwn                  // a function of our own
)

// machine is all rules, with the words by which a text is looked through for them.
type machine struct {
	finder  *wordFinder // of words
	uses    [][]use     // by the number of the word
	rules   []compiled
	classes map[class]int
	maxWord int
	words   []string
}

// theMachine is made once, in a few milliseconds.
var theMachine = sync.OnceValue(func() *machine {
	m, err := newMachine()
	if err != nil {
		panic("rules of redaction: " + err.Error()) // they are part of the program
	}
	return m
})

func newMachine() (*machine, error) {
	rules, err := readRules(gitleaksRules + ownRules)
	if err != nil {
		return nil, err
	}
	m := &machine{classes: map[class]int{}}
	words := map[string][]use{}
	for _, o := range ownUses() {
		for _, w := range o.words {
			words[w] = append(words[w], use{kind: useOwn, own: o.look})
		}
	}
	for _, r := range rules {
		if handled[r.name] {
			continue
		}
		if err := m.compile(r, words); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	m.words = slices.Sorted(maps.Keys(words))
	for _, w := range m.words {
		m.maxWord = max(m.maxWord, len(w))
		m.uses = append(m.uses, words[w])
	}
	m.finder = newWordFinder(m.words)
	return m, nil
}

func (m *machine) compile(r rule, words map[string][]use) error {
	c := compiled{rule: r, lists: sync.OnceValue(r.allowLists)}
	n := len(m.rules)
	name, value, named := assignment(r.expr)
	if named {
		c.group = 0 // that of a value is its first
		names, err := chainsOf(name)
		if err != nil {
			return err
		}
		for _, one := range names {
			one = slices.DeleteFunc(one, func(l link) bool { return l.kind == linkOpen || l.kind == linkClose })
			w, at := one.word()
			if w == "" || !one.fixed() {
				return fmt.Errorf("the name %q is no word: %w", w, errExpr)
			}
			words[w] = append(words[w], use{kind: useName, rule: n, name: one, at: at})
		}
	}
	var err error
	if c.chains, err = chainsOf(cmp.Or(value, r.expr)); err != nil {
		return err
	}
	for i, one := range c.chains {
		m.number(one)
		if named {
			continue
		}
		w, at := one.word()
		if w == "" {
			return fmt.Errorf("no word: %w", errExpr)
		}
		words[w] = append(words[w], use{kind: useChain, rule: n, chain: i, at: at})
	}
	m.rules = append(m.rules, c)
	return nil
}

// number gives every class of a chain its number.
func (m *machine) number(c chain) {
	for i := range c {
		if c[i].kind != linkRun {
			continue
		}
		id, ok := m.classes[c[i].class]
		if !ok {
			id = len(m.classes)
			m.classes[c[i].class] = id
		}
		c[i].id = id
	}
}

// list is what a rule allows, ready to be looked for.
type list struct {
	target string
	words  *wordFinder
	exprs  *wordFinder    // the words of chains
	chains [][]placed     // by the number of the word
	slow   *regexp.Regexp // all of it, for what is no list of chains, and for more than one line
}

// placed is a chain with the place of its word.
type placed struct {
	chain chain
	at    int
}

func (r *rule) allowLists() []list {
	var all []list
	for _, a := range r.allow {
		l := list{target: a.target}
		if len(a.words) > 0 {
			l.words = newWordFinder(a.words)
		}
		if len(a.exprs) > 0 {
			l.read("(?:" + strings.Join(a.exprs, ")|(?:") + ")")
		}
		all = append(all, l)
	}
	return all
}

// read prepares an expression that may match anywhere.
func (l *list) read(expr string) {
	expr = strings.ReplaceAll(expr, `[a-z0-9-]*?api[a-z0-9-]*?`, `api[a-z0-9-]*`) // the same where it may begin anywhere
	chains, err := chainsOf(expr)
	words := map[string][]placed{}
	l.slow = regexp.MustCompile(expr)
	for _, c := range chains {
		w, at := c.word()
		if w == "" {
			if !c.lines() {
				err = errExpr
			}
			continue // left to slow
		}
		for i := range c {
			c[i].id = -1 // its runs are short
		}
		words[w] = append(words[w], placed{c, at})
	}
	if err != nil {
		return
	}
	all := slices.Sorted(maps.Keys(words))
	for _, w := range all {
		l.chains = append(l.chains, words[w])
	}
	l.exprs = newWordFinder(all)
}

// holds reports whether a list has a secret, that is part of a match.
func (l *list) holds(f *finder, secret, match span) (found bool) {
	if l.words != nil {
		l.words.walk(f.bytes[secret.from:secret.to], func(int, int, int) bool {
			found = true
			return false
		})
	}
	if found || l.slow == nil {
		return found
	}
	in := secret
	switch l.target {
	case "match":
		in = match
	case "line":
		in = span{f.back(match.from, '\n', maxNear), f.ahead(match.to, '\n', maxNear)}
	}
	f.work += 2 * (in.to - in.from)
	if l.exprs == nil || strings.IndexByte(f.s[in.from:in.to], '\n') >= 0 {
		return l.slow.MatchString(f.s[in.from:in.to])
	}
	l.exprs.walk(f.bytes[in.from:in.to], func(last, n, word int) bool {
		start := in.from + last - n + 1
		for _, p := range l.chains[word] {
			var g groups
			left := maxSteps
			if start-p.at >= in.from {
				if end, ok := f.try(p.chain, start-p.at, &g, &left); ok && end <= in.to {
					found = true
					return false
				}
			}
		}
		return true
	})
	return found
}

// The rules of gitleaks, which tools/gitleaks writes, and our own.
var (
	//go:embed rules/gitleaks.txt
	gitleaksRules string
	//go:embed rules/own.txt
	ownRules string
)

// readRules reads rules. A line is a name and an expression; the lines below it that begin
// with a tab set the other fields of the rule. A # begins a comment.
func readRules(text string) (rules []rule, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] != '\t':
			rules = append(rules, rule{name: key, expr: value})
		default:
			if err := rules[len(rules)-1].set(key[1:], value); err != nil {
				return nil, fmt.Errorf("%s: %w", rules[len(rules)-1].name, err)
			}
		}
	}
	return rules, nil
}

// set sets a field. Expressions and words belong to the list that was allowed last.
func (r *rule) set(field, value string) (err error) {
	last := len(r.allow) - 1
	switch field {
	case "entropy":
		r.entropy, err = strconv.ParseFloat(value, 64)
	case "group":
		r.group, err = strconv.Atoi(value)
	case "plain":
		r.plain = plains[value]
	case "allow":
		r.allow = append(r.allow, allowed{target: value})
	case "expr":
		r.allow[last].exprs = append(r.allow[last].exprs, value)
	case "words":
		r.allow[last].words = append(r.allow[last].words, strings.Fields(value)...)
	default:
		err = fmt.Errorf("a rule has no %s", field)
	}
	return err
}

// plains are the tests that a rule may name plain.
var plains = map[string]func(secret string) bool{"example": example, "unvaried": unvaried, "unmixed": unmixed}

// example reports a secret of documentation: its text is marked as one, or repeats itself.
func example(s string) bool {
	low := strings.ToLower(s)
	return strings.Contains(low, "example") || strings.Contains(low, "xxxx") || strings.Contains(low, "your") || strings.Contains(low, "....") || entropy(s) < 2.6
}

// unvaried reports words with dashes that happen to begin as a secret does.
func unvaried(s string) bool {
	m := mixOf(s)
	return example(s) || m.digits < 2 || m.letters < 4 || entropy(s) < 3.2 || dashedWords(s)
}

// unmixed reports what is no random text of small and large letters and digits.
func unmixed(s string) bool {
	m := mixOf(s)
	return example(s) || m.digits < 3 || m.small < 6 || m.letters-m.small < 6 || entropy(s) < 4.2
}
