package topology

import (
	"strings"
)

// covers reports whether every subject that matches narrow also matches wide.
func covers(wide, narrow string) bool {
	w, n := strings.Split(wide, "."), strings.Split(narrow, ".")
	for i, token := range w {
		switch {
		case token == ">":
			return len(n) > i
		case i >= len(n) || n[i] == ">":
			return false
		case token != "*" && token != n[i]:
			return false
		}
	}
	return len(w) == len(n)
}

// collide reports whether some subject matches both patterns.
func collide(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		switch {
		case x[i] == ">" || y[i] == ">":
			return true
		case x[i] != "*" && y[i] != "*" && x[i] != y[i]:
			return false
		}
	}
	return len(x) == len(y)
}
