package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// errNoHistory: the commit, or one before it, is not in the repository.
var errNoHistory = errors.New("the history of this repository does not reach back to commit " + commit[:7])

// errToolUse is an answer of a tool that is an error: the agent sees it.
type errToolUse string

func (e errToolUse) Error() string { return string(e) }

// sandbox is a copy of the repository at [commit], with its history, in a
// temporary folder.
type sandbox struct {
	ctx   context.Context //nolint:containedctx // a sandbox lives as long as one call of record
	root  string
	env   []string
	names *strings.Replacer // of folders of this machine
}

func newSandbox(ctx context.Context, repo string) (*sandbox, error) {
	objects, err := git(ctx, repo, nil, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	if _, err := git(ctx, repo, nil, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return nil, errNoHistory
	}
	root, err := os.MkdirTemp("", "compactd-example-")
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	s := &sandbox{ctx: ctx, root: root}
	if err := s.fill(objects); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// fill checks the commit out into a new repository that borrows the objects of
// the real one, and writes nothing to that.
func (s *sandbox) fill(objects string) error {
	for _, dir := range []string{"repo", "tmp", "home"} {
		if err := os.Mkdir(filepath.Join(s.root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := s.environment(); err != nil {
		return err
	}
	steps := [][]string{{"init", "-q", "-b", "main"}, {"config", "core.abbrev", "7"}, {"config", "gc.auto", "0"}, {"config", "user.name", "agent"}, {"config", "user.email", "agent@compactd.example"}}
	for _, args := range steps {
		if _, err := git(s.ctx, s.path("."), s.env, args...); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.path(".git/objects/info/alternates"), []byte(objects+"\n"), 0o644); err != nil {
		return err
	}
	if _, err := git(s.ctx, s.path("."), s.env, "log", "--oneline", commit); err != nil {
		return errNoHistory
	}
	_, err := git(s.ctx, s.path("."), s.env, "reset", "-q", "--hard", commit)
	return err
}

// environment is that of every command: nothing of the user's but the way to
// the tools and Go's caches.
func (s *sandbox) environment() error {
	out, err := exec.CommandContext(s.ctx, "go", "env", "GOCACHE", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	dirs := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(dirs) != 3 {
		return fmt.Errorf("go env: got %q", out)
	}
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb",
		"HOME=" + filepath.Join(s.root, "home"), "TMPDIR=" + filepath.Join(s.root, "tmp"),
		"GOCACHE=" + dirs[0], "GOMODCACHE=" + dirs[1], "GOFLAGS=-trimpath", "GOENV=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off", "CGO_ENABLED=0",
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat", "PAGER=cat",
	}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if v, ok := os.LookupEnv(name); ok {
			s.env = append(s.env, name+"="+v)
		}
	}
	s.names = strings.NewReplacer(
		filepath.Join(s.root, "repo"), home, filepath.Join(s.root, "tmp"), "$TMPDIR", s.root, "$HOME",
		dirs[0], "$GOCACHE", dirs[1], "$GOMODCACHE", dirs[2], "$GOROOT",
	)
	return nil
}

func (s *sandbox) remove() { _ = os.RemoveAll(s.root) }

// path is where a file of the repository is.
func (s *sandbox) path(file string) string {
	return filepath.Join(s.root, "repo", filepath.FromSlash(file))
}

// do carries out a call.
func (s *sandbox) do(c call) (string, bool) {
	answer, err := c.run(s)
	var told errToolUse
	switch {
	case errors.As(err, &told):
		return string(told), true
	case err != nil:
		return err.Error(), !c.fails // never what the script expects
	}
	return answer, false
}

// noise is what differs between two runs of one command, and what stands for it.
var noise = []struct {
	is    *regexp.Regexp
	reads string
}{
	{regexp.MustCompile(`(?m)^go: downloading .*\n`), ""},
	{regexp.MustCompile(`(?m)^((?:ok  |FAIL)\t\S+\t)(?:\d+\.\d+s|\(cached\))`), "${1}0.042s"},
	{regexp.MustCompile(`(?m)^(\s*--- (?:PASS|FAIL|SKIP): \S+) \(\d+\.\d+s\)`), "${1} (0.00s)"},
	{regexp.MustCompile(`(\[rapid\] OK, passed \d+ tests) \([^)]*\)`), "${1} (1.2ms)"},
	{regexp.MustCompile(`\$TMPDIR/go-build\d+`), "$$TMPDIR/go-build1"},
	{regexp.MustCompile(`(?m)^goroutine \d+ \[`), "goroutine 7 ["},
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "0xc000012345"},
	{regexp.MustCompile("\u00a0"), " "}, // go-cmp makes its texts differ from build to build
}

// scrub takes out of an output what is of this machine or this moment.
func (s *sandbox) scrub(out string) string {
	out = s.names.Replace(out)
	for _, n := range noise {
		out = n.is.ReplaceAllString(out, n.reads)
	}
	return strings.ToValidUTF8(out, "\uFFFD")
}

func git(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	// The repository may belong to another user than ours: we only read it.
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir, cmd.Env = dir, slices.Clip(env)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
