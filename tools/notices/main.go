// Command notices writes THIRD_PARTY_NOTICES.md: the modules that the binaries worker and publisher
// link, with their licences. Run it after every change of go.mod.
//
//	go run ./tools/notices           # what `make notices` runs
//	go run ./tools/notices -check    # compare, and exit with 1 when the file is not current
//
// Modules and licence texts come from `go list -deps` for linux/amd64 and the module cache;
// nothing is fetched that a build does not need. A licence that it does not know, and a module
// without one, end it with an error: look whether it may be linked.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const file = "THIRD_PARTY_NOTICES.md"

// page has the licences of the packages of npm in the page that worker serves; `make console` writes it.
const page = "internal/console/assets/licences.txt"

// commands are the programs that are shipped.
var commands = []string{"./cmd/worker", "./cmd/publisher"}

func main() {
	check := flag.Bool("check", false, "compare only")
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := run(context.Background(), *root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

var errStale = errors.New(file + " does not list what worker and publisher link now; run: make notices")

func run(ctx context.Context, root string, check bool) error {
	text, err := notices(ctx, root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, file)
	if !check {
		return os.WriteFile(path, text, 0o644)
	}
	have, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(have, text) {
		err = errStale
	}
	return err
}

// module is one that is linked.
type module struct {
	Path, Version, Dir string

	licences map[string]bool // names
	texts    []string
}

// notices is the whole file.
func notices(ctx context.Context, root string) ([]byte, error) {
	all, err := linked(ctx, root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# Third-party notices\n\n" +
		"`worker` and `publisher` contain the modules below, unchanged, under the licences of their authors. Written by `make notices`; a test checks that it is\n" +
		"current. The source of a module, which licences such as the MPL-2.0 ask to name, is at its path in that version, from any Go module proxy:\n" +
		"`https://proxy.golang.org/<module>/@v/<version>.zip`.\n\n| module | version | licence |\n|---|---|---|\n")
	users := map[string][]string{} // by text
	for _, m := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(slices.Sorted(maps.Keys(m.licences)), ", "))
		for _, t := range m.texts {
			users[t] = append(users[t], m.Path)
		}
	}
	for _, t := range slices.SortedFunc(maps.Keys(users), func(a, b string) int {
		return strings.Compare(users[a][0]+"\x00"+a, users[b][0]+"\x00"+b)
	}) {
		fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n```\n", strings.Join(users[t], ", "), t)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "\n## The page that worker serves\n\n```\n%s\n```\n", bytes.TrimSpace(text))
	return b.Bytes(), nil
}

// linked lists the modules of the commands, and Go itself, with the licences of the
// packages that are used.
func linked(ctx context.Context, root string) ([]*module, error) {
	out, err := goCommand(ctx, root, append([]string{"list", "-deps", "-json=Dir,Module"}, commands...)...)
	if err != nil {
		return nil, err
	}
	goRoot, err := goCommand(ctx, root, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	std := &module{Path: "Go standard library", Version: "as built", Dir: strings.TrimSpace(string(goRoot))}
	if err := std.add(std.Dir); err != nil {
		return nil, err
	}
	byPath := map[string]*module{std.Path: std}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{ Path, Version string }
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := byPath[p.Module.Path]
		if m == nil {
			m = &module{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir}
			byPath[m.Path] = m
		}
		if err := m.add(p.Dir); err != nil {
			return nil, err
		}
	}
	all := slices.SortedFunc(maps.Values(byPath), func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	for _, m := range all {
		if len(m.licences) == 0 {
			return nil, fmt.Errorf("%s %s has no licence in %s: look whether it may be linked", m.Path, m.Version, m.Dir)
		}
	}
	return all, nil
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// licenceFile is the name of a file with a licence, or with what one requires to be passed on.
var licenceFile = regexp.MustCompile(`(?i)^(?:un)?(?:licen[cs]e|copying|notice|patents|copyright)(?:[-.](?:md|txt|mit|apache|bsd|code|libyaml|notice|[a-z0-9-]+))?$`)

// add takes the licences that hold for a package: those in its directory and in the ones
// above it, up to that of its module.
func (m *module) add(dir string) error {
	for {
		if err := m.addDir(dir); err != nil {
			return err
		}
		if dir == m.Dir || len(dir) <= len(m.Dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func (m *module) addDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		text := tidy(string(data))
		if text == "" || slices.Contains(m.texts, text) {
			continue
		}
		names, lower := namesOf(text), strings.ToLower(e.Name())
		if len(names) == 0 && !strings.HasPrefix(lower, "licen") && !strings.HasPrefix(lower, "copying") {
			m.texts = append(m.texts, text) // a notice, or a grant of patents
			continue
		}
		if len(names) == 0 {
			return fmt.Errorf("%s: %s is a licence that is not known here: look whether the module may be linked, and name it in tools/notices", m.Path, e.Name())
		}
		if m.licences == nil {
			m.licences = map[string]bool{}
		}
		for _, name := range names {
			m.licences[name] = true
		}
		m.texts = append(m.texts, text)
	}
	return nil
}

// tidy makes equal texts equal, and keeps a text within its block.
func tidy(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r", ""), "\n")
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimRight(l, " \t\f"), "```", "'''")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// known are phrases of licences.
var known = []struct{ name, phrase string }{
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"MPL-2.0", "mozilla public license, version 2.0"},
	{"Apache-2.0", "apache license version 2.0"},
	{"Apache-2.0", "apache license, version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD-3-Clause", "neither the name of"},
	{"BSD-3-Clause", "names of its contributors may"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
	{"CC0-1.0", "cc0 1.0 universal"},
}

// namesOf are the SPDX names of the licences that a text holds, none for what is not known.
func namesOf(text string) (names []string) {
	flat := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, k := range known {
		if strings.Contains(flat, k.phrase) && !slices.Contains(names, k.name) {
			names = append(names, k.name)
		}
	}
	if slices.Contains(names, "BSD-3-Clause") { // has the text of the other, too
		names = slices.DeleteFunc(names, func(n string) bool { return n == "BSD-2-Clause" })
	}
	return names
}
