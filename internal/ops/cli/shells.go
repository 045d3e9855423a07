package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

func (s script) zsh() string {
	var b strings.Builder
	fmt.Fprintf(&b, `#compdef %[1]s
_%[1]s() {
    local cmd= i
    local -a commands flags
    for ((i = 2; i < CURRENT; i++)); do
        case "$cmd ${words[i]}" in
        (%[2]s) cmd="$cmd ${words[i]}" ;;
        esac
        case ${words[i]} in
        (%[3]s) ((i++)) ;;
        esac
    done
    case ${words[CURRENT-1]} in
`, s.name, s.paths(), s.valued())
	s.each(func(f *kong.Flag) {
		if v := values(f); v != nil {
			fmt.Fprintf(&b, "    (--%s) compadd -- %s; return ;;\n", f.Name, strings.Join(v, " "))
		}
	})
	fmt.Fprintf(&b, "    (%s) _files; return ;;\n    esac\n    case $cmd in\n", s.valued())
	for _, l := range s.levels {
		commands, flags := zshWords(l)
		fmt.Fprintf(&b, "    (%q)\n        commands=(%s)\n        flags=(%s) ;;\n", l.path, commands, flags)
	}
	fmt.Fprintf(&b, `    esac
    if [[ ${words[CURRENT]} == -* ]]; then
        _describe -o flag flags
    elif (( $#commands )); then
        _describe command commands
    else
        _files
    fi
}
compdef _%[1]s %[1]s
if [ "$funcstack[1]" = "_%[1]s" ]; then _%[1]s "$@"; fi # loaded by compinit
`, s.name)
	return b.String()
}

// zshWords are the commands and flags of a level, each with its gist.
func zshWords(l level) (commands, flags string) {
	for _, c := range l.commands {
		commands += " " + quoted(c.Name+":"+gist(c.Help))
	}
	for _, f := range l.flags {
		flags += " " + quoted("--"+f.Name+":"+gist(f.Help))
	}
	return strings.TrimPrefix(commands, " "), strings.TrimPrefix(flags, " ")
}

func (s script) fish() string {
	var b strings.Builder
	for _, l := range s.levels {
		in := "__fish_use_subcommand"
		if l.path != "" {
			in = "__fish_seen_subcommand_from " + l.path[strings.LastIndex(l.path, " ")+1:]
		}
		for _, c := range l.commands {
			fmt.Fprintf(&b, "complete -c %s -n %s -f -a %s -d %s\n", s.name, quoted(in), c.Name, quoted(gist(c.Help)))
		}
		for _, f := range l.flags {
			fmt.Fprintf(&b, "complete -c %s -n %s -l %s%s -d %s\n", s.name, quoted(in), f.Name, fishValue(f), quoted(gist(f.Help)))
		}
	}
	return b.String()
}

func fishValue(f *kong.Flag) string {
	switch {
	case values(f) != nil:
		return " -x -a " + quoted(strings.Join(values(f), " "))
	case takesValue(f):
		return " -r"
	default:
		return ""
	}
}

// gist is the first sentence of a help, without what separates words in a shell's
// lists.
func gist(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return strings.ReplaceAll(strings.TrimSuffix(first, "."), ":", ",")
}

// quoted is a word for any of the shells.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
