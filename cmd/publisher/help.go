package main

import "compactd/internal/ops/cli"

type completionCmd struct {
	cli.CompletionCmd `embed:""`
}

// Help has examples.
func (*completionCmd) Help() string { return cli.CompletionHelp("publisher") }

type manCmd struct {
	cli.ManCmd `embed:""`
}

// Help has examples.
func (*manCmd) Help() string { return cli.ManHelp("publisher") }

type helpCmd struct {
	cli.HelpCmd `embed:""`
}

// Help has examples.
func (*helpCmd) Help() string { return "Examples:\n  publisher help\n  publisher help send" }

type versionCmd struct {
	cli.VersionCmd `embed:""`
}

// Help has examples.
func (*versionCmd) Help() string { return "Examples:\n  publisher version" }
