// Command words finds words that compactd does not use for its ideas, and names the
// word that it uses. docs/words.txt lists them; docs/glossary.md defines ours.
//
//	go run ./tools/words                # what `make words` runs
//	go run ./tools/words -by-directory  # counts only
//	go run ./tools/words internal/kv    # findings below one directory
//
// It prints file:line:word:suggestion for each finding and a summary line last. It ends
// with exit status 1 when there is a finding, and 2 when the list has an error.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const listFile = "docs/words.txt"

func main() {
	root := flag.String("root", ".", "root of the repository")
	byDirectory := flag.Bool("by-directory", false, "print counts by directory")
	byRule := flag.Bool("by-rule", false, "print counts by pattern")
	flag.Parse()
	n, err := run(os.Stdout, *root, flag.Args(), *byDirectory, *byRule)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	case n > 0:
		os.Exit(1)
	}
}

// finding is one use of a word that is not ours.
type finding struct {
	file string
	line int
	word string
	rule *rule
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d:%s:%s", f.file, f.line, f.word, f.rule.suggestion)
}

// run checks the files of the repository and returns how many findings it printed.
func run(out io.Writer, root string, below []string, byDirectory, byRule bool) (int, error) {
	text, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return 0, err
	}
	list, err := parseList(string(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", listFile, err)
	}
	files, err := tracked(root)
	if err != nil {
		return 0, err
	}
	var all []finding
	for _, file := range files {
		if list.skips(file) || !isBelow(file, below) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, os.ErrNotExist) { // deleted, and not committed yet
			continue
		} else if err != nil {
			return 0, err
		}
		pieces, err := read(file, data)
		if err != nil {
			return 0, err
		}
		all = append(all, list.check(file, pieces)...)
	}
	switch {
	case byDirectory:
		printCounts(out, all, func(f finding) string { return path.Dir(f.file) })
	case byRule:
		printCounts(out, all, func(f finding) string { return f.rule.pattern.String() })
	default:
		for _, f := range all {
			fmt.Fprintln(out, f)
		}
	}
	fmt.Fprintf(out, "words findings=%d exceptions=%d\n", len(all), len(list.exceptions))
	if len(below) == 0 {
		if unused := list.unused(); len(unused) > 0 {
			return len(all), fmt.Errorf("%s: nothing needs these exceptions: %s", listFile, strings.Join(unused, "; "))
		}
	}
	return len(all), nil
}

// tracked lists the files of the repository, without those that git ignores.
func tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(files)
	return slices.Compact(files), nil
}

func isBelow(file string, directories []string) bool {
	return len(directories) == 0 || slices.ContainsFunc(directories, func(d string) bool {
		d = path.Clean(filepath.ToSlash(d))
		return d == "." || file == d || strings.HasPrefix(file, d+"/")
	})
}

func printCounts(out io.Writer, all []finding, key func(finding) string) {
	counts := map[string]int{}
	for _, f := range all {
		counts[key(f)]++
	}
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	}) {
		fmt.Fprintf(out, "%6d  %s\n", counts[k], k)
	}
}
