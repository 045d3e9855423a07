package cli

import (
	"errors"
	"slices"

	"github.com/alecthomas/kong"
)

// HelpOf is the command line that explains what an error of parsing is about: that of
// the verb where one was given in args, else that of the program.
func HelpOf(err error, app *kong.Application, args []string) string {
	help := app.Name + " --help"
	e, ok := errors.AsType[*kong.ParseError](err)
	if !ok || e.Context == nil {
		return help
	}
	verb := e.Context.Selected()
	if verb == nil || !slices.Contains(args, verb.Name) { // the default one, which is not on the command line
		return help
	}
	return verb.FullPath() + " --help"
}

// Given reports whether a flag is on the command line; the environment and defaults do not count.
func Given(k *kong.Context, name string) bool {
	return slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == name })
}
