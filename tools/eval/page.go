package main

import (
	"os"
	"regexp"
)

var private = regexp.MustCompile(`(?m)^# (lost|left out): .*\n`)

// writePage writes what was printed, but for texts of sessions and the names of their files.
func writePage(path, printed string) error {
	return os.WriteFile(path, []byte(private.ReplaceAllString(printed, "")), 0o644)
}
