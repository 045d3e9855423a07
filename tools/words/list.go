package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// scope is where a word stands in a file.
type scope string

const (
	identifier scope = "identifier" // a name that is declared; a file's name
	literal    scope = "string"
	logText    scope = "log"
	metricText scope = "metric"
	comment    scope = "comment"
	prose      scope = "prose" // a page
)

var scopes = []scope{identifier, literal, logText, metricText, comment, prose}

// text is short for every scope but identifier.
const text = "text"

// list is what docs/words.txt contains.
type list struct {
	rules      []*rule
	skipped    []string
	exceptions []*exception
}

// rule is a word that is not ours.
type rule struct {
	scopes     []scope
	pattern    *regexp.Regexp
	suggestion string
	unless     *regexp.Regexp // a context in which the word is right; nil for none
	in         []string       // globs of the only files in which the word is wrong; none for all
}

// exception is a file that may use a word.
type exception struct {
	file, word, reason string
	used               bool
}

// parseList reads lines of these forms; # begins a comment:
//
//	skip GLOB
//	except GLOB WORD: reason
//	SCOPE[,SCOPE…] PATTERN -> suggestion [in GLOB[,GLOB…]] [unless PATTERN]
//
// A pattern is a regular expression, matched without regard to case. A space in it
// matches any white space. An identifier is matched as its words: logTold is "log told".
func parseList(s string) (*list, error) {
	var l list
	for i, line := range strings.Split(s, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := l.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return &l, nil
}

// add takes one line.
func (l *list) add(line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch kind {
	case "skip":
		l.skipped = append(l.skipped, rest)
		return nil
	case "except":
		head, reason, found := strings.Cut(rest, ":")
		file, word, _ := strings.Cut(head, " ")
		if !found || strings.TrimSpace(reason) == "" || word == "" {
			return fmt.Errorf("%q must be: except GLOB WORD: reason", line)
		}
		l.exceptions = append(l.exceptions, &exception{file: file, word: strings.TrimSpace(word), reason: strings.TrimSpace(reason)})
		return nil
	}
	r := &rule{}
	for name := range strings.SplitSeq(kind, ",") {
		switch {
		case name == text:
			r.scopes = append(r.scopes, scopes[1:]...)
		case slices.Contains(scopes, scope(name)):
			r.scopes = append(r.scopes, scope(name))
		default:
			return fmt.Errorf("there is no scope %q", name)
		}
	}
	pattern, suggestion, found := strings.Cut(rest, " -> ")
	if !found {
		return fmt.Errorf("%q must be: SCOPE PATTERN -> suggestion", line)
	}
	var err error
	if before, context, found := strings.Cut(suggestion, " unless "); found {
		suggestion = before
		if r.unless, err = compile(context); err != nil {
			return err
		}
	}
	if before, glob, found := strings.Cut(suggestion, " in "); found {
		suggestion, r.in = before, strings.Split(strings.TrimSpace(glob), ",")
	}
	r.suggestion = strings.TrimSpace(suggestion)
	r.pattern, err = compile(pattern)
	l.rules = append(l.rules, r)
	return err
}

func compile(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile("(?i)" + strings.ReplaceAll(strings.TrimSpace(pattern), " ", `\s+`))
}

func (l *list) skips(file string) bool { return matchesAny(l.skipped, file) }

func matchesAny(globs []string, file string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return matches(glob, file) })
}

// matches reports whether a file's path, or a directory above it, matches a glob. The
// glob **/x matches x in any directory.
func matches(glob, file string) bool {
	for p := file; p != "." && p != "/"; p = path.Dir(p) {
		if ok, err := path.Match(glob, p); ok && err == nil {
			return true
		}
		if base, found := strings.CutPrefix(glob, "**/"); found {
			if ok, err := path.Match(base, path.Base(p)); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// check finds the words of the list in the pieces of a file.
func (l *list) check(file string, pieces []piece) (out []finding) {
	for _, r := range l.rules {
		if len(r.in) > 0 && !matchesAny(r.in, file) {
			continue
		}
		for _, p := range pieces {
			if !slices.Contains(r.scopes, p.scope) {
				continue
			}
			for _, at := range r.pattern.FindAllStringIndex(p.text, -1) {
				word := p.text[at[0]:at[1]]
				if !r.allows(p.text, at) && !l.excepts(file, word) {
					out = append(out, finding{file, p.lineOf(at[0]), strings.Join(strings.Fields(word), " "), r})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b finding) int { return a.line - b.line })
	return out
}

func (r *rule) allows(s string, at []int) bool {
	return r.unless != nil && slices.ContainsFunc(r.unless.FindAllStringIndex(s, -1), func(context []int) bool {
		return context[0] <= at[0] && at[1] <= context[1]
	})
}

func (l *list) excepts(file, word string) bool {
	for _, e := range l.exceptions {
		if strings.EqualFold(e.word, word) && matches(e.file, file) {
			e.used = true
			return true
		}
	}
	return false
}

func (l *list) unused() (out []string) {
	for _, e := range l.exceptions {
		if !e.used {
			out = append(out, e.file+" "+e.word)
		}
	}
	return out
}
