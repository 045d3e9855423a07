package extract

import (
	"cmp"
	"strings"

	"compactd/internal/events/dialect"
	"compactd/internal/summarize/snippet"
)

// failure is a tool result that is an error.
type failure struct {
	Line
	key string // of its call
}

// fixedNote ends a failure after which the same call succeeded.
const fixedNote = "later succeeded"

// failed returns the text of a failed result; ok is false for a success. If neither dialect nor tool marks
// errors, lines of a shell's output show one, and for any other tool a beginning that only errors have.
func failed(p *dialect.Part, c *call) (text string, ok bool) {
	if !p.Failed && !p.StatesError() && (c == nil || !c.shell || c.quotes) {
		return "", false
	}
	first, decisiveLine, bad := "", "", false
	for l := range strings.Lines(p.Text) {
		l = strings.TrimSpace(l)
		if l == "" {
			continue
		}
		first = cmp.Or(first, l)
		switch errorLine(l) {
		case decisive:
			decisiveLine, bad = l, true
		case symptom:
			bad = true
		}
		if decisiveLine != "" {
			break
		}
	}
	if !p.Failed && !bad && !p.StatesError() {
		return "", false
	}
	text = snippet.ClipNeutral(first, failureUnits)
	if decisiveLine != "" && decisiveLine != first && !(errorLine(first) == decisive) {
		text = snippet.ClipNeutral(first, failureUnits/2) + lineSeparator + snippet.ClipNeutral(decisiveLine, failureUnits)
	}
	return text, true
}

// lineSeparator stands between two lines of one result.
const lineSeparator = " | "

// Ranks of a line in a failure.
const (
	unremarkable = iota
	symptom      // that there was one
	decisive     // which
)

var errorHeads = []string{
	"--- FAIL", "ERROR:", "Error:", "FAIL\t", "FAIL ", "FAIL:", "FAILED", "error:", "error[", "fatal error", "fatal:", "make: ***", "npm ERR!",
	"npm error", "panic:", "✗", "✘",
}

// errorLine looks only at the start of a trimmed line: elsewhere the words of an error are mostly quoted.
func errorLine(l string) int {
	switch {
	case l == "FAIL", anyOf(l, strings.HasPrefix, errorHeads...):
		return decisive
	case strings.HasPrefix(l, "Traceback (most recent call last)"), exitLine(l):
		return symptom
	}
	word, _, ok := strings.Cut(snippet.Head(l, 80), ": ")
	if ok && !strings.Contains(word, " ") && (strings.HasSuffix(word, "Error") || strings.HasSuffix(word, "Exception")) {
		return decisive // ValueError: …
	}
	if ok && (word == "bash" || word == "sh" || word == "zsh") && strings.Contains(l, "not found") {
		return decisive
	}
	return unremarkable
}

// exitLine reports lines such as "Exit code 2".
func exitLine(l string) bool {
	for _, h := range []string{"Command exited with code ", "Exit code ", "Exit code: ", "exit status ", "Process exited with code "} {
		if n, ok := strings.CutPrefix(l, h); ok {
			return n != "" && n[0] >= '1' && n[0] <= '9'
		}
	}
	return false
}

// shortened is the text of a failure with only the first line of its result, and both this and the head of
// its call cut.
func shortened(text string, head, line int) string {
	for _, end := range []string{"`: ", ": "} {
		if h, l, ok := strings.Cut(text, end); ok { // a call may have what separates lines
			l, _, _ = strings.Cut(l, lineSeparator)
			return snippet.Clip(h, head) + end + snippet.Clip(l, line)
		}
	}
	text, _, _ = strings.Cut(text, lineSeparator)
	return snippet.Clip(text, head+line)
}

// headOf returns the head of the call in the text of a failure, "" if it was cut or there is none.
func headOf(text string) string {
	if i := strings.Index(text, "`: "); i >= 0 {
		if strings.HasSuffix(text[:i], snippet.Ellipsis) {
			return ""
		}
		return text[:i+1]
	}
	h, _, ok := strings.Cut(text, ": ")
	if !ok {
		return ""
	}
	return h
}
