package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// CompletionCmd prints the completion script of the program it is a command of.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Run prints the script.
func (c *CompletionCmd) Run(k *kong.Context) error {
	_, err := io.WriteString(os.Stdout, Completion(k.Model, c.Shell))
	return err
}

// Completion returns the script for bash, zsh or fish.
func Completion(app *kong.Application, shell string) string {
	s := script{name: app.Name, levels: levels(app.Node, "")}
	switch shell {
	case "bash":
		return s.bash()
	case "zsh":
		return s.zsh()
	default:
		return s.fish()
	}
}

// level is a place in the command line: the program, or one of its commands.
type level struct {
	path     string // of commands, each after a space
	commands []*kong.Node
	flags    []*kong.Flag // its own and those before it
}

func levels(n *kong.Node, path string) []level {
	l := level{path: path}
	for _, group := range n.AllFlags(true) {
		l.flags = append(l.flags, group...)
	}
	out := []level{}
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && !c.Hidden {
			l.commands = append(l.commands, c)
			out = append(out, levels(c, path+" "+c.Name)...)
		}
	}
	return append([]level{l}, out...)
}

type script struct {
	name   string
	levels []level
}

// function is the name of the program as bash takes one of a function in any of its modes.
func (s script) function() string { return strings.ReplaceAll(s.name, "-", "_") }

// takesValue reports whether the next word belongs to a flag.
func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// values are the possible values of a flag, if they are listed.
func values(f *kong.Flag) []string {
	if f.Enum == "" {
		return nil
	}
	return strings.Split(f.Enum, ",")
}

// each calls fn for every flag once.
func (s script) each(fn func(*kong.Flag)) {
	seen := map[string]bool{}
	for _, l := range s.levels {
		for _, f := range l.flags {
			if !seen[f.Name] {
				seen[f.Name] = true
				fn(f)
			}
		}
	}
}

// valued lists the flags that take a value, as alternatives of a case.
func (s script) valued() string {
	var out []string
	s.each(func(f *kong.Flag) {
		if takesValue(f) {
			out = append(out, "--"+f.Name)
		}
	})
	return strings.Join(out, "|")
}

// paths lists the commands, as alternatives of a case.
func (s script) paths() string {
	var out []string
	for _, l := range s.levels[1:] {
		out = append(out, fmt.Sprintf("%q", l.path))
	}
	return strings.Join(out, "|")
}

func (s script) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, `_%[1]s() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= words= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$cmd ${COMP_WORDS[i]}" in
        %[2]s) cmd="$cmd ${COMP_WORDS[i]}" ;;
        esac
        case ${COMP_WORDS[i]} in
        %[3]s) ((i++)) ;;
        esac
    done
    case $prev in
`, s.function(), s.paths(), s.valued())
	s.each(func(f *kong.Flag) {
		if v := values(f); v != nil {
			fmt.Fprintf(&b, "    --%s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", f.Name, strings.Join(v, " "))
		}
	})
	fmt.Fprintf(&b, "    %s) COMPREPLY=(); return ;;\n    esac\n    case $cmd in\n", s.valued())
	for _, l := range s.levels {
		fmt.Fprintf(&b, "    %q) words=%q ;;\n", l.path, strings.Join(l.words(), " "))
	}
	fmt.Fprintf(&b, `    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _%s %s
`, s.function(), s.name)
	return b.String()
}

// words are the commands and flags of a level.
func (l level) words() (out []string) {
	for _, c := range l.commands {
		out = append(out, c.Name)
	}
	for _, f := range l.flags {
		out = append(out, "--"+f.Name)
	}
	return out
}
