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
func (e *explanation) read(v any, depth int) {
	if depth > maxNesting {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			e.read(member, depth+1)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if s, ok := v[k].(string); ok {
				e.field(strings.ToLower(k), s)
			} else {
				e.read(v[k], depth+1)
			}
		}
	}
}

func (e *explanation) field(name, value string) {
	switch name {
	case "code", "type", "status", "reason", "__type":
		e.code(strings.ToLower(value))
	case "message", "error", "detail", "raw", "msg":
		if room := maxMessage - len(e.message); room > 0 {
			e.message += strings.ToLower(value[:min(len(value), room)]) + "\n"
		}
	case "retrydelay":
		if d, err := time.ParseDuration(value); err == nil {
			e.retryDelay = min(max(d, 0), maxRetryAfter)
		}
	}
}

// code keeps a word; what is none could quote anything.
func (e *explanation) code(s string) {
	word := len(s) > 0 && len(s) <= 40 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z')
	})
	if word && s != "error" && len(e.codes) < maxCodes && !e.has(s) {
		e.codes = append(e.codes, s)
	}
}

func (e *explanation) has(codes ...string) bool {
	return slices.ContainsFunc(codes, func(c string) bool { return slices.Contains(e.codes, c) })
}
