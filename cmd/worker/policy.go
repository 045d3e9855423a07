package main

import (
	"os"

	"compactd/internal/ops/term"
)

type policyCmd struct {
	Tenant string `placeholder:"NAME" help:"Tenant whose policy to print. Absent: the worker's, which a tenant without its own has."`
	JSON   bool   `env:"COMPACTD_JSON" help:"Print JSON."`
}

// Run prints the policy as a file with the same meaning.
func (c *policyCmd) Run(f *flags) error {
	if !c.JSON {
		return f.settings.Write(os.Stdout, c.Tenant)
	}
	return term.JSON(f.settings.Report(c.Tenant))
}
