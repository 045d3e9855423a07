package toolcall

import (
	"path"
	"slices"
	"strings"
)

// programOf is what a program does with the files that its operands name.
type programOf struct {
	does action
	// values are options that a value follows, and script those whose value is a script, which
	// is else the first operand.
	values, script string
}

type action uint8

// The actions of programs.
const (
	readsAll   action = iota // cat A B
	readsLater               // sed SCRIPT A B: with -i it changes them
	changesAll               // rm A B
	renames                  // mv A B C: the last is the place of all
	copies                   // cp A B C: likewise, and what is copied is read
	links                    // ln A B: likewise, and nothing is read
	prefix                   // env A=1 PROGRAM …: the rest is a command
	shells                   // sh -c COMMAND
	versions                 // git mv A B
	moves                    // cd DIR
	downloads                // curl -o FILE
)

// programs are those whose operands are files.
var programs = map[string]programOf{
	"cat": {}, "tac": {}, "less": {values: "-p"}, "more": {}, "source": {}, ".": {},
	"head": {values: "-n -c --lines --bytes"}, "tail": {values: "-n -c --lines --bytes"},
	"nl":   {values: "-b -f -h -i -l -n -s -v -w"},
	"bat":  {values: "-r -l -H --line-range --language --style --theme --color --paging --highlight-line"},
	"sed":  {does: readsLater, script: "-e -f --expression --file"},
	"perl": {does: readsLater, values: "-I -M", script: "-e -E -pe -ne -pie -pi -i"},
	"rm":   {does: changesAll}, "unlink": {does: changesAll}, "mv": {does: renames, values: "-S --suffix"},
	"touch": {does: changesAll, values: "-d -t -r --date --reference"}, "tee": {does: changesAll},
	"truncate": {does: changesAll, values: "-s -r --size --reference"}, "shred": {does: changesAll}, "sponge": {does: changesAll},
	"cp":      {does: copies, values: "-S --suffix"},
	"install": {does: copies, values: "-m -o -g --mode --owner --group"}, "ln": {does: links, values: "-S --suffix"},
	"sudo": {does: prefix, values: "-u -g -h"}, "env": {does: prefix, values: "-u -C"}, "time": {does: prefix}, "nohup": {does: prefix},
	"command": {does: prefix}, "builtin": {does: prefix}, "exec": {does: prefix}, "nice": {does: prefix, values: "-n"},
	"timeout": {does: prefix, values: "-s -k"}, "stdbuf": {does: prefix, values: "-i -o -e"},
	"then": {does: prefix}, "do": {does: prefix}, "else": {does: prefix}, "elif": {does: prefix}, "if": {does: prefix},
	"while": {does: prefix}, "until": {does: prefix}, "!": {does: prefix}, "{": {does: prefix},
	"sh": {does: shells}, "bash": {does: shells}, "zsh": {does: shells}, "dash": {does: shells}, "ksh": {does: shells},
	"git": {does: versions, values: "-C -c --git-dir --work-tree"},
	"cd":  {does: moves}, "pushd": {does: moves},
	"curl": {does: downloads, values: "-o --output"}, "wget": {does: downloads, values: "-O --output-document"},
}

// simple adds the files of one simple command: of its redirections, and behind them its operands.
func (p *parser) simple(words []word) {
	name, program, args := programIn(words)
	if program.does == shells { // the files of its own command line come first
		p.shell(args)
		p.redirected()
		return
	}
	p.redirected()
	switch program.does {
	case moves:
		p.move(args)
	case versions:
		p.version(&program, args)
	case downloads:
		for i, w := range args {
			if i > 0 && hasWord(program.values, args[i-1].text) {
				p.use(w, true, false)
			}
		}
	case readsLater:
		p.edit(name, &program, args)
	default:
		p.operands(program.does, operandsOf(&program, args))
	}
}

// programIn returns the program of a simple command behind words such as sudo or then, and its arguments. A program
// that is not in the table has none.
func programIn(words []word) (name string, program programOf, args []word) {
	for {
		for len(words) > 0 && assigns(words[0]) {
			words = words[1:]
		}
		if len(words) == 0 || words[0].dynamic {
			return "", programOf{}, nil
		}
		name = words[0].text[strings.LastIndexByte(words[0].text, '/')+1:]
		program, ok := programs[name]
		switch {
		case !ok:
			return "", programOf{}, nil
		case program.does != prefix:
			return name, program, words[1:]
		}
		words = withoutOptions(&program, words[1:])
		if name == "timeout" && len(words) > 0 {
			words = words[1:]
		}
	}
}

// withoutOptions takes the options with their values off the start of a command.
func withoutOptions(program *programOf, words []word) []word {
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' {
		n := 1
		if hasWord(program.values, words[0].text) {
			n = 2
		}
		words = words[min(n, len(words)):]
	}
	return words
}

// assigns reports whether a word sets a variable of the environment.
func assigns(w word) bool {
	i := strings.IndexByte(w.text, '=')
	return i > 0 && strings.IndexFunc(w.text[:i], func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) < 0
}

func hasWord(list, w string) bool {
	for s := range strings.FieldsSeq(list) {
		if s == w {
			return true
		}
	}
	return false
}

// operandsOf are the words of a command that are neither options nor their values.
func operandsOf(program *programOf, words []word) (out []word) {
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w.text == "--" && !w.quoted:
			return append(out, words[i+1:]...)
		case len(w.text) > 1 && w.text[0] == '-':
			if hasWord(program.values, w.text) {
				i++
			}
		default:
			out = append(out, w)
		}
	}
	return out
}

// operands adds those of a program. Where several go to one place, that is a directory.
func (p *parser) operands(does action, all []word) {
	n := len(all)
	if does == readsAll || does == changesAll || n < 2 {
		for _, w := range all {
			p.use(w, does != readsAll, false)
		}
		return
	}
	to := all[n-1]
	for _, from := range all[:n-1] {
		if does != links {
			p.use(from, does == renames, false)
		}
		if n > 2 || strings.HasSuffix(to.text, "/") {
			p.use(word{text: p.out.join(to.text, path.Base(from.text)), dynamic: to.dynamic || from.dynamic}, true, false)
		} else {
			p.use(to, true, false)
		}
	}
}

// edit adds the files of sed or perl, which change them in place, or read them.
func (p *parser) edit(name string, program *programOf, words []word) {
	changed, scripted := false, name == "perl"
	var files []word
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case len(w.text) > 1 && w.text[0] == '-':
			inPlace := w.text[1] != '-' && strings.IndexByte(w.text, 'i') > 0 && (name == "perl" || strings.IndexByte(w.text, 'i') <= 3)
			changed = changed || inPlace || strings.HasPrefix(w.text, "--in-place")
			if hasWord(program.script, w.text) && !(name == "sed" && inPlace) || name == "perl" && w.text[1] != '-' && strings.HasSuffix(w.text, "e") {
				scripted = true
				i++
			}
		case w.text == "" && changed: // the suffix of sed -i '' on BSD
		case !scripted:
			scripted = true
		default:
			files = append(files, w)
		}
	}
	if name == "perl" && !changed {
		return // of a program
	}
	for _, w := range files {
		p.use(w, changed, false)
	}
}

// shell goes on with the command line of sh -c.
func (p *parser) shell(words []word) {
	for i, w := range words {
		if len(w.text) < 2 || w.text[0] != '-' {
			return
		}
		if w.text[1] != '-' && strings.HasSuffix(w.text, "c") && i+1 < len(words) {
			if p.depth < maxDepth && !words[i+1].dynamic {
				if strings.Contains(words[i+1].text, patchBegin) {
					patch(words[i+1].text, true, p.out)
				}
				inner := parser{out: p.out, depth: p.depth + 1, dir: p.dir}
				inner.read(words[i+1].text)
				inner.end(true)
			}
			return
		}
	}
}

// move follows cd to another directory, which is unknown where it is not absolute, or too long.
func (p *parser) move(words []word) {
	dir := "~"
	if len(words) > 0 && !words[0].dynamic {
		dir = words[0].text
	}
	switch {
	case strings.HasPrefix(dir, "/") && len(dir) <= maxPath:
		p.dir = dir
	case strings.HasPrefix(p.dir, "/") && !strings.HasPrefix(dir, "/") && dir != "-" && !strings.HasPrefix(dir, "~"):
		p.dir = p.out.join(p.dir, dir)
	default:
		p.dir = ""
	}
}

// version adds the files that git moves, removes or restores.
func (p *parser) version(program *programOf, words []word) {
	for len(words) > 0 && strings.HasPrefix(words[0].text, "-") {
		n := 1
		if hasWord(program.values, words[0].text) {
			n = 2
		}
		words = words[min(n, len(words)):]
	}
	if len(words) == 0 {
		return
	}
	verb, words := words[0].text, words[1:]
	switch verb {
	case "mv":
		p.operands(renames, operandsOf(&programOf{}, words))
	case "rm", "restore":
		p.operands(changesAll, operandsOf(&programOf{values: "-s --source"}, words))
	case "checkout":
		if i := slices.IndexFunc(words, func(w word) bool { return w.text == "--" }); i >= 0 {
			for _, f := range words[i+1:] {
				p.use(f, true, false)
			}
		}
	}
}
