// Command release builds what a release consists of, into an empty directory:
//
//	compactd_<version>_<os>_<arch>.tar.gz        programs, manual pages, licences
//	compactd_<version>_<os>_<arch>.cdx.json      CycloneDX: the modules in the programs
//	SHA256SUMS                                   of all of them, for sha256sum -c
//
//	go run ./tools/release                         # what `make release` runs
//	go run ./tools/release -platforms linux/arm64  # one platform
//
// The version is that of the newest release in CHANGELOG.md, 0.0.0 before the first. A tree
// with changes that are not committed gets the suffix -dirty.
//
// # Guarantees
//
//   - The programs are static (CGO_ENABLED=0) and hold no path of the machine.
//   - The same commit and the same Go make the same bytes: files of an archive are in a
//     fixed order, belong to no account and carry the time of the commit.
package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// programs are built from cmd and installed as compactd-<program>.
var programs = []string{"worker", "publisher"}

// papers go into each archive beside the programs.
var papers = []string{"LICENSE", "THIRD_PARTY_NOTICES.md", "README.md", "CHANGELOG.md"}

func main() {
	out := flag.String("out", "dist", "directory for the files; what is in it is removed")
	version := flag.String("version", "", "version; that of CHANGELOG.md if empty")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "what to build for")
	flag.Parse()
	if err := run(*out, *version, strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what all archives have in common.
type release struct {
	version string
	time    time.Time // of the commit
	out     string
	licence map[string]string // SPDX names by module
}

func run(out, version string, platforms []string) error {
	r, err := describe(version)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "compactd-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r.out = out
	pages, err := r.manuals(filepath.Join(work, "host"))
	if err != nil {
		return err
	}
	for _, p := range platforms {
		if err := r.platform(work, p, pages); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return writeSums(out)
}

// describe reads version, time and licences from the work tree.
func describe(version string) (*release, error) {
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	if version == "" {
		if version, err = newest(string(changes)); err != nil {
			return nil, err
		}
	}
	dirty, err := output("git", "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return nil, err
	}
	if dirty != "" {
		version += "-dirty"
	}
	stamp, err := output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, err
	}
	notices, err := os.ReadFile("THIRD_PARTY_NOTICES.md")
	if err != nil {
		return nil, err
	}
	return &release{version: version, time: time.Unix(seconds, 0).UTC(), licence: licences(string(notices))}, nil
}

var heading = regexp.MustCompile(`(?m)^## \[?(\d+\.\d+\.\d+[-.\w]*)`)

// newest returns the version of the first release in a changelog, 0.0.0 if nothing is released.
func newest(changes string) (string, error) {
	m := heading.FindStringSubmatch(changes)
	switch {
	case m != nil:
		return m[1], nil
	case strings.Contains(changes, "\n## Unreleased\n"):
		return "0.0.0", nil
	}
	return "", errors.New("CHANGELOG.md has no heading of a release, such as ## 0.1.0")
}

// platform writes archive and bill of materials for one platform.
func (r *release) platform(work, platform string, pages []entry) error {
	goos, goarch, found := strings.Cut(platform, "/")
	if !found {
		return errors.New("a platform is os/arch")
	}
	name := strings.Join([]string{"compactd", r.version, goos, goarch}, "_")
	fmt.Fprintf(os.Stderr, "release: %s\n", name)
	dir := filepath.Join(work, goos+"_"+goarch)
	if err := r.build(dir, goos, goarch); err != nil {
		return err
	}
	var entries []entry
	for _, p := range programs {
		data, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			return err
		}
		entries = append(entries, entry{"compactd-" + p, 0o755, data})
	}
	for _, p := range papers {
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		entries = append(entries, entry{p, 0o644, data})
	}
	archive, err := pack(name, r.time, append(entries, pages...))
	if err != nil {
		return err
	}
	bill, err := r.bill(name, dir, archive)
	if err != nil {
		return err
	}
	return cmp.Or(
		os.WriteFile(filepath.Join(r.out, name+".tar.gz"), archive, 0o644),
		os.WriteFile(filepath.Join(r.out, name+".cdx.json"), bill, 0o644))
}

// build compiles the programs into a directory.
func (r *release) build(dir, goos, goarch string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + r.version, "-o", dir + "/"}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// manuals returns the manual pages, which the programs of this machine print.
func (r *release) manuals(dir string) (pages []entry, err error) {
	if err := r.build(dir, runtime.GOOS, runtime.GOARCH); err != nil {
		return nil, err
	}
	for _, p := range programs {
		cmd := &exec.Cmd{Path: filepath.Join(dir, p), Args: []string{"compactd-" + p, "man"}} // named as it is installed
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s man: %w", p, err)
		}
		pages = append(pages, entry{"man/man1/compactd-" + p + ".1", 0o644, text})
	}
	return pages, nil
}

// writeSums writes SHA256SUMS of the files of a directory.
func writeSums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files { // sorted by name
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

var row = regexp.MustCompile(`(?m)^\| (\S+) \| v\S+ \| (.+) \|$`)

// licences reads the table of THIRD_PARTY_NOTICES.md: an SPDX expression for each module.
func licences(notices string) map[string]string {
	out := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(notices, -1) {
		names := strings.Split(m[2], ", ")
		slices.Sort(names)
		out[m[1]] = strings.Join(names, " AND ")
	}
	return out
}
