package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles the expression at its first call, and returns the same value at
// each call. It panics where the expression has an error.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
