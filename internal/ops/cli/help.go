package cli

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Help is how help is laid out: the commands, a line each, before the flags, and no line
// so long that it is hard to read. Of the program's flags a command with a tag uses shows those
// that it has in it alone, by name or by title of a group, such as uses:"Connection,data".
func Help() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		if err := kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 110}).Apply(k); err != nil {
			return err
		}
		return kong.Help(func(o kong.HelpOptions, c *kong.Context) error {
			hidden := hideUnused(c.Model, c.Selected())
			err := kong.DefaultHelpPrinter(o, c)
			if err == nil && hidden {
				_, err = fmt.Fprintf(c.Stdout, "\nFlags of all commands: %s --help\n", c.Model.Name)
			}
			return err
		}).Apply(k)
	})
}

// hideUnused hides the grouped flags of a program that a command does not use, and reports whether there are any.
func hideUnused(app *kong.Application, command *kong.Node) (hidden bool) {
	for ; command != nil && !command.Tag.Has("uses"); command = command.Parent {
	}
	if command == nil {
		return false
	}
	uses := strings.Split(command.Tag.Get("uses"), ",")
	for _, f := range app.Flags {
		if f.Group != nil && !slices.Contains(uses, f.Group.Key) && !slices.Contains(uses, f.Name) {
			f.Hidden, hidden = true, true
		}
	}
	return hidden
}

// Group is a number of flags of a program, under a title of their own in its help.
type Group struct {
	Title string
	Flags []string
}

// Commands are those that every program has.
type Commands struct {
	Completion CompletionCmd `cmd:"" uses:"" help:"Print a completion script for a shell."`
	Man        ManCmd        `cmd:"" uses:"" help:"Print the manual page."`
	HelpOf     HelpCmd       `cmd:"" uses:"" name:"help" help:"Explain a command."`
	VersionOf  VersionCmd    `cmd:"" uses:"" name:"version" help:"Print the version."`
}

// common is the help of [Commands].
//
//go:embed help/*.txt
var common embed.FS

// Arrange gives the program the name that it was called by. The program and its commands get their help from texts:
// help/NAME.txt, or help/NAME-SUBCOMMAND.txt. The flags of groups follow the other flags of the program, in the order
// of the groups. Arrange panics if a flag of a group does not exist, which is a mistake in the program.
func Arrange(k *kong.Kong, texts fs.FS, groups ...Group) *kong.Kong {
	plain := k.Model.Name
	k.Model.Name = Program(plain)
	explain(&k.Model.Help, texts, plain, k.Model.Name)
	for _, c := range k.Model.Leaves(true) {
		name := strings.ReplaceAll(c.Path(), " ", "-")
		explain(&c.Detail, common, name, k.Model.Name)
		explain(&c.Detail, texts, name, k.Model.Name)
	}
	var grouped []*kong.Flag
	for _, g := range groups {
		for _, name := range g.Flags {
			i := slices.IndexFunc(k.Model.Flags, func(f *kong.Flag) bool { return f.Name == name })
			if i < 0 {
				panic("there is no flag --" + name)
			}
			f := k.Model.Flags[i]
			f.Group = &kong.Group{Key: g.Title, Title: g.Title + ":"}
			grouped = append(grouped, f)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(k.Model.Flags), func(f *kong.Flag) bool { return f.Group != nil })
	k.Model.Flags = slices.Concat(rest, grouped)
	return k
}

// explain reads the help about name, if texts has one.
func explain(help *string, texts fs.FS, name, program string) {
	if data, err := fs.ReadFile(texts, "help/"+name+".txt"); err == nil {
		*help = strings.ReplaceAll(strings.TrimSpace(string(data)), "PROGRAM", program)
	}
}

// Connection are the flags of package access, with those that name the server.
func Connection(server ...string) Group {
	return Group{"Connection", append(server, "creds", "user", "password", "tls-ca", "tls-cert", "tls-key")}
}

// HelpCmd explains the program, or one of its commands.
type HelpCmd struct {
	Command []string `arg:"" optional:"" help:"Command to explain; absent explains the program."`
}

// Validate refuses an unknown command.
func (c *HelpCmd) Validate(k *kong.Context) error {
	trace, err := kong.Trace(k.Kong, c.Command)
	if err == nil {
		err = trace.Error
	}
	return err
}

// Run prints the same as --help.
func (c *HelpCmd) Run(k *kong.Context) error {
	_, err := k.Kong.Parse(append(slices.Clone(c.Command), "--help"))
	return err
}

// VersionCmd prints the version of the program.
type VersionCmd struct{}

// Run prints the same as --version.
func (*VersionCmd) Run(k *kong.Context) error {
	_, err := fmt.Fprintln(os.Stdout, k.Model.Vars()["version"])
	return err
}
