package cli

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

type toy struct {
	Server string `env:"TOY_SERVER" default:"a:1" placeholder:"URL" help:"Where to go: there."`
	Quiet  bool   `help:"Say nothing. Really."`
	Hidden bool   `hidden:""`

	Sing struct {
		Voice string   `enum:"high,low" default:"low" help:"The voice (high|low)."`
		Songs []string `arg:"" optional:"" name:"song" help:"Songs to sing."`
	} `cmd:"" help:"Sing a song."`
	Dance  danceCmd `cmd:"" help:"Dance; it's fun."`
	Secret struct{} `cmd:"" hidden:""`
}

type danceCmd struct {
	Steps int `required:"" help:"How many."`
}

func (danceCmd) Help() string { return "Examples:\n  toy dance --steps 3\n\nIt tires." }

func app() *kong.Application {
	return kong.Must(&toy{}, kong.Name("toy"), kong.Description("A toy.\n\nExamples:\n  toy sing")).Model
}

// Bash completes commands, flags of where the line is, and values that are listed;
// anything else is left to its file names.
func TestBash(t *testing.T) {
	script := Completion(app(), "bash")
	for line, want := range map[string]string{
		"toy ":                        "sing dance --help --server --quiet",
		"toy s":                       "sing",
		"toy --server sing d":         "dance",
		"toy sing --v":                "--voice",
		"toy --quiet sing --voice ":   "high low",
		"toy sing --voice h":          "high",
		"toy --server ":               "",
		"toy dance --":                "--help --server --quiet --steps",
		"toy dance --steps 3 sing --": "--help --server --quiet --steps",
	} {
		words := strings.Split(line, " ")
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = fmt.Sprintf("%q", w)
		}
		try := fmt.Sprintf("%s\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_toy\necho \"${COMPREPLY[@]}\"", script, strings.Join(quoted, " "), len(words)-1)
		out, err := exec.CommandContext(t.Context(), "bash", "-c", try).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", line, err, out)
		}
		if diff := cmp.Diff(want, strings.TrimSpace(string(out))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// The manual page has every command, flag, variable and example that is not hidden, and
// roff that groff takes without a warning.
func TestMan(t *testing.T) {
	page := string(Man(kong.Must(&toy{}, kong.Name("toy"), kong.Description("A toy.\n\nIt plays.\n\nExamples:\n  toy sing\n\nExit codes: 0 done."), kong.Vars{"version": "v7"}).Model))
	for _, part := range []string{
		`.TH COMPACTD-TOY 1 "" "v7"`, `compactd-toy \- a toy`, "It plays.", ".SH toy sing [<song> ...] [flags]", `\fB--voice\fP \fIVOICE\fP`,
		`\fB--server\fP \fIURL\fP`, `\fBTOY_SERVER\fP`, "toy dance --steps 3", "Exit codes: 0 done.",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("there is no %q in\n%s", part, page)
		}
	}
	if strings.Contains(strings.ToLower(page), "secret") || strings.Contains(page, "hidden") {
		t.Errorf("what is hidden is in\n%s", page)
	}
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("SKIPPED: groff is not installed, the page is not set")
	}
	cmd := exec.CommandContext(t.Context(), "groff", "-man", "-Tutf8", "-ww")
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

// Help lists the commands before the flags, and flags of a group after the others.
func TestArrange(t *testing.T) {
	var out strings.Builder
	exited := false
	k := Arrange(kong.Must(&toy{}, kong.Name("toy"), Help(), kong.Writers(&out, &out), kong.Exit(func(int) { exited = true })), fstest.MapFS{}, Group{"Where", []string{"server"}})
	_, _ = k.Parse([]string{"--help"}) // after the help it would look for a command
	last := -1
	for _, part := range []string{"Commands:", "sing", "dance", "Flags:", "--quiet", "Where:", "--server"} {
		at := strings.Index(out.String(), part)
		if at <= last {
			t.Errorf("%q is not where it should be:\n%s", part, out.String())
		}
		last = at
	}
	if !exited {
		t.Error("help goes on")
	}
}
