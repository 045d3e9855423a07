package clitest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"compactd/internal/ops/cli"
)

var update = flag.Bool("update", false, "write docs/cli.md again")

// page is docs/cli.md for the tests of a command, which run in its directory.
const page = "../../docs/cli.md"

// Reference shows that docs/cli.md describes the command line; -update writes it.
func Reference(t *testing.T, app *kong.Application) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s:begin -->\n", app.Name), fmt.Sprintf("<!-- %s:end -->", app.Name)
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("docs/cli.md has no part for %s between its markers", app.Name)
	}
	want := describe(app)
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/cli.md is not what %s is; run go test ./cmd/%s -run Reference -update (-program +docs):\n%s", app.Name, app.Name, diff)
	}
}

// Examples shows that every command has examples, and that a shell and parse take
// all of them. parse gets the words after the program's name.
func Examples(t *testing.T, app *kong.Application, parse func(args []string) error) {
	t.Helper()
	examples := indented(app.Help)
	for _, c := range app.Leaves(true) {
		own := indented(c.Detail)
		if len(own) == 0 {
			t.Errorf("%s has no example", c.FullPath())
		}
		examples = append(examples, own...)
	}
	for _, line := range examples {
		args, ok := words(t, app.Name, line)
		if !ok {
			t.Errorf("%s: does not call %s", line, app.Name)
		} else if err := parse(args); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func indented(text string) (out []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if example, ok := strings.CutPrefix(line, "  "); ok {
			out = append(out, example)
		}
	}
	return out
}

// words are the arguments that a shell gives the program in an example; ok is false
// if it does not call it.
func words(t *testing.T, program, example string) (args []string, ok bool) {
	t.Helper()
	script := program + `() { printf 'called\0'; for word; do printf '%s\0' "$word"; done; }` + "\n" + example
	out, err := exec.CommandContext(t.Context(), "bash", "-c", script).Output()
	if err != nil {
		t.Fatalf("%s: %v", example, err)
	}
	all := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return all[1:], all[0] == "called"
}

// shells are how a script is tried: read by the shell, without anything around it.
var shells = map[string][]string{"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}}

// Completion shows that each script is one of its shell, where that is installed.
func Completion(t *testing.T, app *kong.Application) {
	t.Helper()
	for shell, command := range shells {
		t.Run(shell, func(t *testing.T) {
			script := cli.Completion(app, shell)
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skipf("SKIPPED: %s is not installed", shell)
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %v\n%s", command, err, out)
			}
		})
	}
}
