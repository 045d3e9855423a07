package overflow

import (
	"strconv"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/lazyregexp"
)

// Bounds of the read part of an error. Real bodies have some hundred bytes.
const (
	// MaxText is how much text is compared with the rules, in bytes: half of it from
	// the beginning of what is reported, where bodies have their message, half from the
	// end, where traces of calls have it.
	MaxText = 16 << 10

	maxLeading = 64 // bytes of a text in which its status may be

	maxWords = events.MaxOverflowBytes // of text, before it is cut to MaxText

	maxLevels   = 8 // of objects within objects, bodies within strings included
	maxElements = 4 // of an array
)

// Members of an error that are read, in this order, whatever made it: providers, their
// proxies and SDKs. Members with the request, its headers or the prompt are not among
// them: they hold words of the user.
var (
	textMembers = []string{
		"message", "Message", "errorMessage", "error_msg", "msg", "detail", "title", "error", "Error", "errors", "lastError", "innererror",
		"body", "responseBody", "response_body", "response", "data", "details", "metadata", "raw", "fault", "faultstring", "base_resp", "status_msg",
	}
	codeMembers   = []string{"type", "code", "Code", "status", "name", "reason", "errorType", "__type", "internal_code", "param"}
	statusMembers = []string{"status", "statusCode", "status_code", "code", "httpStatusCode"}
)

// evidence is the text of an error.
type evidence struct {
	words  []string // messages and codes, in the order they were found
	size   int      // of words, in bytes
	status int64    // HTTP status, 0 when it does not say

	actual, window int64 // counts that llama.cpp gives beside its message
}

// collect reads an error.
func collect(err codec.Raw) *evidence {
	ev := &evidence{}
	ev.read(err, maxLevels, true)
	return ev
}

// read adds the text of a value. A cause is followed once.
func (ev *evidence) read(v codec.Raw, levels int, cause bool) {
	if levels == 0 || len(v) == 0 || ev.size >= maxWords {
		return
	}
	switch v.Kind() {
	case '"':
		if s, ok := codec.Text(v); ok {
			ev.addText(s, levels-1, cause)
		}
	case '[':
		var elements []codec.Raw
		if codec.Unmarshal(v, &elements) == nil {
			for _, e := range elements[:min(len(elements), maxElements)] {
				if e.Kind() == '{' {
					ev.read(e, levels-1, cause)
				}
			}
		}
	case '{':
		var object map[string]codec.Raw
		if codec.Unmarshal(v, &object) == nil {
			ev.readObject(object, levels-1, cause)
		}
	}
}

func (ev *evidence) readObject(object map[string]codec.Raw, levels int, cause bool) {
	ev.readStatus(object)
	for _, name := range textMembers {
		ev.read(object[name], levels, cause)
	}
	for _, name := range codeMembers {
		if s, ok := codec.Text(object[name]); ok {
			ev.add(s)
		}
	}
	if c := object["cause"]; cause && c.Kind() == '{' {
		ev.read(c, levels, false)
	}
	if n, ok := number(object["n_prompt_tokens"]); ok && ev.actual == 0 {
		ev.actual = n
	}
	if n, ok := number(object["n_ctx"]); ok && ev.window == 0 {
		ev.window = n
	}
}

// readStatus takes the outermost HTTP status, as a number or a string of digits.
func (ev *evidence) readStatus(object map[string]codec.Raw) {
	for _, name := range statusMembers {
		n, ok := number(object[name])
		if s, text := codec.Text(object[name]); text {
			parsed, err := strconv.ParseInt(s, 10, 64)
			n, ok = parsed, err == nil
		}
		if ok && ev.status == 0 && n >= 400 && n < 600 {
			ev.status = n
		}
	}
}

// number reads a whole JSON number in the range of token counts.
func number(v codec.Raw) (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil && n > 0 && n <= events.MaxTokens
}

// leading is an HTTP status at the beginning of a text, as SDKs write it.
var leading = lazyregexp.New(`(?i)^\W*(?:(?:api )?error:? ?)?(?:(?:error |status )?code:? |http(?: status)?:? |status:? )?(4\d\d|5\d\d)(?:[\s:\]]+([a-z]*)|$)`)

// addText adds a text, and the body in it, should it hold one.
func (ev *evidence) addText(s string, levels int, cause bool) {
	s = s[:min(len(s), maxWords)]
	if m := leading().FindStringSubmatch(s[:min(len(s), maxLeading)]); m != nil && ev.status == 0 && !strings.HasPrefix(strings.ToLower(m[2]), "token") {
		ev.status, _ = strconv.ParseInt(m[1], 10, 64) // three digits
	}
	from, to := strings.IndexByte(s, '{'), strings.LastIndexByte(s, '}')
	if from < 0 || to < from || levels == 0 {
		ev.add(s)
		return
	}
	var object map[string]codec.Raw
	if codec.Unmarshal([]byte(s[from:to+1]), &object) != nil {
		ev.add(s)
		return
	}
	ev.add(s[:from])
	ev.readObject(object, levels, cause)
	ev.add(s[to+1:])
}

// add adds words, cut to what is left of maxWords.
func (ev *evidence) add(s string) {
	s = s[:min(len(s), maxWords-ev.size)]
	ev.size += len(s)
	ev.words = append(ev.words, s)
}

// plainer removes differences between writers of the same words.
var plainer = strings.NewReplacer("`", "", "’", "'", `\'`, "'", `\"`, `"`, `\n`, " ")

// text joins the words of the evidence, in lower case, with single spaces. Each member is a sentence. The
// middle of a text longer than MaxText is left out.
func (ev *evidence) text() string {
	s := strings.ToValidUTF8(strings.Join(ev.words, "; "), "")
	s = strings.Join(strings.Fields(strings.ToLower(plainer.Replace(s))), " ")
	if len(s) > MaxText {
		s = s[:MaxText/2] + " " + s[len(s)-MaxText/2:]
	}
	return s
}

// counts reads the numbers of a refusal that matches no rule: two numbers around a sign of comparison. Of an
// overflow it also reads a size and the limit that it exceeds, or only the limit of the input.
func (ev *evidence) counts(overflow bool) (actual, limit measure.Tokens) {
	if ev.actual > 0 && ev.window >= minLimit {
		return measure.Tokens(ev.actual), measure.Tokens(ev.window)
	}
	text := spaced(ev.text())
	for _, re := range comparisons {
		if c := re.read(text); c != nil && c.actual > 0 && c.limit >= minLimit {
			return c.actual, c.limit
		}
	}
	for _, re := range bounds {
		if c := re.read(text); overflow && c != nil && c.actual > c.limit && c.limit >= minLimit {
			return c.actual, c.limit
		}
	}
	for _, re := range limits {
		if c := re.read(text); overflow && c != nil && c.limit >= minLimit {
			return 0, c.limit
		}
	}
	return 0, 0
}
