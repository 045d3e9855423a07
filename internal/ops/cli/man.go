package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// ManCmd prints the manual page of the program it is a command of.
type ManCmd struct{}

// Run prints the page.
func (*ManCmd) Run(k *kong.Context) error {
	_, err := os.Stdout.Write(Man(k.Model))
	return err
}

// Man returns the manual page of a program, in roff.
func Man(app *kong.Application) []byte {
	var b strings.Builder
	title := "compactd-" + strings.TrimPrefix(app.Name, "compactd-")
	about, examples, _ := strings.Cut(app.Help, "\n\nExamples:\n")
	examples, codes, _ := strings.Cut(examples, "\n\n")
	gist, about, _ := strings.Cut(about, "\n\n")
	fmt.Fprintf(&b, "%% %s 1 \"\" \"%s\" \"compactd\"\n", strings.ToUpper(title), app.Vars()["version"])
	fmt.Fprintf(&b, "# NAME\n%s - %s\n\n", title, strings.ToLower(gist[:1])+strings.TrimSuffix(gist[1:], "."))
	fmt.Fprintf(&b, "# SYNOPSIS\n**%s** [*flags*] [*command*]\n\n# DESCRIPTION\n%s\n\n", app.Name, Text(about))
	b.WriteString("# COMMANDS\n")
	for _, c := range app.Leaves(true) {
		fmt.Fprintf(&b, "## %s\n%s\n\n", Text(Usage(c)), Text(c.Help))
		for _, p := range c.Positional {
			fmt.Fprintf(&b, "**%s**\n: %s\n\n", Text(p.Summary()), Text(p.Help))
		}
		writeOptions(&b, c.Flags)
		if c.Detail != "" {
			fmt.Fprintf(&b, "%s\n\n", Markdown(c.Detail))
		}
	}
	b.WriteString("# OPTIONS\nof every command\n\n")
	writeOptions(&b, app.Flags)
	fmt.Fprintf(&b, "# EXAMPLES\n%s\n\n# NOTES\n%s\n", strings.TrimPrefix(Markdown("Examples:\n"+examples), "Examples:\n\n"), Text(codes))
	return md2man.Render([]byte(b.String()))
}

// writeOptions lists flags, each with what it means, its variable and its default.
func writeOptions(b *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name, value, valued := strings.Cut(FlagName(f), " ")
		fmt.Fprintf(b, "**%s**", name)
		if valued {
			fmt.Fprintf(b, " *%s*", value)
		}
		fmt.Fprintf(b, "\n: %s", Text(f.Help))
		if len(f.Envs) > 0 {
			fmt.Fprintf(b, " In the environment: **%s**.", strings.Join(f.Envs, "**, **"))
		}
		b.WriteString("\n\n")
	}
}

// Usage is the summary of a command with the name of its program.
func Usage(c *kong.Node) string {
	root := c
	for root.Parent != nil {
		root = root.Parent
	}
	return root.Name + " " + strings.TrimSpace(c.Summary())
}

// FlagName is a flag with the name of its value.
func FlagName(f *kong.Flag) string {
	name := "--" + f.Name
	if takesValue(f) {
		name += " " + strings.ToUpper(cmp.Or(f.PlaceHolder, f.Name))
	}
	return name
}

// Markdown makes blocks of the lines that are indented.
func Markdown(detail string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(detail), "\n") {
		if code, ok := strings.CutPrefix(line, "  "); ok {
			line = "    " + code
		} else if line = Text(line); strings.HasSuffix(line, ":") {
			line += "\n"
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSpace(b.String())
}

// Text is for Markdown, where < begins a tag.
func Text(s string) string { return strings.ReplaceAll(s, "<", `\<`) }
