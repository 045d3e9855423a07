package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// ManCmd prints the manual page of the program it is a command of. Embed it in one whose
// Help is [ManHelp].
type ManCmd struct{}

// Run prints the page.
func (*ManCmd) Run(k *kong.Context) error {
	_, err := os.Stdout.Write(Man(k.Model))
	return err
}

// ManHelp has examples.
func ManHelp(program string) string {
	return strings.ReplaceAll(`Examples:
  PROGRAM man

"PROGRAM man | man -l -" shows it; a package puts it into /usr/share/man/man1/compactd-PROGRAM.1.`, "PROGRAM", program)
}

// Man returns the manual page of a program, in roff.
func Man(app *kong.Application) []byte {
	var b strings.Builder
	title := "compactd-" + app.Name
	about, examples, _ := strings.Cut(app.Help, "\n\nExamples:\n")
	examples, codes, _ := strings.Cut(examples, "\n\n")
	gist, about, _ := strings.Cut(about, "\n\n")
	fmt.Fprintf(&b, "%% %s 1 \"\" \"%s\" \"compactd\"\n", strings.ToUpper(title), app.Vars()["version"])
	fmt.Fprintf(&b, "# NAME\n%s - %s\n\n", title, strings.ToLower(gist[:1])+strings.TrimSuffix(gist[1:], "."))
	fmt.Fprintf(&b, "# SYNOPSIS\n**%s** [*flags*] [*command*]\n\n# DESCRIPTION\n%s\n\n", app.Name, text(about))
	b.WriteString("# COMMANDS\n")
	for _, c := range app.Leaves(true) {
		fmt.Fprintf(&b, "## %s\n%s\n\n", text(usage(c)), text(c.Help))
		for _, p := range c.Positional {
			fmt.Fprintf(&b, "**%s**\n: %s\n\n", text(p.Summary()), text(p.Help))
		}
		writeOptions(&b, c.Flags)
		if c.Detail != "" {
			fmt.Fprintf(&b, "%s\n\n", markdown(c.Detail))
		}
	}
	b.WriteString("# OPTIONS\nof every command\n\n")
	writeOptions(&b, app.Flags)
	fmt.Fprintf(&b, "# EXAMPLES\n%s\n\n# NOTES\n%s\n", strings.TrimPrefix(markdown("Examples:\n"+examples), "Examples:\n\n"), text(codes))
	return md2man.Render([]byte(b.String()))
}

// writeOptions lists flags, each with what it means, its variable and its default.
func writeOptions(b *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name, value, valued := strings.Cut(flagName(f), " ")
		fmt.Fprintf(b, "**%s**", name)
		if valued {
			fmt.Fprintf(b, " *%s*", value)
		}
		fmt.Fprintf(b, "\n: %s", text(f.Help))
		if len(f.Envs) > 0 {
			fmt.Fprintf(b, " In the environment: **%s**.", strings.Join(f.Envs, "**, **"))
		}
		b.WriteString("\n\n")
	}
}
