package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// What is measured stands between these lines of the page.
const (
	pageFrom = "<!-- measured: make eval -->\n"
	pageTo   = "<!-- end of measured -->\n"
)

var lost = regexp.MustCompile(`(?m)^# lost: .*\n`)

// writePage puts what was printed into a page, but for what was lost: these are texts of sessions.
func writePage(path, printed string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	printed = lost.ReplaceAllString(printed, "")
	before, rest, ok := strings.Cut(string(data), pageFrom)
	_, after, end := strings.Cut(rest, pageTo)
	if !ok || !end {
		return fmt.Errorf("%s has no place for what is measured", path)
	}
	return os.WriteFile(path, []byte(before+pageFrom+"```\n"+printed+"```\n"+pageTo+after), 0o644)
}
