package sanitize

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
)

// span is a part of a text, in bytes.
type span struct{ from, to int }

// Bounds of what is looked at from one place, in bytes.
const (
	blockBytes = 64 << 10 // between two looks at the context
	maxNear    = 256      // between a word and what it makes a secret
	maxSteps   = 256      // of a chain whose runs give bytes back
	maxGroups  = 8
)

// finder looks for secrets in one normalized text.
type finder struct {
	m     *machine
	s     string
	low   string // s with its ASCII letters small
	bytes []byte // low
	*notes

	found  []span
	whole  []span // those of found that have the form of a token
	state  state
	work   int  // bytes looked at
	left   int  // bytes that may be looked at; 0 is no bound
	tokens bool // only forms that a secret has by itself count
}

// stretch is a stretch of bytes of one class.
type stretch struct{ from, to int }

// notes are of one text, and larger than most texts.
type notes struct {
	runs []stretch // by the number of the class
	ops  []int     // by rule: the last sign that was looked behind, or -1
	done []int     // by rule: the end of its last match
}

// unused are notes without an entry.
var unused = sync.Pool{New: func() any {
	m := theMachine()
	return &notes{make([]stretch, len(m.classes)), slices.Repeat([]int{-1}, len(m.rules)), make([]int, len(m.rules))}
}}

func newFinder(s string) *finder {
	low := lowered(s)
	return &finder{m: theMachine(), s: s, low: low, bytes: []byte(low), notes: unused.Get().(*notes)}
}

// end gives the notes to the next finder.
func (f *finder) end() {
	clear(f.runs)
	clear(f.done)
	for i := range f.ops {
		f.ops[i] = -1
	}
	unused.Put(f.notes)
	f.notes = nil
}

func (f *finder) scan(ctx context.Context) error {
	low := f.bytes
	for from := 0; from < len(low); from += blockBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		begin, end := max(0, from-f.m.maxWord), min(len(low), from+blockBytes)
		f.work += end - begin
		f.m.finder.walk(low[begin:end], func(last, n, word int) bool {
			if to := begin + last + 1; to > from {
				f.word(word, to-n, to)
			}
			return f.left == 0 || f.work <= f.left
		})
		if f.left > 0 && f.work > f.left {
			return ErrBudget
		}
	}
	return ctx.Err()
}

// word looks at what a word may be part of.
func (f *finder) word(word, from, to int) {
	uses := f.m.uses[word]
	for i := range uses {
		u := &uses[i]
		if f.tokens && u.kind != useChain {
			continue
		}
		switch u.kind {
		case useChain:
			f.chain(u.rule, u.chain, from-u.at)
		case useName:
			f.assigned(u, from)
		case useOwn:
			u.own(f, from, to)
		}
	}
}

// groups are where the groups of a chain begin and end.
type groups [2 * maxGroups]int

// chain looks whether a chain of a rule begins at a place.
func (f *finder) chain(n, which, at int) {
	r := &f.m.rules[n]
	if at < f.done[n] {
		return // part of what it has matched
	}
	f.matched(n, r.chains[which], at, at)
}

// assigned looks behind a name for a sign, and behind the sign for a value.
func (f *finder) assigned(u *use, from int) {
	from -= u.at
	to := from + len(u.name)
	if from < 0 || to > len(f.s) {
		return
	}
	for i := range u.name {
		if !u.name[i].class.has(f.s[from+i]) {
			return // other capitals than the rule wants
		}
	}
	i := skip(f.s, to, 20, nameRest)
	i = skip(f.s, i, 3, quoteOrSpace)
	f.work += i - to + 4
	sign, value := f.sign(i)
	if !sign || f.ops[u.rule] == i {
		return
	}
	f.ops[u.rule] = i
	r := &f.m.rules[u.rule]
	lead := skipBack(f.s, from, max(0, from-50), identByte)
	for {
		for _, c := range r.chains {
			if f.matched(u.rule, c, value, lead) {
				return
			}
		}
		if value--; value <= i || f.s[value] != '=' {
			return
		}
	}
}

var (
	nameRest     = classOf(`[ \t\w.-]`)
	quoteOrSpace = classOf(`[\s'"]`)
	beforeValue  = classOf("[`'\"\\s=]")
	wordClass    = classOf(`[0-9A-Za-z_]`)
	stopClass    = classOf("[`'\"\\s;]")
)

func classOf(expr string) class {
	c, err := chainsOf(expr)
	if err != nil {
		panic(err)
	}
	var all class
	for _, one := range c {
		for b := range 256 {
			if one[0].class.has(byte(b)) {
				all.add(byte(b))
			}
		}
	}
	return all
}

// sign reports whether an assignment's sign is at a place, and where its value may
// begin at the latest.
func (f *finder) sign(at int) (bool, int) {
	s := f.s
	i := at
	switch {
	case i >= len(s):
		return false, 0
	case s[i] == '=' || s[i] == '>' || s[i] == ',':
		i++
		if s[at] == '=' && i < len(s) && s[i] == '>' {
			i++
		}
	case s[i] == ':':
		i++
		for k := i; k < min(len(s), at+4); k++ {
			if s[k] == '=' {
				i = k + 1
				break
			}
			if s[k] != ':' {
				break
			}
		}
	case strings.HasPrefix(s[i:], "||"), strings.HasPrefix(s[i:], "?="):
		i += 2
	default:
		return false, 0
	}
	return true, skip(s, i, 5, beforeValue)
}

// skip is behind at most n bytes of a class.
func skip(s string, i, n int, c class) int {
	for end := min(len(s), i+n); i < end && c.has(s[i]); {
		i++
	}
	return i
}

// skipBack is where the bytes of a class before i begin, least at least.
func skipBack(s string, i, least int, c class) int {
	for i > least && c.has(s[i-1]) {
		i--
	}
	return i
}

// matched reports whether a chain of a rule is at a place, and notes its secret
// unless the rule allows it. lead is where all that the rule sees begins.
func (f *finder) matched(n int, c chain, at, lead int) bool {
	if at < 0 {
		return false
	}
	r := &f.m.rules[n]
	var g groups
	left := maxSteps
	end, ok := f.try(c, at, &g, &left)
	if !ok {
		return false
	}
	secret := span{at, end}
	if r.group > 0 {
		secret = span{g[2*r.group], g[2*r.group+1]}
	} else {
		for i := 1; i < maxGroups; i++ {
			if g[2*i+1] > g[2*i] {
				secret = span{g[2*i], g[2*i+1]}
				break
			}
		}
	}
	if lead == at {
		f.done[n] = end
	}
	if f.covered(secret) {
		return true
	}
	f.work += 2 * min(secret.to-secret.from, maxRead)
	if text := f.s[secret.from:min(secret.to, secret.from+4*maxRead)]; r.entropy > 0 && entropy(text) <= r.entropy || f.allowed(r, secret, span{lead, end}) || r.plain != nil && r.plain(text) || r.name == genericRule && harmless(f.low[lead:secret.from], text) {
		return false
	}
	f.found = append(f.found, secret)
	if lead == at {
		f.whole = append(f.whole, secret)
	}
	return true
}

// genericRule finds what follows a name with "key" or "token" in it.
const genericRule = "generic-api-key"

// harmless reports a value that the generic rule takes for a secret, but that is a
// path, or an identifier which nothing calls a secret.
func harmless(name, value string) bool {
	if isPathLike(value) || placeholder(value) || dashedWords(value) {
		return true
	}
	return !hasAny(name, secretParts, strings.Contains) && (isUUID(value) || isHash(value))
}

var secretParts = []string{"api", "secret", "passw", "token", "cred"}

// covered reports whether what was found last holds a span.
func (f *finder) covered(at span) bool {
	for i := len(f.found) - 1; i >= max(0, len(f.found)-4); i-- {
		if f.found[i].from <= at.from && at.to <= f.found[i].to {
			return true
		}
	}
	return false
}

// try follows a chain from a place to its end.
func (f *finder) try(c chain, pos int, g *groups, left *int) (int, bool) {
	for k := range c {
		l := &c[k]
		switch l.kind {
		case linkRun:
			n := f.run(l, pos)
			if n < l.min {
				return 0, false
			}
			if l.gives && n > l.min {
				for ; n >= l.min && *left > 0; n-- {
					*left--
					if end, ok := f.try(c[k+1:], pos+n, g, left); ok {
						return end, true
					}
				}
				return 0, false
			}
			pos += n
		case linkBoundary:
			if f.wordAt(pos-1) == f.wordAt(pos) {
				return 0, false
			}
		case linkStart:
			if pos != 0 {
				return 0, false
			}
		case linkEnd:
			if pos != len(f.s) {
				return 0, false
			}
		case linkStop:
			if pos < len(f.s) && !stopClass.has(f.s[pos]) && !strings.HasPrefix(f.low[pos:], `\n`) && !strings.HasPrefix(f.low[pos:], `\r`) {
				return 0, false
			}
		case linkOpen:
			if l.id < maxGroups {
				g[2*l.id] = pos
			}
		case linkClose:
			if l.id < maxGroups {
				g[2*l.id+1] = pos
			}
		}
	}
	return pos, true
}

func (f *finder) wordAt(i int) bool { return i >= 0 && i < len(f.s) && wordClass.has(f.s[i]) }

// nearby are lengths up to which a run is counted byte by byte.
const nearby = 48

// run is the length of a run at a place, at most that of the link.
func (f *finder) run(l *link, pos int) int {
	most := len(f.s) - pos
	if l.max >= 0 {
		most = min(most, l.max)
	}
	if most <= nearby || l.id < 0 {
		n := 0
		for n < most && l.class.has(f.s[pos+n]) {
			n++
		}
		f.work += n + 1
		return n
	}
	r := &f.runs[l.id]
	if pos < r.from || pos >= r.to {
		end := pos
		for end < len(f.s) && l.class.has(f.s[end]) {
			if end == r.from && r.to > end && pos < r.from {
				end = r.to
				continue
			}
			end++
			f.work++
		}
		*r = stretch{pos, end}
	}
	f.work++
	return min(r.to-pos, most)
}

// allowed reports whether a rule lets a secret pass.
func (f *finder) allowed(r *compiled, secret, match span) bool {
	if len(r.allow) == 0 {
		return false
	}
	secret.to = min(secret.to, secret.from+4*maxRead)
	for _, l := range r.lists() {
		if l.holds(f, secret, match) {
			return true
		}
	}
	return false
}

// line is the line that holds a place. Where it begins and ends is looked up once.
func (f *finder) line(i int) (from, to int) {
	l := &f.state.line
	if i < l.from || i > l.to || l.to == 0 {
		*l = stretch{strings.LastIndexByte(f.s[max(0, l.to):max(i, l.to)], '\n') + 1 + max(0, l.to), len(f.s)}
		if i < l.from {
			l.from = strings.LastIndexByte(f.s[:i], '\n') + 1
		}
		if k := strings.IndexByte(f.s[i:], '\n'); k >= 0 {
			l.to = i + k
		}
		f.work += l.to - l.from
	}
	return l.from, l.to
}

// back is behind the last byte c before i, at most n bytes back.
func (f *finder) back(i int, c byte, n int) int {
	from := max(0, i-n)
	f.work += i - from
	return from + strings.LastIndexByte(f.s[from:i], c) + 1
}

// ahead is at the next byte c from i on, at most n bytes ahead.
func (f *finder) ahead(i int, c byte, n int) int {
	rest := f.s[i:min(len(f.s), i+n)]
	f.work += len(rest)
	if k := strings.IndexByte(rest, c); k >= 0 {
		return i + k
	}
	return i + len(rest)
}

// entropy is Shannon's, in bits a byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	var bits float64
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// lowered is s with its letters small, of the same length in bytes.
func lowered(s string) string {
	return string(appendLowered(nil, s))
}

func appendLowered(out []byte, s string) []byte {
	out = append(out, s...)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// merged are the spans without overlaps, in order.
func merged(found []span) []span {
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	var out []span
	for _, at := range found {
		if n := len(out) - 1; n >= 0 && at.from < out[n].to {
			out[n].to = max(out[n].to, at.to)
			continue
		}
		out = append(out, at)
	}
	return out
}
