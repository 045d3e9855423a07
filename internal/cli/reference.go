package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Reference describes a program in Markdown: its flags, then each command with its
// arguments, flags and examples.
func Reference(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", app.Name, intro(app.Help))
	writeFlags(&b, app.Flags)
	for _, c := range app.Leaves(true) {
		writeCommand(&b, c)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// intro is a description up to its examples, which stand with their commands.
func intro(help string) string {
	before, _, _ := strings.Cut(help, "\n\nExamples:")
	return before
}

func writeCommand(b *strings.Builder, c *kong.Node) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n    %s\n\n", c.FullPath(), c.Help, usage(c))
	for _, p := range c.Positional {
		fmt.Fprintf(b, "- `%s`: %s\n", p.Summary(), p.Help)
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
	return root.Name + c.Summary()
}

// markdown makes blocks of the lines that are indented.
func markdown(detail string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(detail), "\n") {
		if code, ok := strings.CutPrefix(line, "  "); ok {
			line = "    " + code
		} else if strings.HasSuffix(line, ":") {
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
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", flagName(f), code(strings.Join(f.Envs, ", ")), code(preset(f)), cell(f.Help))
	}
	if rows > 0 {
		b.WriteByte('\n')
	}
}

func flagName(f *kong.Flag) string {
	name := "--" + f.Name
	if takesValue(f) {
		name += " " + strings.ToUpper(strings.Trim(f.FormatPlaceHolder(), `"`))
	}
	return name
}

// preset is the default of a flag; required where it must be given.
func preset(f *kong.Flag) string {
	if f.Required {
		return "required"
	}
	return f.Default
}

func code(s string) string {
	if s == "" || s == "required" {
		return s
	}
	return "`" + cell(s) + "`"
}

// cell is a text that may stand in a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
