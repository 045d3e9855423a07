package main

import (
	"testing"

	"compactd/internal/ops/cli/clitest"
)

// docs/cli.md has every command and flag.
func TestReference(t *testing.T) { clitest.Reference(t, parser(&flags{}).Model) }

// Every command has examples, and all examples are read without an error.
func TestExamples(t *testing.T) {
	clitest.Examples(t, parser(&flags{}).Model, func(args []string) error {
		_, err := parser(&flags{}).Parse(args)
		return err
	})
}

func TestCompletion(t *testing.T) { clitest.Completion(t, parser(&flags{}).Model) }
