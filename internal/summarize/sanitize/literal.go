package sanitize

import (
	"strings"
)

// quoteKinds are the pairs of quotes of a literal.
var quoteKinds = []struct{ open, close string }{
	{`"`, `"`}, {`'`, `'`}, {"`", "`"}, {"“", "”"}, {"‘", "’"}, {"«", "»"}, {"„", "“"}, {"「", "」"},
}

// literal is the value at a place: in its quotes, or as far as it goes without.
func (f *finder) literal(at int, how syntax) (span, syntax) {
	s := f.s
	for k := 0; k < 3 && at < len(s) && (s[at] == '*' || s[at] == '_') && (how == inProse || how == inLine); k++ {
		at++ // bold
	}
	i := at
	for i < min(len(s), at+3) && strings.IndexByte("bBrRfFuUL@$", s[i]) >= 0 {
		i++
	}
	if i == at || i < len(s) && !quoteByte.has(s[i]) {
		i = at
	}
	if i < len(s) && (s[i] == '[' || s[i] == '{') && i+1 < len(s) && quoteByte.has(s[i+1]) {
		i++
	}
	slashes := 0
	for i+slashes < min(len(s), i+8) && s[i+slashes] == '\\' {
		slashes++
	}
	for kind, q := range quoteKinds {
		if !strings.HasPrefix(s[i+slashes:], q.open) {
			continue
		}
		from := i + slashes + len(q.open)
		if three := strings.Repeat(q.open, 2); slashes == 0 && kind < 3 && strings.HasPrefix(s[from:], three) && !strings.HasPrefix(s[from:], three+"\n") {
			from += len(three)
		}
		to := f.quoteEnd(kind, q.close, from, slashes > 0)
		if to < 0 {
			return f.unquoted(from, how), how
		}
		return span{from, to}, inQuotes
	}
	return f.unquoted(at, how), how
}

// quoteEnd is the end of a literal: its quote, escaped or not as it began; -1 if
// there is none in its line.
func (f *finder) quoteEnd(kind int, quote string, from int, escaped bool) int {
	if escaped {
		memo := &f.state.quotes[0]
		if kind > 0 {
			memo = &f.state.quotes[1]
		}
		return f.quoteIn(memo, quote, from, true)
	}
	return f.quoteIn(&f.state.quotes[2+min(kind, 5)], quote, from, false)
}

func (f *finder) quoteIn(memo *stretch, quote string, from int, escaped bool) int {
	if memo.from <= from && from <= memo.to && memo.to > 0 {
		if memo.to < len(f.s) && strings.HasPrefix(f.s[memo.to:], quote) || memo.to < len(f.s) && f.s[memo.to] == '\\' {
			return memo.to
		}
		if !escaped {
			return -1
		}
	}
	s := f.s
	end := min(len(s), from+maxValue)
	i := from
	for ; i < end && s[i] != '\n'; i++ {
		if s[i] == '\\' && i+1 < end {
			if escaped && strings.HasPrefix(s[i+1:], quote) {
				break
			}
			if !escaped {
				i++
			}
			continue
		}
		if !escaped && s[i] == quote[0] && strings.HasPrefix(s[i:], quote) {
			break
		}
	}
	i = min(i, end)
	f.work += i - from
	*memo = stretch{from, i}
	if i == end || s[i] == '\n' {
		return -1
	}
	return i
}

// valueEnds end a value without quotes; those of a line do not hold bytes that only
// code puts behind one.
var (
	codeEnds = classOf("[\\s\"'`,;)\\]}<>|&\\\\]")
	lineEnds = classOf("[\\s\"'`<>|\\\\]")
)

// unquoted is the value at a place as far as it goes.
func (f *finder) unquoted(at int, how syntax) span {
	s := f.s
	ends, memo := &codeEnds, &f.state.values[0]
	if how == inLine {
		ends, memo = &lineEnds, &f.state.values[1]
	}
	i := at
	if at > memo.from && at < memo.to {
		i = memo.to // the end of the value that this one is a part of
	}
	scanned := i
	for i < min(len(s), at+maxValue) {
		if ends.has(s[i]) {
			switch {
			case s[i] == '<' && i == at, i == at && s[i] == '&', i > at && (s[i] == '"' || s[i] == '\'' || s[i] == '<' || s[i] == '>') && how == inLine && i+1 < len(s) && !lineEnds.has(s[i+1]) && s[i+1] != ',' && s[i+1] != ']' && s[i+1] != '}' && s[i+1] != '/' && s[i+1] != ')' && s[i+1] != ';':
				i++
				continue
			case s[i] == '}' || s[i] == ')':
				if strings.IndexByte(s[at:i], s[i]-map[byte]byte{'}': 2, ')': 1}[s[i]]) >= 0 {
					i++
					continue
				}
			}
			break
		}
		if how == inLine && (s[i] == '&' || s[i] == ';') && f.separator(at, i) {
			break
		}
		i++
	}
	f.work += i - scanned
	*memo = stretch{at, i}
	v := span{at, i}
	for v.to > v.from && strings.IndexByte(".,:;!", s[v.to-1]) >= 0 && how != inLine || v.to > v.from && how == inLine && strings.IndexByte(",;", s[v.to-1]) >= 0 {
		v.to--
	}
	return v
}

// separator reports whether a sign ends a value of a URL, a connection or a command,
// and is no part of a password: another name with a value follows, or a space.
func (f *finder) separator(at, i int) bool {
	s := f.s
	if i+1 >= len(s) || anySpace.has(s[i+1]) || s[i+1] == '&' || s[i+1] == '|' || i == at {
		return true
	}
	k := i + 1
	for k < min(len(s), i+40) && (identByte.has(s[k]) || s[k] == ' ' || s[k] == '%') {
		k++
	}
	f.work += k - i
	return k < len(s) && k > i+1 && s[k] == '='
}
