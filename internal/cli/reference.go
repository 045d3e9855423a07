package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Reference describes a program in Markdown: its flags, then each command with its
// arguments, flags and examples.
func Reference(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", app.Name, text(intro(app.Help)))
	writeFlags(&b, app.Flags)
	for _, c := range app.Leaves(true) {
		writeCommand(&b, c)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// intro is a description up to its examples, which are with their commands.
func intro(help string) string {
	before, _, _ := strings.Cut(help, "\n\nExamples:")
	return before
}

func writeCommand(b *strings.Builder, c *kong.Node) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n    %s\n\n", c.FullPath(), text(c.Help), usage(c))
	for _, p := range c.Positional {
		fmt.Fprintf(b, "- `%s`: %s\n", p.Summary(), text(p.Help))
	}
	if len(c.Positional) > 0 {
		b.WriteByte('\n')
	}
	writeFlags(b, c.Flags)
	if c.Detail != "" {
		fmt.Fprintf(b, "%s\n\n", markdown(c.Detail))
	}
}

// usage is the summary of a command with the name of its program.
func usage(c *kong.Node) string {
	root := c
	for root.Parent != nil {
		root = root.Parent
	}
	return root.Name + " " + strings.TrimSpace(c.Summary())
}

// markdown makes blocks of the lines that are indented.
func markdown(detail string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(detail), "\n") {
		if code, ok := strings.CutPrefix(line, "  "); ok {
			line = "    " + code
		} else if line = text(line); strings.HasSuffix(line, ":") {
			line += "\n"
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSpace(b.String())
}

func writeFlags(b *strings.Builder, flags []*kong.Flag) {
	rows := 0
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		if rows++; rows == 1 {
			b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
		}
		help := strings.Replace(f.Help, " ("+f.Default+")", "", 1) // it has a column
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(flagName(f)), code(strings.Join(f.Envs, ", ")), preset(f), cell(text(help)))
	}
	if rows > 0 {
		b.WriteByte('\n')
	}
}

func flagName(f *kong.Flag) string {
	name := "--" + f.Name
	if takesValue(f) {
		name += " " + strings.ToUpper(cmp.Or(f.PlaceHolder, f.Name))
	}
	return name
}

// preset is the default of a flag, or that one is required.
func preset(f *kong.Flag) string {
	switch {
	case f.Required && len(f.Xor) > 0:
		return "one of these"
	case f.Required:
		return "required"
	default:
		return code(f.Default)
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// text is for Markdown, where < begins a tag.
func text(s string) string { return strings.ReplaceAll(s, "<", `\<`) }

// cell is for a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
