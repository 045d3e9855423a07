package reference

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// matcher compares a record with an answer. A value that differs from run to run is a
// placeholder in the record: the same UUID stands wherever {{uuid1}} does.
type matcher struct{ bound map[string]string }

// Mismatch returns where got differs from want, "" if it is.
func Mismatch(want, got any) string {
	m := matcher{map[string]string{}}
	return m.value("", want, got)
}

func (m *matcher) value(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return m.differs(path, want, got)
		}
		return m.object(path, w, g)
	case []any:
		g, ok := got.([]any)
		if !ok && (got != nil || len(w) > 0) {
			return m.differs(path, want, got)
		}
		return m.array(path, w, g)
	case string:
		if g, ok := got.(string); !ok || !m.text(w, g) {
			return m.differs(path, want, got)
		}
	case float64:
		if g, ok := got.(float64); !ok || math.Abs(w-g) >= 1e-6 { // ours are parts per million
			return m.differs(path, want, got)
		}
	default:
		if want != got {
			return m.differs(path, want, got)
		}
	}
	return ""
}

func (m *matcher) object(path string, want, got map[string]any) string {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[k]
		if !ok {
			return fmt.Sprintf("%s.%s is missing, want %.80v", path, k, want[k])
		}
		if d := m.value(path+"."+k, want[k], g); d != "" {
			return d
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			return fmt.Sprintf("%s.%s is not in the record: %.80v", path, k, got[k])
		}
	}
	return ""
}

func (m *matcher) array(path string, want, got []any) string {
	for i := range min(len(want), len(got)) {
		if d := m.value(fmt.Sprintf("%s[%d]", path, i), want[i], got[i]); d != "" {
			return d
		}
	}
	if len(want) != len(got) {
		return fmt.Sprintf("%s has %d elements, want %d", path, len(got), len(want))
	}
	return ""
}

func (m *matcher) differs(path string, want, got any) string {
	return fmt.Sprintf("%s is %.160q, want %.160q", path, fmt.Sprint(got), fmt.Sprint(want))
}

var placeholder = regexp.MustCompile(`\{\{(uuid\d+|now)\}\}`)

// text compares two texts, the first of which may hold placeholders.
func (m *matcher) text(want, got string) bool {
	names := placeholder.FindAllString(want, -1)
	if names == nil {
		return want == got
	}
	pattern := "^" + regexp.QuoteMeta(want) + "$"
	for _, n := range names {
		form := `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`
		if n == "{{now}}" {
			form = `(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)`
		}
		pattern = strings.Replace(pattern, regexp.QuoteMeta(n), form, 1)
	}
	found := regexp.MustCompile(pattern).FindStringSubmatch(got)
	for i, n := range names {
		if found == nil || m.bound[n] != "" && n != "{{now}}" && m.bound[n] != found[i+1] {
			return false
		}
		m.bound[n] = found[i+1]
	}
	return true
}
