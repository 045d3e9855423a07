package main

import (
	"os"
	"testing"

	"github.com/alecthomas/kong"

	"compactd/internal/ops/cli/clitest"
)

// docs/cli.md has every command and flag.
func TestReference(t *testing.T) { clitest.Reference(t, parser(&flags{}, "json").Model) }

// Every command has examples, and all of them are read without an error. Contents of
// the files that they name are not read.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"worker.creds", "ca.pem", "nats.conf"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clitest.Examples(t, parser(&flags{}, "json").Model, func(args []string) error {
		trace, err := kong.Trace(parser(&flags{}, "json"), args)
		if err != nil {
			return err
		}
		return trace.Error
	})
}

func TestCompletion(t *testing.T) { clitest.Completion(t, parser(&flags{}, "json").Model) }
