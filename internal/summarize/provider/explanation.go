package provider

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// explanation is what the body of a refusal states. Providers nest it differently,
// and gateways wrap what they got; the names of the fields are the same few.
type explanation struct {
	codes      []string // in lower case, each once
	message    string   // in lower case, bounded; to look for words in, not to show
	retryDelay time.Duration
}

// Bounds of what is read.
const (
	maxMessage = 2_000 // bytes
	maxCodes   = 4
	maxNesting = 8
)

// read collects the fields of a decoded body, at any depth.
func (x *explanation) read(v any, depth int) {
	if depth > maxNesting {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			x.read(e, depth+1)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if s, ok := v[k].(string); ok {
				x.field(strings.ToLower(k), s)
			} else {
				x.read(v[k], depth+1)
			}
		}
	}
}

func (x *explanation) field(name, value string) {
	switch name {
	case "code", "type", "status", "reason", "__type":
		x.code(strings.ToLower(value))
	case "message", "error", "detail", "raw", "msg":
		if room := maxMessage - len(x.message); room > 0 {
			x.message += strings.ToLower(value[:min(len(value), room)]) + "\n"
		}
	case "retrydelay":
		if d, err := time.ParseDuration(value); err == nil {
			x.retryDelay = min(max(d, 0), maxRetryAfter)
		}
	}
}

// code keeps a word; what is none could quote anything.
func (x *explanation) code(s string) {
	word := len(s) > 0 && len(s) <= 40 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z')
	})
	if word && s != "error" && len(x.codes) < maxCodes && !x.has(s) {
		x.codes = append(x.codes, s)
	}
}

func (x *explanation) has(codes ...string) bool {
	return slices.ContainsFunc(codes, func(c string) bool { return slices.Contains(x.codes, c) })
}
