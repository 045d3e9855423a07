package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Program is the name of worker or publisher where this program is installed: both have one prefix,
// such as compactd-.
func Program(name string) string { return filepath.Base(Beside(os.Args[0], name)) }

// Beside is the program of a name as a program that was called beside it.
func Beside(called, name string) string {
	dir, base := filepath.Split(called) // dir is "" where the shell has found it on its path
	for _, program := range []string{"worker", "publisher"} {
		if prefix, found := strings.CutSuffix(base, program); found {
			return dir + prefix + name
		}
	}
	return dir + name
}

var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Word makes one word of a text, for a command line that is printed.
func Word(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return quoted(text)
}
