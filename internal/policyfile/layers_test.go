package policyfile

import (
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// A part of a policy may join its problems before the policy joins its own: each
// is reported by itself.
func TestAll(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	var got []string
	for _, err := range all(errors.Join(a, errors.Join(b, nil), errors.Join(nil, nil), c)) {
		got = append(got, err.Error())
	}
	if d := gocmp.Diff([]string{"a", "b", "c"}, got); d != "" {
		t.Error(d)
	}
	if got := all(nil); got != nil {
		t.Errorf("got %v of nothing", got)
	}
}

// Editors of Windows write a BOM before a text.
func TestBOM(t *testing.T) {
	if _, err := parse("policy.yaml", []byte("\ufefftarget: 0.5\n"), Options{}); err != nil {
		t.Error(err)
	}
}
