package clitest

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"compactd/internal/ops/cli"
)

// common are the commands of every program, which the page explains once.
var common = []string{"completion", "man", "help", "version"}

// describe is the part of docs/cli.md about a program: its flags, then each command with its
// arguments and flags. Usage and examples are in the help alone.
func describe(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", app.Name, paragraphs(intro(app.Help)))
	writeFlags(&b, app.Flags)
	for _, c := range app.Leaves(true) {
		if !slices.Contains(common, c.Path()) {
			writeCommand(&b, c)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// intro is a description up to its examples, which are with their commands.
func intro(help string) string {
	before, _, _ := strings.Cut(help, "\n\nExamples:")
	return before
}

func writeCommand(b *strings.Builder, c *kong.Node) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n", c.FullPath(), wrap(cli.Text(c.Help), ""))
	for _, p := range c.Positional {
		b.WriteString(wrap("- `"+p.Summary()+"`: "+cli.Text(p.Help), "  ") + "\n")
	}
	if len(c.Positional) > 0 {
		b.WriteByte('\n')
	}
	writeFlags(b, c.Flags)
	if detail := withoutExamples(c.Detail); detail != "" {
		fmt.Fprintf(b, "%s\n\n", paragraphs(detail))
	}
}

// withoutExamples leaves out the block of examples, which ends with an empty line.
func withoutExamples(detail string) string {
	before, examples, found := strings.Cut(detail, "Examples:\n")
	if !found {
		return detail
	}
	_, after, _ := strings.Cut(examples, "\n\n")
	return before + after
}

// paragraphs wraps the lines that are no block.
func paragraphs(detail string) string {
	lines := strings.Split(cli.Markdown(detail), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[i] = wrap(line, "")
		}
	}
	return strings.Join(lines, "\n")
}

func writeFlags(b *strings.Builder, flags []*kong.Flag) {
	rows := 0
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		rows++
		help := strings.Replace(f.Help, " ("+f.Default+")", "", 1) // it is in front
		about := []string{}
		for _, s := range []string{code(strings.Join(f.Envs, ", ")), preset(f)} {
			if s != "" {
				about = append(about, s)
			}
		}
		item := code(cli.FlagName(f))
		if len(about) > 0 {
			item += " (" + strings.Join(about, ", ") + ")"
		}
		b.WriteString(wrap("- "+item+": "+cli.Text(help), "  ") + "\n")
	}
	if rows > 0 {
		b.WriteByte('\n')
	}
}

// preset is the default of a flag, or that a value is required.
func preset(f *kong.Flag) string {
	switch {
	case f.Required && len(f.Xor) > 0:
		return "one of these"
	case f.Required:
		return "required"
	case f.Default == "":
		return ""
	default:
		return "default " + code(f.Default)
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// columns is the longest line of the reference.
const columns = 118

// wrap breaks a paragraph into lines of at most columns characters. All but the first
// begin with indent. A code span stays on one line.
func wrap(paragraph, indent string) string {
	var b strings.Builder
	used := 0
	for i, word := range spans(paragraph) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > columns:
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

// spans splits at spaces outside of code spans.
func spans(s string) []string {
	inside := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '`' {
			inside = !inside
		}
		return r == ' ' && !inside
	})
}
