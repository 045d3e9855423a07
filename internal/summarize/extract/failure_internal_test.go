package extract

import "testing"

// Where a record has no room a failure keeps its first line, whatever its command contains.
func TestShortened(t *testing.T) {
	for text, want := range map[string]string{
		"`npm run check 2>&1 | tail -20`: Command aborted":   "`npm run check 2>&1 | tail -20`: Command aborted",
		"`make`: exit status 2 | --- FAIL: TestX":            "`make`: exit status 2",
		"Read: no such file | open /a/b: permission refused": "Read: no such file",
		"exit status 1 | FAIL":                               "exit status 1",
	} {
		if got := shortened(text, 40, 40); got != want {
			t.Errorf("%q is shortened to %q, want %q", text, got, want)
		}
	}
}
