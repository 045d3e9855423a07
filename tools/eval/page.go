package main

import (
	"os"
	"regexp"
)

var lost = regexp.MustCompile(`(?m)^# lost: .*\n`)

// writePage writes what was printed, but for what was lost: these are texts of sessions.
func writePage(path, printed string) error {
	return os.WriteFile(path, []byte(lost.ReplaceAllString(printed, "")), 0o644)
}
