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
// so long that it is hard to read.
func Help() kong.Option {
	return kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 110})
}

// Group is a number of flags of a program, under a title of their own in its help.
type Group struct {
	Title string
	Flags []string
}

// Commands are those that every program has.
type Commands struct {
	Completion CompletionCmd `cmd:"" help:"Print a completion script for a shell."`
	Man        ManCmd        `cmd:"" help:"Print the manual page."`
	HelpOf     HelpCmd       `cmd:"" name:"help" help:"Explain a command."`
	VersionOf  VersionCmd    `cmd:"" name:"version" help:"Print the version."`
}

// common is the help of [Commands].
//
//go:embed help/*.txt
var common embed.FS

// Arrange gives the program the name that it was called by, and it and its commands the help in texts, a file help/NAME.txt
// each, help/NAME-OF-ONE.txt for one of a command, and puts flags of the program into groups, in their order, behind those that are in
// none. It panics where there is no such flag, which is a mistake in the program.
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

// Validate finds a command that there is not.
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
