package summarize

import (
	"iter"
	"maps"
	"strings"
	"sync"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
)

// detectors are those of gitleaks with its own rules.
type detectors struct {
	special *detect.Detector // of the forms that providers give their secrets
	generic *detect.Detector // of names alone: something with "key" or "token" in it, and a value that looks random
	words   []string         // that generic looks for
}

const genericRule = "generic-api-key"

// gitleaks are the detectors, made once, in 40 ms. Their rules are part of the library, so that it can
// fail in a defective build only.
var gitleaks = sync.OnceValue(func() detectors {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		panic("read the rules for secrets: " + err.Error())
	}
	generic, special := d.Config, d.Config
	rule := d.Config.Rules[genericRule]
	generic.Rules = map[string]config.Rule{genericRule: rule}
	special.Rules = maps.Clone(d.Config.Rules)
	delete(special.Rules, genericRule)
	return detectors{newDetector(special), newDetector(generic), rule.Keywords}
})

func newDetector(c config.Config) *detect.Detector {
	d := detect.NewDetector(c)
	d.IgnoreGitleaksAllow = true // whoever wrote the history must not switch redaction off
	return d
}

// Bytes before and behind a word of the generic rule that its expression can
// reach.
const (
	genericBefore = 64
	genericAfter  = 256
)

// assignments lists where a word of the generic rule stands before what may be a
// value, in a text of small letters.
func assignments(lower string) iter.Seq[span] {
	return func(yield func(span) bool) {
		for _, w := range gitleaks().words {
			for i := 0; ; i += len(w) {
				n := strings.Index(lower[i:], w)
				if n < 0 {
					break
				}
				i += n
				if !hasValue(lower[i+len(w):]) {
					continue
				}
				if !yield(span{max(0, i-genericBefore), min(len(lower), i+genericAfter)}) {
					return
				}
			}
		}
	}
}

// hasValue reports whether a text begins as the generic rule wants it behind its
// word: the rest of a name, a sign, and ten characters of a value.
func hasValue(s string) bool {
	s = skip(s, 20, func(c byte) bool { return c == ' ' || c == '\t' || c == '.' || c == '-' || wordByte(c) })
	s = skip(s, 3, func(c byte) bool { return c == '\'' || c == '"' || spaceByte(c) })
	signs := skip(s, 4, func(c byte) bool { return strings.IndexByte("=>:|?,", c) >= 0 })
	if len(signs) == len(s) {
		return false
	}
	s = skip(signs, 5, func(c byte) bool { return strings.IndexByte("`'\"=", c) >= 0 || spaceByte(c) })
	return len(s)-len(skip(s, 10, func(c byte) bool { return wordByte(c) || strings.IndexByte(".=-+/", c) >= 0 })) == 10
}

// skip takes at most n bytes of a kind off the start of a text.
func skip(s string, n int, is func(byte) bool) string {
	i := 0
	for i < min(n, len(s)) && is(s[i]) {
		i++
	}
	return s[i:]
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func spaceByte(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
