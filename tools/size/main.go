// Command size counts lines by directory: Go, Go of tests, and pages.
//
//	go run ./tools/size           # what `make size` runs
//	go run ./tools/size -at v0.1  # the same of a commit
//
// A line is a line: empty ones and comments count. Read are the files that git tracks,
// of the work tree unless -at names a commit.
//
//	tests    files that end in _test.go; internal/testkit and packages whose name ends in
//	         test, which only tests import
//	tools    other Go below tools, examples, deploy and scripts, and the programs that
//	         measure: bench, buildcost, estimate, eval and reliability, also below internal
//	product  other Go
//	docs     Markdown, but for THIRD_PARTY_NOTICES.md, which is generated
//
// Go below testdata counts as nothing.
package main

import (
	"archive/tar"
	"bytes"
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
	"text/tabwriter"
)

func main() {
	at := flag.String("at", "", "commit to count instead of the work tree")
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := run(os.Stdout, *root, *at); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root, at string) error {
	t := table{}
	var err error
	if at != "" {
		err = ofCommit(root, at, t.add)
	} else {
		err = ofWorkTree(root, t.add)
	}
	if err != nil {
		return err
	}
	return t.print(out)
}

// kind is what a file is for.
type kind int

const (
	nothing kind = iota
	product
	tool
	test
	page
)

// kindOf classifies a file by its path.
func kindOf(file string) kind {
	parts := strings.Split(path.Dir(file), "/")
	switch {
	case path.Ext(file) == ".md" && file != "THIRD_PARTY_NOTICES.md":
		return page
	case path.Ext(file) != ".go", slices.Contains(parts, "testdata"):
		return nothing
	case strings.HasSuffix(file, "_test.go"):
		return test
	case slices.ContainsFunc(parts, func(p string) bool { return p == "testkit" || strings.HasSuffix(p, "test") }):
		return test
	case slices.Contains([]string{"tools", "examples", "deploy", "scripts"}, parts[0]):
		return tool
	case len(parts) > 1 && slices.Contains([]string{"bench", "buildcost", "estimate", "eval", "reliability"}, parts[1]):
		return tool
	}
	return product
}

// table has lines by directory and kind.
type table map[string]map[kind]int

func (t table) add(file string, data []byte) {
	k := kindOf(file)
	if k == nothing {
		return
	}
	dir := path.Dir(file)
	if t[dir] == nil {
		t[dir] = map[kind]int{}
	}
	t[dir][k] += bytes.Count(data, []byte("\n"))
}

func (t table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "product\ttools\ttests\tdocs\t directory")
	sum := map[kind]int{}
	for _, dir := range slices.Sorted(maps.Keys(t)) {
		n := t[dir]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t %s\n", cell(n[product]), cell(n[tool]), cell(n[test]), cell(n[page]), dir)
		for k, lines := range n {
			sum[k] += lines
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "size product=%d tools=%d tests=%d docs=%d\n", sum[product], sum[tool], sum[test], sum[page])
	return err
}

func cell(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// ofWorkTree reads the files that git tracks, as they are now.
func ofWorkTree(root string, add func(string, []byte)) error {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for file := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if kindOf(file) == nothing {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, os.ErrNotExist) { // deleted, and not committed yet
			continue
		} else if err != nil {
			return err
		}
		add(file, data)
	}
	return nil
}

// ofCommit reads the files of a commit.
func ofCommit(root, commit string, add func(string, []byte)) error {
	cmd := exec.Command("git", "archive", "--format=tar", commit)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git archive %s: %w", commit, err)
	}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		add(h.Name, data)
	}
}
