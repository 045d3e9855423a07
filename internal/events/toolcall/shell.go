package toolcall

import "strings"

// word is one word of a command line. A dynamic one has variables or patterns, and is no path.
type word struct {
	text            string
	dynamic, quoted bool
}

// parser reads the simple commands of a command line, one after the other.
type parser struct {
	out    *visit
	depth  int // of command lines in command lines
	dir    string
	around []string // directories of the shells around a subshell

	words     []word
	redirects []redirect
	skip      bool // of what stands between [[ and ]]
	last      bool // no command follows
	docs      []heredoc
}

// redirect is a redirection to or from a file.
type redirect struct {
	file    word
	changes bool
}

// heredoc is a here-document that begins behind the next line end.
type heredoc struct {
	end  string
	tabs bool
}

// maxDepth bounds command lines in command lines: sh -c "sh -c '…'".
const maxDepth = 3

// command adds the files of a command line.
func command(s string, out *visit) {
	p := parser{out: out}
	if strings.Contains(s, patchBegin) {
		patch(s, true, out)
	}
	p.read(strings.TrimRight(s, " \t\r\n;"))
	p.end(true)
}

// read reads a command line.
func (p *parser) read(s string) {
	for i := 0; i < len(s) && !p.out.done; {
		switch c := s[i]; {
		case c == '\n':
			p.end(false)
			i = p.documents(s, i+1)
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '\\' && i+1 < len(s) && (s[i+1] == '\n' || strings.HasPrefix(s[i+1:], "\r\n")):
			i += 2
		case c == '#':
			for i < len(s) && s[i] != '\n' {
				i++
			}
		case c == '&' && i+1 < len(s) && s[i+1] == '>':
			i = p.redirect(s, i+1)
		case c == '(' && i+1 < len(s) && s[i+1] == '(' && len(p.words) == 0: // arithmetic
			i = balanced(s, i)
		case c == ';' || c == '&' || c == '|' || c == '(' || c == ')':
			if !p.skip {
				p.end(false)
				p.nest(c)
			}
			i++
		case c == '<' || c == '>':
			i = p.redirect(s, i)
		default:
			w, next := readWord(s, i)
			if number(w) && next < len(s) && (s[next] == '<' || s[next] == '>') { // of a descriptor
				i = p.redirect(s, next)
				continue
			}
			i = next
			switch {
			case len(p.words) == 0 && w.text == "[[" && !w.quoted:
				p.skip = true
			case p.skip && w.text == "]]":
				p.skip = false
			}
			p.words = append(p.words, w)
		}
	}
}

// nest keeps the directory of what is around a subshell.
func (p *parser) nest(c byte) {
	switch n := len(p.around); {
	case c == '(':
		p.around = append(p.around, p.dir)
	case c == ')' && n > 0:
		p.dir, p.around = p.around[n-1], p.around[:n-1]
	}
}

func number(w word) bool {
	return !w.quoted && len(w.text) == 1 && w.text[0] >= '0' && w.text[0] <= '9'
}

// redirect reads a redirection at i, and returns where it ends.
func (p *parser) redirect(s string, i int) int {
	start := i
	for i < len(s) && (s[i] == '<' || s[i] == '>' || s[i] == '|' && i > start || s[i] == '&' && i > start) {
		i++
	}
	op := s[start:i]
	switch {
	case op == "<<" && i < len(s) && s[i] == '-':
		i++
		fallthrough
	case op == "<<":
		tabs := s[i-1] == '-'
		w, next := readWord(s, blank(s, i))
		if w.text != "" {
			p.docs = append(p.docs, heredoc{w.text, tabs})
		}
		return next
	case i < len(s) && s[i] == '(': // of a process
		return i
	}
	w, next := readWord(s, blank(s, i))
	switch {
	case next == i || p.skip || op == "<<<" || strings.HasSuffix(op, "&") && number(w):
	default:
		p.redirects = append(p.redirects, redirect{w, op[0] != '<'})
	}
	return max(next, i)
}

func blank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// documents skips the here-documents that begin at i.
func (p *parser) documents(s string, i int) int {
	for _, d := range p.docs {
		for i < len(s) {
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				n = len(s) - i
			}
			l := strings.TrimSuffix(s[i:i+n], "\r")
			i = min(i+n+1, len(s))
			if d.tabs {
				l = strings.TrimLeft(l, "\t")
			}
			if l == d.end {
				break
			}
		}
	}
	p.docs = p.docs[:0]
	return i
}

// readWord reads the word at i, which may be "" before an operator.
func readWord(s string, i int) (w word, next int) {
	var b strings.Builder
	for i < len(s) {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r', ';', '&', '|', '<', '>', '(', ')':
			w.text = b.String()
			return w, i
		case '\'':
			w.quoted = true
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				end, w.dynamic = len(s)-i-1, true
			}
			b.WriteString(s[i+1 : i+1+end])
			i = min(i+end+2, len(s))
		case '"':
			w.quoted = true
			i = doubleQuoted(s, i+1, &b, &w)
		case '\\':
			if i+1 < len(s) {
				b.WriteByte(s[i+1])
			}
			i = min(i+2, len(s))
		case '$', '`':
			w.dynamic = true
			b.WriteByte(c)
			i = expansion(s, i)
		case '*', '?', '[', '{': // of a pattern, but [ and { are commands too
			w.dynamic = w.dynamic || c == '*' || c == '?' || i+1 < len(s) && strings.IndexByte(" \t\n[", s[i+1]) < 0
			b.WriteByte(c)
			i++
		default:
			b.WriteByte(c)
			i++
		}
	}
	w.text = b.String()
	return w, i
}

// doubleQuoted reads up to behind the closing quote.
func doubleQuoted(s string, i int, b *strings.Builder, w *word) int {
	for i < len(s) {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`\n", s[i+1]) >= 0:
			b.WriteByte(s[i+1])
			i += 2
		case c == '$' && i+1 < len(s) && strings.IndexByte("\" ", s[i+1]) < 0, c == '`':
			w.dynamic = true
			b.WriteByte(c)
			i = expansion(s, i)
		default:
			b.WriteByte(c)
			i++
		}
	}
	w.dynamic = true // the quote does not end
	return i
}

// expansion returns where the variable or the command at i ends.
func expansion(s string, i int) int {
	if s[i] == '`' {
		if end := strings.IndexByte(s[i+1:], '`'); end >= 0 {
			return i + end + 2
		}
		return len(s)
	}
	if i+1 < len(s) && (s[i+1] == '(' || s[i+1] == '{') {
		return balanced(s, i+1)
	}
	return i + 1
}

// balanced returns where the bracket at i is closed.
func balanced(s string, i int) int {
	open, depth := s[i], 0
	closing := byte(')')
	if open == '{' {
		closing = '}'
	}
	for ; i < len(s); i++ {
		switch s[i] {
		case open:
			depth++
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case '\\':
			i++
		case '\'':
			if end := strings.IndexByte(s[i+1:], '\''); end >= 0 {
				i += end + 1
			}
		}
	}
	return len(s)
}

// use adds a file. The effects of all commands but the last happened even if the command line failed.
func (p *parser) use(w word, changed, certain bool) {
	file := w.text
	if p.out.done || p.out.changes && !changed || w.dynamic || !isPath(file) {
		return
	}
	if strings.HasPrefix(p.dir, "/") && !strings.HasPrefix(file, "/") && !strings.HasPrefix(file, "~") {
		file = p.out.join(p.dir, file)
	}
	p.out.add(Use{file, changed, certain || changed && !p.last})
}

// redirected adds the files of the redirections of a command.
func (p *parser) redirected() {
	for _, r := range p.redirects {
		p.use(r.file, r.changes, r.changes)
	}
	p.redirects = p.redirects[:0]
}

// isPath reports whether a word can be the name of a file.
func isPath(s string) bool {
	switch {
	case s == "" || s == "." || s == ".." || s == "-" || strings.HasSuffix(s, "/"):
		return false
	case strings.HasPrefix(s, "/dev/") || strings.HasPrefix(s, "/proc/") || s[0] == '-' || s[0] == '+':
		return false
	case strings.Contains(s, "://") || strings.ContainsAny(s, "\n\t\x00"):
		return false
	}
	return true
}

// end ends a simple command.
func (p *parser) end(last bool) {
	words := p.words
	p.words, p.skip, p.last = p.words[:0], false, last
	p.simple(words)
}
