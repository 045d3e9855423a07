package needs

import (
	"bytes"
	"encoding/json"
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// Session is the text of a recorded session.
type Session struct {
	turns  []string  // the text of each
	calls  [][]usage // of each turn, in order
	first  string    // message of the user
	idents stringSet // of all its texts
}

type stringSet map[string]struct{}

// usage has the names in one call.
type usage struct{ idents, lines []used }

// used is an identifier or a line, and the last turn whose text contained it before the call, −1
// for none.
type used struct {
	text string
	last int
}

// Read takes the messages of each turn of a session.
func Read(turns [][]dialect.Message) *Session {
	s := &Session{idents: stringSet{}}
	for _, messages := range turns {
		var text strings.Builder
		var calls []usage
		for i := range messages {
			m := &messages[i]
			if s.first == "" && m.Role == dialect.RoleUser {
				s.first = Text(messages[i : i+1])
			}
			before := text.String()
			for k := range m.Parts {
				if p := &m.Parts[k]; p.Kind == dialect.PartCall {
					calls = append(calls, s.place(usageOf(p.Args), before))
				}
			}
			text.WriteString(Text(messages[i : i+1]))
		}
		s.turns, s.calls = append(s.turns, text.String()), append(s.calls, calls)
		for _, w := range words.FindAllString(text.String(), -1) {
			s.idents[trim(w)] = struct{}{}
		}
	}
	return s
}

// place finds where the texts of a call stood last: in its own turn before it, or in those read so
// far. The user's first message does not count: the agent has it in any case.
func (s *Session) place(u usage, before string) usage {
	for _, x := range []struct {
		list []used
		in   func(text, part string) bool
	}{{u.idents, has}, {u.lines, strings.Contains}} {
		for i := range x.list {
			w := &x.list[i]
			w.last = len(s.turns)
			for text := before; w.last >= 0 && !x.in(text, w.text); {
				if w.last--; w.last >= 0 {
					text = s.turns[w.last]
				}
			}
			if x.in(s.first, w.text) {
				w.last = -1
			}
		}
	}
	return u
}

// Len is the number of turns.
func (s *Session) Len() int { return len(s.turns) }

// Common returns the identifiers of at least a fifth of the sessions, and of two: they identify
// nothing of one session.
func Common(sessions []*Session) map[string]struct{} {
	counts := map[string]int{}
	for _, s := range sessions {
		for w := range s.idents {
			counts[w]++
		}
	}
	common := stringSet{}
	for w, n := range counts {
		if n >= 2 && n*5 >= len(sessions) {
			common[w] = struct{}{}
		}
	}
	return common
}

// Needs are the parts that calls after a compaction took from before it.
type Needs struct{ Idents, Lines []string }

// After returns the needs of the calls in turns at to stop, counted from 0 and without
// stop, of what turns 0 to at contain. Identifiers in common do not count.
func (s *Session) After(at, stop int, common map[string]struct{}) (n Needs) {
	for one := range s.EachAfter(at, stop, common) {
		n.Idents, n.Lines = append(n.Idents, one.Idents...), append(n.Lines, one.Lines...)
	}
	return n
}

// EachAfter walks over the same of each call.
func (s *Session) EachAfter(at, stop int, common map[string]struct{}) iter.Seq[Needs] {
	needed := func(list []used, but map[string]struct{}) (out []string) {
		for _, w := range list {
			if _, ok := but[w.text]; !ok && 0 <= w.last && w.last < at {
				out = append(out, w.text)
			}
		}
		return out
	}
	return func(yield func(Needs) bool) {
		for _, calls := range s.calls[at:stop] {
			for _, c := range calls {
				if !yield(Needs{needed(c.idents, common), needed(c.lines, nil)}) {
					return
				}
			}
		}
	}
}

// Kept is the number of needs that a text contains.
type Kept struct{ Idents, Lines int }

// In counts the needs that a text contains: identifiers and lines as a whole.
func (n Needs) In(text string) (k Kept) {
	for _, w := range n.Idents {
		if has(text, w) {
			k.Idents++
		}
	}
	for _, l := range n.Lines {
		if strings.Contains(text, l) {
			k.Lines++
		}
	}
	return k
}

// Text is what messages contain: texts, and the strings in the arguments of calls, each on
// lines of its own.
func Text(messages []dialect.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Kind == dialect.PartCall {
				for _, s := range stringsIn(p.Args) {
					b.WriteString(s.text)
					b.WriteByte('\n')
				}
			} else {
				b.WriteString(p.Text)
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// words may be identifiers.
var words = regexp.MustCompile(`[A-Za-z0-9_./@:-]{6,200}`)

// specific is what makes an identifier of a word: a path, an extension, a digit, a capital
// or an underscore inside it.
var specific = regexp.MustCompile(`/|\.[a-z]{1,4}$|[a-z][A-Z]|_|\d`)

func trim(w string) string { return strings.Trim(w, ".:-/") }

// replaced are the arguments that name what an edit takes out, in small letters and without "_":
// of Claude Code, opencode, pi, OpenHands, Cline, Gemini CLI and others.
var replaced = map[string]bool{
	"oldstring": true, "oldtext": true, "oldstr": true, "oldcode": true, "oldcontent": true, "oldsource": true, "search": true,
}

func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// leastLine is the length of a line that is unlikely to recur, in bytes.
const leastLine = 20

// removed stands for what a recording leaves out of a text, such as a secret: the original may
// have been anything.
const removed = "REDACTED"

func usageOf(args codec.Raw) (u usage) {
	seen := stringSet{}
	add := func(list *[]used, s string) {
		if _, ok := seen[s]; !ok && !strings.Contains(s, removed) {
			seen[s] = struct{}{}
			*list = append(*list, used{text: s})
		}
	}
	for _, s := range stringsIn(args) {
		for _, w := range words.FindAllString(s.text, -1) {
			if w = trim(w); len(w) >= 6 && specific.MatchString(w) {
				add(&u.idents, w)
			}
		}
		for l := range replacedIn(s) {
			if l = strings.TrimSpace(l); len(l) >= leastLine {
				add(&u.lines, l)
			}
		}
	}
	return u
}

// replacedIn walks over the lines that a string of arguments takes out of a file, or keeps around
// what it changes: both must be there word by word.
func replacedIn(s named) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch {
		case replaced[plain(s.name)]:
			for l := range strings.SplitSeq(s.text, "\n") {
				if !yield(l) {
					return
				}
			}
		case strings.Contains(s.text, "*** Begin Patch"):
			patched(strings.ReplaceAll(s.text, `\n`, "\n"), "*** Begin Patch", "*** End Patch", yield)
		case diffHead.MatchString(s.text):
			patched(s.text, "", "", yield)
		}
	}
}

// diffHead begins the changes of a unified diff.
var diffHead = regexp.MustCompile(`(?m)^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)

// patched yields the lines of a patch that it takes out or keeps. A program may hold it in a
// string, where \n stands for the end of a line.
func patched(text, from, to string, yield func(string) bool) {
	in := from == ""
	for l := range strings.SplitSeq(text, "\n") {
		switch {
		case from != "" && strings.Contains(l, from):
			in = true
		case to != "" && strings.Contains(l, to):
			in = false
		case in && (strings.HasPrefix(l, "-") && !strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, " ")):
			if !yield(l[1:]) {
				return
			}
		}
	}
}

// named is a string with the name of the member that it is in.
type named struct{ name, text string }

// stringsIn returns the strings of a JSON value, in their order. Text that is no JSON is
// one.
func stringsIn(raw codec.Raw) (out []named) {
	d := json.NewDecoder(bytes.NewReader(raw))
	type level struct {
		object, value bool // value: the next string is one of an object, not a name
		name          string
	}
	levels := []level{{}}
	for {
		token, err := d.Token()
		if err != nil {
			if out == nil && len(raw) > 0 && !json.Valid(raw) {
				return []named{{text: string(raw)}}
			}
			return out
		}
		top := &levels[len(levels)-1]
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{', '[':
				top.value = false
				levels = append(levels, level{object: v == '{', name: top.name})
			default:
				levels = levels[:len(levels)-1]
			}
			continue
		case string:
			if top.object && !top.value {
				top.name, top.value = v, true
				continue
			}
			out = append(out, named{top.name, v})
		}
		top.value = false
	}
}

// has reports whether a text contains an identifier that is not a part of a longer one.
func has(text, ident string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], ident)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(ident):])
		if !inIdent(before) && !inIdent(after) {
			return true
		}
		from = i + 1
	}
}

func inIdent(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
