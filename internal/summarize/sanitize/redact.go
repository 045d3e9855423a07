package sanitize

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"compactd/internal/events/codec"
)

// SecretPlace replaces a secret. A shorter secret becomes as many stars as it had units, so a redacted text
// is never longer.
const SecretPlace = "[secret]"

// maxPasses bounds the passes over a text: removing one match may expose another.
const maxPasses = 4

// ErrBudget means that the texts of a job took more work than it may.
var ErrBudget = errors.New("the texts take too much work to redact")

// Redactor redacts the texts of one job within a budget. It is used by one goroutine.
type Redactor struct {
	// Work is what is left, in bytes that are looked at. Every byte of a text is
	// looked at 400 times at most, and in ordinary text 5 to 10 times.
	Work int

	known map[string]bool // secrets found so far
}

// Redact replaces the secrets in a text. The error is that of ctx, which is looked
// at every 64 KB, or [ErrBudget]. It takes linear time.
func (r *Redactor) Redact(ctx context.Context, s string) (string, error) {
	for range maxPasses {
		found, err := r.secrets(ctx, s)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			break
		}
		r.learn(s, found)
		next := masked(s, found)
		if next == s {
			break
		}
		s = next
	}
	return s, nil
}

// Redact is [Redactor.Redact] for one text, without a bound.
func Redact(s string) string {
	r := Redactor{Work: int(^uint(0) >> 1)}
	s, err := r.Redact(context.Background(), s)
	if err != nil {
		return SecretPlace // neither the context nor the budget ends
	}
	return s
}

// Joint redacts secrets across the boundary of two adjacent texts, and secrets of the second that the end of
// the first makes one.
func (r *Redactor) Joint(ctx context.Context, a, b string) (string, string, error) {
	found, err := r.secrets(ctx, a+b)
	if err != nil {
		return a, b, err
	}
	r.learn(a+b, found)
	var first, second []span
	for _, at := range found {
		switch {
		case at.to <= len(a):
		case at.from >= len(a):
			second = append(second, span{at.from - len(a), at.to - len(a)})
		default:
			first = append(first, span{at.from, len(a)})
			second = append(second, span{0, at.to - len(a)})
		}
	}
	return masked(a, first), masked(b, second), nil
}

// Bounds of what a Redactor remembers.
const (
	maxKnown   = 512 // secrets
	leastKnown = 6   // bytes
	mostKnown  = 128
)

// learn remembers the secrets found in a text, except plain words: these are secrets only where the text
// calls them one.
func (r *Redactor) learn(s string, found []span) {
	for _, at := range found {
		v := s[at.from:at.to]
		if len(r.known) == maxKnown || len(v) < leastKnown || len(v) > mostKnown || !isDistinct(v) {
			continue
		}
		if r.known == nil {
			r.known = map[string]bool{}
		}
		r.known[v] = true
	}
}

// isDistinct reports a text that has no other meaning where it recurs.
func isDistinct(v string) bool {
	if sh := shapeOf(v); sh > counted {
		return sh != numbered || digitsOf(v) > 1
	}
	return len(v) >= 16 && digitsOf(v) > 1 && entropy(v) > 3 && !strings.ContainsAny(v, " \n")
}

// Known replaces the secrets found so far wherever they stand in a text; it is nil for none.
// It holds 512 of 128 bytes at most, and its work is linear in a text.
func (r *Redactor) Known() *strings.Replacer {
	if len(r.known) == 0 {
		return nil
	}
	longest := func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }
	var pairs []string
	for _, v := range slices.SortedFunc(maps.Keys(r.known), longest) {
		pairs = append(pairs, v, mask(v))
	}
	return strings.NewReplacer(pairs...)
}

// Bounds of a question for a secret and of its answer, in bytes.
const (
	questionBytes = 240
	answerBytes   = 160
)

// probe is a text that counts as a secret only where words call it one, so it shows whether a question is for
// a secret.
const probe = "kitten4499"

// Answer redacts a short answer to a question for a secret: the secret alone, or the secret beside a few
// words.
func (r *Redactor) Answer(ctx context.Context, question, answer string) (string, error) {
	if len(answer) > answerBytes || strings.Contains(strings.TrimSpace(answer), "\n") {
		return answer, nil
	}
	question = strings.TrimSpace(question)
	question = question[max(0, len(question)-questionBytes):]
	named := strings.TrimRight(question, " ?？؟.。!:\"'*")
	from := strings.LastIndexAny(named, ".!?\n") + 1
	if named = named[from:]; !requests(question[from:]) {
		return answer, nil
	}
	named += ": " + probe
	found, err := r.secrets(ctx, named)
	if err != nil || !slices.ContainsFunc(found, func(at span) bool { return at.to > len(named)-len(probe) }) {
		return answer, err
	}
	f := newFinder(answer)
	defer f.end()
	var given []span
	for i := 0; i < len(answer); {
		i = f.token(i, len(answer))
	}
	for _, c := range f.state.around.candidates {
		if isDistinct(answer[c.from:c.to]) && !isNamed(f.low, c.from, c.shape) {
			given = append(given, c.span)
		}
	}
	r.Work -= f.work + len(answer)
	r.learn(answer, given)
	return masked(answer, given), nil
}

// requests reports a question, or a request.
func requests(sentence string) bool {
	return strings.ContainsAny(sentence, "?？؟") || hasAny(" "+lowered(sentence), requestWords, func(s, word string) bool {
		return strings.Contains(s, word) && (word[0] >= utf8.RuneSelf || strings.Contains(s, " "+word))
	})
}

// requestWords are stems of words in a request to hand over something.
var requestWords = append(strings.Fields("please send give provide paste enter share need type bitte brauche schick gib nenn envoie donne fourni besoin envía manda dame dime necesito envie diga preciso mandami dammi serve stuur geef nodig skicka behöver podaj wyślij potrzeb pošli zadej пришли дай укажи введи нуж надішли gönder lütfen gerek 请 請 告诉 给我 發給 发给 ください 教えて 알려 주세요 보내 أرسل أعطني שלח भेज gửi kirim"), "me the")

// secrets returns the secret parts of a text, in order and without overlap.
func (r *Redactor) secrets(ctx context.Context, s string) ([]span, error) {
	t := Normalize(s)
	found, err := r.look(ctx, t.S, 0)
	if err != nil {
		return nil, err
	}
	return merged(t.originals(found)), nil
}

// look finds secrets in a normalized text: as it is, with its lines joined, and in
// what is written in it with escapes or in an encoding.
func (r *Redactor) look(ctx context.Context, s string, depth int) ([]span, error) {
	f := newFinder(s)
	defer f.end()
	if err := r.scan(ctx, f); err != nil {
		return nil, err
	}
	found := f.found
	if depth == 0 {
		lines, err := r.joinedLines(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, at := range lines {
			if !covers(f.whole, at) {
				found = append(found, at)
			}
		}
	}
	if depth == maxDepth {
		return found, nil
	}
	more, err := r.lookInside(ctx, f, depth)
	return append(found, more...), err
}

// lookInside finds secrets in what is written in a text with escapes, or in an encoding.
func (r *Redactor) lookInside(ctx context.Context, f *finder, depth int) (found []span, err error) {
	used, had := f.work, len(f.found)
	h := f.encoded()
	found = append(found, f.found[had:]...)
	r.Work -= f.work - used + len(f.s)
	if len(h.texts) > 0 {
		inner, err := r.look(ctx, string(h.texts), depth+1)
		if err != nil {
			return nil, err
		}
		found = append(found, h.original(inner)...)
	}
	if t, ok := unescape(f.s); ok {
		inner, err := r.look(ctx, t.S, max(depth+1, maxDepth-1))
		if err != nil {
			return nil, err
		}
		found = append(found, t.originals(inner)...)
	}
	return found, nil
}

// scan looks through a text on account of the job.
func (r *Redactor) scan(ctx context.Context, f *finder) error {
	f.left = r.Work
	err := f.scan(ctx)
	r.Work -= f.work
	if err == nil && r.Work < 0 {
		err = ErrBudget
	}
	return err
}

// covers reports whether a found part contains the first byte of at.
func covers(found []span, at span) bool {
	return slices.ContainsFunc(found, func(f span) bool { return f.from <= at.from && at.from < f.to })
}

// masked replaces the parts of a text.
func masked(s string, found []span) string {
	var b strings.Builder
	b.Grow(len(s))
	done := 0
	for _, at := range found {
		b.WriteString(s[done:at.from])
		b.WriteString(mask(s[at.from:at.to]))
		done = at.to
	}
	b.WriteString(s[done:])
	return b.String()
}

func mask(secret string) string {
	if n := codec.Units(secret); n < len(SecretPlace) {
		return strings.Repeat("*", n)
	}
	return SecretPlace
}

// broken reports whether a line of the text may continue in the next one, within a secret.
func broken(s string) bool {
	return strings.ContainsAny(s, "\n\r") || strings.Contains(s, `\n`) || strings.Contains(s, "\" \"") || strings.Contains(s, "+")
}

// joinedLines finds tokens that are broken into lines or literals.
func (r *Redactor) joinedLines(ctx context.Context, s string) ([]span, error) {
	if !broken(s) {
		return nil, nil
	}
	var out bytes.Buffer
	var runs []piece
	done := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '\n' && s[i] != '\r' && s[i] != '\\' && !quoteByte.has(s[i]) {
			continue
		}
		end := seam(s, i)
		if end == i || i == 0 || end >= len(s) || !tokenByte.has(s[i-1]) || !tokenByte.has(s[end]) {
			continue
		}
		if i > done {
			runs = append(runs, piece{at: out.Len(), from: done, to: i})
			out.WriteString(s[done:i])
		}
		done = end
		i = end - 1
	}
	r.Work -= len(s)
	if len(runs) == 0 {
		return nil, nil
	}
	runs = append(runs, piece{at: out.Len(), from: done, to: len(s)})
	out.WriteString(s[done:])
	t := Text{S: out.String(), size: len(s), runs: runs}
	f := newFinder(t.S)
	defer f.end()
	f.tokens = true
	if err := r.scan(ctx, f); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(t.originals(f.found), func(at span) bool { return !strings.ContainsAny(s[at.from:at.to], "\n\r\"'`\\") }), nil
}

var tokenByte = classOf(`[A-Za-z0-9_.+/=~-]`)

// seam is the end of a gap between two parts of a token: a new line with its indentation, or the end of a
// literal and the beginning of the next.
func seam(s string, i int) int {
	from := i
	if quoteByte.has(s[i]) {
		q := s[i]
		i = skip(s, i+1, 8, blank)
		if i < len(s) && strings.IndexByte("+.&\\", s[i]) >= 0 {
			i++
		}
		if i = skip(s, i, 40, anySpace); i < len(s) && s[i] == '+' {
			i = skip(s, i+1, 8, blank)
		}
		if i < len(s) && s[i] == q && i > from+1 {
			return i + 1
		}
		return from
	}
	if s[i] == '\\' {
		if i+1 >= len(s) || strings.IndexByte("nr\n\r", s[i+1]) < 0 {
			return from
		}
		i += 2
	}
	i = skip(s, i, 40, anySpace)
	for i+1 < len(s) && (s[i] == '>' || s[i] == '|') && s[i+1] == ' ' { // quoted
		i = skip(s, i+1, 8, blank)
	}
	return i
}
