package main

import (
	"errors"
	"slices"

	"github.com/alecthomas/kong"
)

// errTwoServers: both flags are explicit, so neither can be a leftover of the environment.
var errTwoServers = errors.New("--nats and --listen exclude each other: --nats connects to a server, --listen embeds one; leave one out")

// chooseServer decides between a server to connect to and an embedded one. A flag beats
// the environment: with --listen on the command line NATS_URL does not count.
func (f *flags) chooseServer(k *kong.Context) error {
	switch listen := explicit(k, "listen"); {
	case listen && explicit(k, "nats") && f.NATS != "":
		return errTwoServers
	case listen:
		f.NATS = ""
	}
	return nil
}

// explicit reports whether a flag is on the command line; the environment and defaults
// do not count.
func explicit(k *kong.Context, name string) bool {
	return slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == name && !p.Resolved })
}
