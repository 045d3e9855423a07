package inspect

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The doctor tries each subject that the user worker of deploy/cluster may publish to, but for requests.
func TestWritten(t *testing.T) {
	conf, err := os.ReadFile("../../../deploy/cluster/accounts.conf")
	if err != nil {
		t.Fatal(err)
	}
	_, worker, _ := strings.Cut(string(conf), `user: "worker"`)
	allowed, _, found := strings.Cut(worker, "subscribe")
	if !found {
		t.Fatal("accounts.conf has no user worker")
	}
	n := 0
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(allowed, -1) {
		pattern := m[1]
		if strings.HasPrefix(pattern, "_") || strings.HasPrefix(pattern, "$JS.") || strings.HasPrefix(pattern, "compactd.") || strings.HasPrefix(pattern, "secrets/") {
			continue
		}
		n++
		if !slices.ContainsFunc(written, func(subject string) bool { return covers(pattern, subject) }) {
			t.Errorf("%s is not tried", pattern)
		}
	}
	if n < 15 {
		t.Errorf("accounts.conf has %d subjects", n)
	}
}

// covers reports whether a subject is one of a pattern.
func covers(pattern, subject string) bool {
	of, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, word := range of {
		switch {
		case word == ">":
			return len(have) > i
		case i >= len(have) || word != "*" && word != have[i]:
			return false
		}
	}
	return len(of) == len(have)
}
