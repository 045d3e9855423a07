package docs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// Commands wait more than they work: pages run side by side, whatever the cores are.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// notRun are the reasons why a block is not run; a comment above it names one.
var notRun = map[string]string{
	"a cluster":  "the tests of deploy/cluster run these files on real servers",
	"an agent":   "it has to be installed; the tests of cmd/worker run others in its place",
	"a terminal": "it prompts there; how-to.md runs the same with --yes",
}

// ranElsewhere are pages whose commands another test runs and compares.
var ranElsewhere = map[string]string{
	"docs/http.md": "TestHTTPPage of internal/worker",
}

// Every command of the pages is run, page by page, unchanged but for addresses and
// directories; where the page shows what it prints, it prints that.
func TestCommands(t *testing.T) {
	programs := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-w", "-o", programs, "compactd/cmd/worker", "compactd/cmd/publisher", "compactd/"+agent)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, p := range pages(t) {
		if run := p.script(t); run != nil && ranElsewhere[p.path] == "" {
			dir := newWorkdir(t, programs) // before any page runs: a program that is being written cannot be run
			t.Run(p.path, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath("curl"); err != nil && strings.Contains(p.text, "\ncurl ") {
					t.Skip("SKIPPED: no curl here, the commands of this page are not run: ", err)
				}
				dir.at(t).run(p, run)
			})
		}
	}
}

// script returns the blocks that are run.
func (p page) script(t *testing.T) (out []block) {
	t.Helper()
	for _, b := range p.blocks {
		reason, marked := strings.CutPrefix(b.note, "not run: ")
		switch {
		case marked && notRun[reason] == "":
			t.Errorf("%s:%d: %q is no reason of commands_test.go", p.path, b.line, reason)
		case b.lang == "sh" && !marked:
			out = append(out, b)
		}
	}
	return out
}

// run runs the blocks in one shell and compares what they print.
func (f *workdir) run(p page, run []block) {
	f.t.Helper()
	var script strings.Builder
	for _, b := range run {
		fmt.Fprintf(&script, "echo '@@ %d'\n%s", b.line, f.places.Replace(b.text))
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", "exec 2>&1; "+script.String())
	cmd.Dir, cmd.Env = f.dir, f.environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with all that it starts
	log, err := os.Create(filepath.Join(f.dir, "out"))
	must(f.t, err)
	defer log.Close()
	cmd.Stdout = log // a file: what runs on in the background keeps no pipe open
	err = cmd.Run()
	end(cmd.Process.Pid)
	printed, readErr := os.ReadFile(log.Name())
	must(f.t, readErr)
	if err != nil {
		worker, _ := os.ReadFile(filepath.Join(f.dir, "worker.log"))
		f.t.Fatalf("%s: %v\n%s\n-- worker:\n%s", p.path, err, tail(string(printed)), tail(string(worker)))
	}
	f.compare(p, string(printed))
}

// end kills what runs on in the background, which keeps files open.
func end(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	for range 200 { // a second, where no parent reaps it
		if syscall.Kill(-group, 0) != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// compare looks for the lines of each block of output in what the one above it printed.
func (f *workdir) compare(p page, out string) {
	f.t.Helper()
	printed := map[int]string{}
	for _, part := range strings.Split("\n"+out, "\n@@ ")[1:] {
		var line int
		_, err := fmt.Sscanf(part, "%d", &line)
		must(f.t, err)
		printed[line] = part
	}
	for i, b := range p.blocks {
		if b.lang != "output" {
			continue
		}
		if i == 0 || p.blocks[i-1].lang != "sh" {
			f.t.Errorf("%s:%d: this output is of no block", p.path, b.line)
			continue
		}
		rest := printed[p.blocks[i-1].line]
		for line := range strings.Lines(b.text) {
			at := pattern(f.places.Replace(line)).FindStringIndex(rest)
			if at == nil {
				f.t.Errorf("%s:%d: it does not print %q, but\n%s", p.path, b.line, strings.TrimSpace(line), tail(rest))
				break
			}
			rest = rest[at[1]:]
		}
		f.fits(p, p.blocks[i-1], printed[p.blocks[i-1].line])
	}
}

// width is the width of a block's terminal.
var width = regexp.MustCompile(`COLUMNS=([0-9]+)`)

// fits looks for lines that are longer than the terminal of their block.
func (f *workdir) fits(p page, b block, printed string) {
	f.t.Helper()
	m := width.FindStringSubmatch(b.text)
	if m == nil {
		return
	}
	most, err := strconv.Atoi(m[1])
	must(f.t, err)
	for line := range strings.Lines(printed) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
			f.t.Errorf("%s:%d: %d characters in a terminal of %d: %q", p.path, b.line, n, most, line)
		}
	}
}

var (
	figures = regexp.MustCompile(`[0-9][0-9.,]*`)
	blank   = regexp.MustCompile(`[ \t]+`)
)

// pattern matches a line, whatever its figures are; … stands for anything.
func pattern(line string) *regexp.Regexp {
	s := regexp.QuoteMeta(strings.TrimSpace(line))
	s = figures.ReplaceAllString(strings.ReplaceAll(s, `\.`, "."), `[0-9][0-9.,]*`)
	s = strings.ReplaceAll(blank.ReplaceAllString(s, `[ \t]+`), "…", ".*")
	return regexp.MustCompile(`(?m)^[ \t]*` + s + `[ \t]*$`)
}

func tail(text string) string {
	if len(text) > 2000 {
		text = "…" + text[len(text)-2000:]
	}
	return text
}
