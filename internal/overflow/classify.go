package overflow

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/lazyregexp"
)

// rule gives the meaning of words. In words, a regular expression, {actual}, {limit}, {output} and {total}
// match counts of tokens; total is actual and output together.
type rule struct {
	provider string
	class    Class
	words    string
}

// compiled is a rule that is ready for use.
type compiled struct {
	rule
	re func() *regexp.Regexp
}

// count is a number in digits, with one of the usual separators of thousands.
const count = `\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3})+|\d{1,3}(?:_\d{3})+|\d{1,3}(?:'\d{3})+|\d{1,3}(?: \d{3})+|\d+`

// minLimit is the least credible window, in tokens. A smaller number was misread, and as a target it would
// leave nothing of a session.
const minLimit = 64

func compile(rules []rule) []compiled {
	out := make([]compiled, len(rules))
	for i, r := range rules {
		words := r.words
		for _, name := range []string{"actual", "limit", "output", "total"} {
			words = strings.ReplaceAll(words, "{"+name+"}", "(?P<"+name+">"+count+")")
		}
		out[i] = compiled{r, lazyregexp.New(words)}
	}
	return out
}

// counted are the counts that a rule found.
type counted struct {
	at                           int // where the words begin
	actual, limit, output, total measure.Tokens
}

// read returns the counts that the rule finds in text, nil without its words.
func (c *compiled) read(text string) *counted {
	re := c.re()
	m := re.FindStringSubmatchIndex(text)
	if m == nil {
		return nil
	}
	get := func(name string) measure.Tokens {
		n := re.SubexpIndex(name)
		if n < 0 || m[2*n] < 0 {
			return 0
		}
		return parse(text[m[2*n]:m[2*n+1]])
	}
	return &counted{at: m[0], actual: get("actual"), limit: get("limit"), output: get("output"), total: get("total")}
}

// parse reads a count; 0 when it is beyond any count of tokens.
func parse(s string) measure.Tokens {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > events.MaxTokens {
		return 0
	}
	return measure.Tokens(n)
}

// find returns the first rule whose words are in text.
func find(rules []compiled, text string) (*compiled, *counted) {
	for i := range rules {
		if c := rules[i].read(text); c != nil {
			return &rules[i], c
		}
	}
	return nil, nil
}

// failure is the result of a rule, with the count of the input if the text separates it from the output's.
func (c *compiled) failure(n *counted) Failure {
	f := Failure{Class: c.class, Provider: c.provider, Actual: n.actual, Limit: n.limit, Output: n.output}
	if f.Limit < minLimit && f.Class != ClassMedia {
		f.Limit = 0
	}
	if f.Actual == 0 && n.total > n.output {
		f.Actual = n.total - n.output
	}
	return f
}

// classify finds the class of an error. The order matters: long and others hold whatever the status; then
// the status; then other words. The errors of rate limits and quotas also have words that demand less input.
func (ev *evidence) classify() Failure {
	text := ev.text()
	if c, n := find(long, text); c != nil {
		return c.failure(n)
	}
	if c, n := find(others, text); c != nil {
		return c.failure(n)
	}
	if class, ok := byStatus[ev.status]; ok {
		return Failure{Class: class}
	}
	if c, n := find(outputs, text); c != nil {
		return c.failure(n)
	}
	if c, n := find(overflows, text); c != nil {
		if q, before := find(quoting, text); q != nil && before.at < n.at {
			return Failure{Class: ClassInvalid}
		}
		return c.failure(n).wrapped(text)
	}
	if at := tooLongAt(text); at >= 0 {
		if q, before := find(quoting, text); q != nil && before.at < at {
			return Failure{Class: ClassInvalid}
		}
		return Failure{Class: ClassInput}
	}
	if ev.status == statusTooLarge {
		return Failure{Class: ClassBytes}
	}
	if c, n := find(last, text); c != nil {
		return c.failure(n)
	}
	switch {
	case ev.status >= 500:
		return Failure{Class: ClassServer}
	case ev.status >= 400:
		return Failure{Class: ClassInvalid}
	}
	return Failure{Class: ClassUnknown}
}

// tooLongAt returns where a sentence begins that states in general words that an input is too
// long, -1 without one. Text between colons is examined apart too: agents and gateways put
// their own words before it.
func tooLongAt(text string) int {
	for at := 0; at < len(text); {
		end := len(text)
		if m := sentence().FindStringIndex(text[at:]); m != nil {
			end = at + m[1]
		}
		s := path().ReplaceAllString(text[at:end], "")
		if isTooLong(s) || slices.ContainsFunc(strings.Split(s, ": "), isTooLong) {
			return at
		}
		at = end
	}
	return -1
}

// isTooLong reports whether a sentence states that an input is too long.
func isTooLong(s string) bool {
	named := spaced(s)
	switch {
	case strings.ContainsAny(s, "超过太") && tooLongChinese().MatchString(named):
	case bareLong().MatchString(named):
	case slices.ContainsFunc(tooLong, func(re func() *regexp.Regexp) bool { return !re().MatchString(named) }):
		return false
	}
	return !ofOutput().MatchString(s) && !ofOther().MatchString(s)
}

// spaced has spaces between the words of names such as max_prompt_tokens.
func spaced(s string) string { return names().ReplaceAllString(s, "$1 $2") }

var names = lazyregexp.New(`([a-z])_([a-z])`)

// byStatus are the HTTP statuses that decide by themselves.
var byStatus = map[int64]Class{401: ClassAuth, 402: ClassBilling, 403: ClassAuth, 429: ClassRate, 529: ClassServer}

const statusTooLarge = 413

// wrapped names the provider of an overflow in text: Bedrock passes the words of
// its models on.
func (f Failure) wrapped(text string) Failure {
	if f.Provider == "anthropic" && strings.Contains(text, "validationexception") {
		f.Provider = "bedrock"
	}
	return f
}
