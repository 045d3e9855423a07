package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// run returns what a command prints, on both outputs.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out)
}

// Each file that make install puts below a directory has one name: usage, hints, examples, manual pages,
// completion and the unit say it as it is installed.
func TestInstall(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: make is not installed")
	}
	root := t.TempDir()
	install := exec.CommandContext(t.Context(), "make", "-C", "../..", "install", "DESTDIR="+root, "PREFIX=/opt/compactd")
	install.Env = append(os.Environ(), "COMPACTD_TLS_CA=absent.pem") // settings of a worker make no difference
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("make install: %v\n%s", err, out)
	}
	at := func(path string) string { return filepath.Join(root, "opt/compactd", path) }
	has := func(of, text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q:\n%.3000s", of, part, text)
			}
		}
	}
	for name, parts := range map[string]struct{ help, usage, refused []string }{
		"compactd-worker": {
			[]string{"Usage: compactd-worker", "  compactd-worker doctor --nats"},
			[]string{"compactd-worker: error: unknown flag --nope", "see compactd-worker --help"},
			[]string{"compactd-worker: connect to nats://127.0.0.1:1:"},
		},
		"compactd-publisher": {
			[]string{"Usage: compactd-publisher", "| compactd-publisher send", "compactd-publisher replay --help"},
			[]string{"compactd-publisher: error: unknown flag --nope", "see compactd-publisher --help"},
			[]string{"compactd-publisher: connect to nats://127.0.0.1:1:", "run compactd-worker in another terminal"},
		},
	} {
		program := at("bin/" + name)
		has(name+" --help", run(t, program, "--help"), parts.help...)
		has("wrong usage", run(t, program, "--nope"), parts.usage...)
		for _, command := range []string{"inspect", "sessions"} {
			if strings.HasSuffix(name, "worker") == (command == "inspect") {
				has("an error", run(t, program, command, "--nats", "nats://127.0.0.1:1"), parts.refused...)
			}
		}
		page := read(t, at("share/man/man1/"+name+".1"))
		has("the manual", page, name+` \- `, ".TH "+strings.ToUpper(name)+" 1", `\fB`+name+`\fP [\fIflags\fP]`)
		if strings.Contains(page, "compactd-compactd") {
			t.Error("the manual has the prefix twice")
		}
		script := at("share/bash-completion/completions/" + name)
		completed := run(t, "bash", "-c", fmt.Sprintf(`. %q; COMP_WORDS=(%s vers); COMP_CWORD=1; $(complete -p %[2]s | sed 's/.*-F \([^ ]*\).*/\1/'); echo "${COMPREPLY[@]}"`, script, name))
		if strings.TrimSpace(completed) != "version" {
			t.Errorf("%s completes to %q", name, completed)
		}
		has("zsh", read(t, at("share/zsh/site-functions/_"+name)), "#compdef "+name+"\n")
		has("fish", read(t, at("share/fish/vendor_completions.d/"+name+".fish")), "complete -c "+name+" ")
	}
	has("the unit", read(t, at("lib/systemd/system/compactd-worker.service")), "ExecStart=/opt/compactd/bin/compactd-worker\n")
	pages := at("share/doc/compactd")
	linksHold(t, pages)
	for _, secret := range []string{"certs", "passwords", "secrets", ".gitignore"} {
		if _, err := os.Stat(filepath.Join(pages, "deploy/cluster", secret)); err == nil {
			t.Errorf("%s is installed", secret)
		}
	}
	files, err := filepath.Glob(at("*/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s: %v, %v: others cannot read it", file, info.Mode(), err)
		}
	}
}

var pageLink = regexp.MustCompile(`\]\(([^)\s#]+)[^)\s]*\)`)

// linksHold checks that installed pages link to installed files, or to the source of the programs.
func linksHold(t *testing.T, dir string) {
	t.Helper()
	checked := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		for _, m := range pageLink.FindAllStringSubmatch(read(t, path), -1) {
			to, err := filepath.Rel(dir, filepath.Join(filepath.Dir(path), m[1]))
			if first, _, below := strings.Cut(to, "/"); err != nil || strings.Contains(m[1], "://") || below && first != "docs" && first != "deploy" {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join(dir, to)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil || checked == 0 {
		t.Errorf("%d links were checked: %v", checked, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
