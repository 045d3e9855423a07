// Command release builds from a commit what a release consists of, into an empty directory:
//
//	compactd_<version>_<os>_<arch>.tar.gz    what make install puts below /usr/local
//	compactd_<version>_<os>_<arch>.cdx.json  CycloneDX: the modules in the programs
//	compactd_<version>_<arch>.deb            the same for Debian, below /usr
//	compactd_<version>_oci.tar               a container image of all linux platforms, an OCI layout
//	compactd.rb                              a formula for Homebrew, to lie beside the archives
//	compactd-<version>.tgz                   the package for npm
//	compactd-<version>-py3-none-any.whl      the package for Python
//	SHA256SUMS                               of all of them, for sha256sum -c
//
//	make release                                 # the newest commit, for all platforms
//	make release ARGS='-platforms linux/arm64'   # one platform
//	make release ARGS='-url https://HOST/0.1.0'  # a formula that finds the archives there
//
// It needs Go, make, npm, and Python 3 with setuptools and wheel. It has a module of its own,
// so that compactd links none of its libraries.
//
// # Guarantees
//
//   - The version is that of the newest heading in CHANGELOG.md. A package, a client or a chart
//     with another is an error.
//   - Changes that are not committed are left out.
//   - The programs are static (CGO_ENABLED=0) and hold no path of the machine.
//   - The same commit and the same Go make the same bytes: files are in a fixed order, belong to
//     no account and carry the time of the commit. The package for npm depends on the version
//     of Node too, that for Python on those of setuptools and wheel.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// programs are built from cmd and installed as compactd-<program>.
var programs = []string{"worker", "publisher"}

func main() {
	from := flag.String("from", ".", "root of the repository")
	out := flag.String("out", "dist", "directory for the files, from the root; what is in it is removed")
	url := flag.String("url", "", "where the archives will be, for the formula; beside it if empty")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "what to build for")
	flag.Parse()
	sums, err := run(*from, *out, *url, strings.Split(*platforms, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Print(sums)
}

// release is what all files have in common.
type release struct {
	version string
	time    time.Time         // of the commit
	source  string            // directory with the files of the commit
	work    string            // directory for all else, removed at the end
	out     string            // directory of the release
	licence map[string]string // SPDX names by module
}

// run builds a release and returns its sums.
func run(from, out, url string, platforms []string) (sums string, err error) {
	syscall.Umask(0o022) // modes do not depend on the account
	if from, err = filepath.Abs(from); err != nil {
		return "", err
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(from, out)
	}
	work, err := os.MkdirTemp("", "compactd-release-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r, err := describe(from, work)
	if err != nil {
		return "", err
	}
	r.out = out
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755), r.install()); err != nil {
		return "", err
	}
	for _, p := range platforms {
		if err := r.platform(p); err != nil {
			return "", fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, write := range []func() error{r.image, func() error { return r.formula(url) }, r.npm, r.wheel} {
		if err := write(); err != nil {
			return "", err
		}
	}
	return r.sums()
}

// describe exports the newest commit, and reads version, time and licences from it.
func describe(from, work string) (*release, error) {
	r := &release{work: work, source: filepath.Join(work, "source")}
	tree := filepath.Join(work, "source.tar")
	stamp, err := output(from, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, err
	}
	r.time = time.Unix(seconds, 0).UTC()
	changed, err := output(from, "git", "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		fmt.Fprintln(os.Stderr, "release: left out, since they are not committed: changes of", len(strings.Split(changed, "\n")), "files")
	}
	if err := os.Mkdir(r.source, 0o755); err != nil {
		return nil, err
	}
	if _, err := output(from, "git", "archive", "-o", tree, "HEAD"); err != nil {
		return nil, err
	}
	if _, err := output(r.source, "tar", "-xf", tree); err != nil {
		return nil, err
	}
	if r.version, err = version(r.source); err != nil {
		return nil, err
	}
	notices, err := os.ReadFile(filepath.Join(r.source, "THIRD_PARTY_NOTICES.md"))
	r.licence = licences(string(notices))
	return r, err
}

// make builds a target for a platform; "" is that of this machine.
func (r *release) make(target, goos, goarch string, args ...string) error {
	cmd := exec.Command("make", append([]string{"--no-print-directory", "-C", r.source, target, "VERSION=" + r.version}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOAMD64=v1", "GOARM64=v8.0", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// installed is what make install puts below its prefix, with the programs of this machine.
func (r *release) installed() string { return filepath.Join(r.work, "installed", "usr", "local") }

func (r *release) install() error {
	return r.make("install", "", "", "PREFIX=/usr/local", "DESTDIR="+filepath.Join(r.work, "installed"))
}

// tree is what is installed with the programs of a platform.
func (r *release) tree(goos, goarch string) string {
	return filepath.Join(r.work, "tree_"+goos+"_"+goarch)
}

// platform writes the files for one platform.
func (r *release) platform(platform string) error {
	goos, goarch, found := strings.Cut(platform, "/")
	if !found {
		return errors.New("a platform is os/arch")
	}
	name := strings.Join([]string{"compactd", r.version, goos, goarch}, "_")
	tree := r.tree(goos, goarch)
	if err := cmp.Or(os.CopyFS(tree, os.DirFS(r.installed())), r.make("build", goos, goarch)); err != nil {
		return err
	}
	for _, p := range programs {
		if err := os.Rename(filepath.Join(r.source, "bin", p), filepath.Join(tree, "bin", "compactd-"+p)); err != nil {
			return err
		}
	}
	if goos != "linux" {
		if err := os.RemoveAll(filepath.Join(tree, "lib")); err != nil { // units of systemd
			return err
		}
	}
	archive, err := pack(name, tree, r.time)
	if err != nil {
		return err
	}
	bill, err := r.bill(name, filepath.Join(tree, "bin"), archive)
	if err != nil {
		return err
	}
	if err := cmp.Or(
		os.WriteFile(filepath.Join(r.out, name+".tar.gz"), archive, 0o644),
		os.WriteFile(filepath.Join(r.out, name+".cdx.json"), bill, 0o644),
	); err != nil || goos != "linux" {
		return err
	}
	return r.debian(tree, goarch)
}

// sums writes SHA256SUMS of the files of the release.
func (r *release) sums() (string, error) {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return "", err
	}
	var sums strings.Builder
	for _, f := range files { // sorted by name
		sum, err := r.sum(f.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, f.Name())
	}
	return sums.String(), os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func (r *release) sum(file string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, file))
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
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
