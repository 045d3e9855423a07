package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	doc := flag.String("doc", "docs/reliability.txt", "the file to write")
	flag.Parse()
	missed, err := collect(*doc, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
		os.Exit(1)
	}
	fmt.Printf("reliability: %s is written; %d rows are missing, skipped or missed\n", *doc, missed)
	if missed > 0 {
		os.Exit(3)
	}
}

func collect(doc string, files []string) (missed int, err error) {
	if len(files) == 0 {
		return 0, errors.New("no files of figures; run make test-faults and make soak first")
	}
	slices.Sort(files)
	var all []Figures
	var notes []string
	for _, name := range files {
		found, note, err := read(name)
		if err != nil {
			return 0, err
		}
		all, notes = append(all, found...), append(notes, note...)
	}
	table, missed, err := Table(Promises, all)
	if err != nil {
		return 0, err
	}
	text := "Written by make reliability. docs/reliability.md states the promises.\n\n" + strings.Join(notes, "\n") + "\n\n" + table
	return missed, os.WriteFile(doc, []byte(text), 0o600)
}

// read returns the figures of a file, and its notes, which say where and when they
// came about: lines that begin with #.
func read(name string) (figures []Figures, notes []string, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(data)) {
		if note, ok := strings.CutPrefix(line, "# "); ok {
			notes = append(notes, "- "+filepath.Base(name)+": "+strings.TrimSpace(note))
		}
	}
	figures, err = Read(strings.NewReader(string(data)))
	return figures, notes, err
}
