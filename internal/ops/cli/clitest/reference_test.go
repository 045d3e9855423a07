package clitest

import (
	"strings"
	"testing"

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

// The reference has all that is not hidden.
func TestReference(t *testing.T) {
	want := `## toy

A toy.

- ´--server URL´ (´TOY_SERVER´, default ´a:1´): Where to go: there.
- ´--quiet´: Say nothing. Really.

### toy sing

Sing a song.

- ´[<song> ...]´: Songs to sing.

- ´--voice VOICE´ (default ´low´): The voice (high|low).

### toy dance

Dance; it's fun.

- ´--steps STEPS´ (required): How many.

It tires.
`
	if diff := cmp.Diff(strings.ReplaceAll(want, "´", "`"), describe(app())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
