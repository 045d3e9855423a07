package main

import "compactd/internal/ops/cli"

type completionCmd struct {
	cli.CompletionCmd `embed:""`
}

// Help has examples.
func (*completionCmd) Help() string { return cli.CompletionHelp("worker") }

type manCmd struct {
	cli.ManCmd `embed:""`
}

// Help has examples.
func (*manCmd) Help() string { return cli.ManHelp("worker") }

type helpCmd struct {
	cli.HelpCmd `embed:""`
}

// Help has examples.
func (*helpCmd) Help() string { return "Examples:\n  worker help\n  worker help replay" }

type versionCmd struct {
	cli.VersionCmd `embed:""`
}

// Help has examples.
func (*versionCmd) Help() string { return "Examples:\n  worker version" }
