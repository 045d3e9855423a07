package main

import "compactd/internal/cli"

type completionCmd struct {
	cli.CompletionCmd `embed:""`
}

// Help has examples.
func (*completionCmd) Help() string { return cli.CompletionHelp("publisher") }
