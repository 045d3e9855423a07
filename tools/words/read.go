package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// piece is text of a file that is read as one: an identifier, a literal, a comment, a
// paragraph. Phrases are found across its lines.
type piece struct {
	scope scope
	line  int // of its first line, from 1
	text  string
}

// lineOf returns the line of the byte at an offset.
func (p piece) lineOf(offset int) int {
	return p.line + strings.Count(p.text[:offset], "\n")
}

// read splits a file by the kind that its name states. Files of other kinds are not read.
func read(file string, data []byte) ([]piece, error) {
	s := string(data)
	names := []piece{{identifier, 1, words(strings.TrimSuffix(path.Base(file), path.Ext(file)))}}
	switch ext := path.Ext(file); {
	case ext == ".go":
		pieces, err := readGo(file, data)
		return append(names, pieces...), err
	case ext == ".ts" || ext == ".js" || ext == ".mjs":
		return append(names, readCode(s, scripts)...), nil
	case ext == ".py":
		return append(names, readCode(s, python)...), nil
	case ext == ".md":
		return append(names, paragraphs(prose, s)...), nil
	case slices.Contains([]string{".yaml", ".yml", ".conf", ".service", ".env", ".toml", ".sh"}, ext),
		slices.Contains([]string{"Makefile", "Dockerfile", ".gitignore", ".dockerignore"}, path.Base(file)),
		strings.HasPrefix(s, "#!"):
		return append(names, readLines(s)...), nil
	case ext == ".json":
		return append(names, paragraphs(literal, s)...), nil
	}
	return nil, nil
}

// readGo reads the names that a Go file declares, its literals and its comments.
func readGo(file string, data []byte) ([]piece, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	g := goFile{set: set, of: map[*ast.BasicLit]scope{}}
	ast.Inspect(tree, g.visit)
	for _, c := range tree.Comments {
		for _, line := range c.List {
			if strings.HasPrefix(line.Text, "//go:") || strings.HasPrefix(line.Text, "//nolint") {
				line.Text = "//"
			}
		}
		lines := make([]string, 0, len(c.List))
		for _, line := range c.List {
			lines = append(lines, unmarked(line.Text))
		}
		g.pieces = append(g.pieces, piece{comment, set.Position(c.Pos()).Line, strings.Join(lines, "\n")})
	}
	return g.pieces, nil
}

// unmarked returns the lines of a comment without their marks and white space, so that ^ matches the first word.
func unmarked(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(strings.TrimLeft(line, " \t/*#"), `"""`)
		lines[i] = strings.TrimRight(line, " \t/*")
	}
	return strings.Join(lines, "\n")
}

type goFile struct {
	set    *token.FileSet
	of     map[*ast.BasicLit]scope // of literals that are more than a string
	pieces []piece
}

func (g *goFile) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		g.name(n.Name)
		return false
	case *ast.FuncDecl:
		g.name(n.Name)
	case *ast.TypeSpec:
		g.name(n.Name)
	case *ast.ValueSpec:
		g.name(n.Names...)
	case *ast.LabeledStmt:
		g.name(n.Label)
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			g.names(n.Key, n.Value)
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			g.names(n.Lhs...)
		}
	case *ast.Field:
		g.name(n.Names...)
		if n.Tag != nil {
			g.of[n.Tag] = ""
			g.tag(n.Tag)
		}
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 && (s.Sel.Name == "Msg" || s.Sel.Name == "Msgf") {
			g.as(logText, n.Args[0])
		}
	case *ast.KeyValueExpr:
		if k, ok := n.Key.(*ast.Ident); ok && (k.Name == "Name" || k.Name == "Help" || k.Name == "Namespace") {
			g.as(metricText, n.Value)
		}
	case *ast.BasicLit:
		g.literal(n)
	}
	return true
}

// as makes a literal one of a log or of a metric.
func (g *goFile) as(s scope, e ast.Expr) {
	if l, ok := e.(*ast.BasicLit); ok {
		g.of[l] = s
	}
}

func (g *goFile) name(ids ...*ast.Ident) {
	for _, id := range ids {
		if id != nil && id.Name != "_" {
			g.pieces = append(g.pieces, piece{identifier, g.set.Position(id.Pos()).Line, words(id.Name)})
		}
	}
}

func (g *goFile) names(es ...ast.Expr) {
	for _, e := range es {
		if id, ok := e.(*ast.Ident); ok {
			g.name(id)
		}
	}
}

func (g *goFile) literal(l *ast.BasicLit) {
	s, more := g.of[l]
	if l.Kind != token.STRING || more && s == "" {
		return
	}
	if !more {
		s = literal
	}
	value, err := strconv.Unquote(l.Value)
	if err != nil {
		return
	}
	if strings.HasPrefix(value, "compactd_") {
		s = metricText
	}
	if l.Value[0] == '"' { // its line breaks are no lines of the file
		value = strings.ReplaceAll(value, "\n", " ")
	}
	g.pieces = append(g.pieces, piece{s, g.set.Position(l.Pos()).Line, unsnake(value)})
}

// tag reads the texts of a struct tag that users read.
func (g *goFile) tag(l *ast.BasicLit) {
	value, err := strconv.Unquote(l.Value)
	if err != nil {
		return
	}
	for _, key := range []string{"json", "yaml", "name", "help", "placeholder", "jsonschema"} {
		if v, ok := reflect.StructTag(value).Lookup(key); ok {
			g.pieces = append(g.pieces, piece{literal, g.set.Position(l.Pos()).Line, unsnake(v)})
		}
	}
}

// unsnake parts the words of names such as partitions_lost_total. It keeps the length.
func unsnake(s string) string { return strings.ReplaceAll(s, "_", " ") }

// words splits a name: logTold, log_told and LogTold are "log told".
func words(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		switch {
		case r == '_' || r == '-' || r == '.':
			b.WriteByte(' ')
			continue
		case i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// paragraphs splits a page at empty lines and at code.
func paragraphs(s scope, page string) (out []piece) {
	begin := 0
	var block []string
	flush := func() {
		if len(block) > 0 {
			out = append(out, piece{s, begin, unsnake(strings.Join(block, "\n"))})
			block = nil
		}
	}
	code := false
	for i, line := range strings.Split(page, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			code = !code
		}
		if fence || code || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "|") {
			flush()
		}
		if len(block) == 0 {
			begin = i + 1
		}
		if strings.TrimSpace(line) != "" {
			block = append(block, line)
		}
	}
	flush()
	return out
}

// readLines reads what has comments that begin with #: the rest of a line is a string.
func readLines(s string) (out []piece) {
	var comments []string
	begin := 0
	flush := func() {
		if len(comments) > 0 {
			out = append(out, piece{comment, begin, strings.Join(comments, "\n")})
			comments = nil
		}
	}
	for i, line := range strings.Split(s, "\n") {
		code, note := line, ""
		if at := hash.FindStringIndex(line); at != nil {
			code, note = line[:at[0]], line[at[1]:]
		}
		if strings.TrimSpace(code) != "" {
			flush()
			out = append(out, piece{literal, i + 1, unsnake(code)})
		}
		if note == "" {
			flush()
			continue
		}
		if len(comments) == 0 {
			begin = i + 1
		}
		comments = append(comments, unmarked(note))
	}
	flush()
	return out
}

var hash = regexp.MustCompile(`(?:^|\s)#`)

// language is how comments and strings of a language look; names are the rest.
type language struct {
	comment, literal *regexp.Regexp
}

var (
	scripts = language{
		comment: regexp.MustCompile(`(?s)^(?://[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)`),
		literal: regexp.MustCompile("(?s)^(?:\"(?:\\\\.|[^\"\\\\\n])*\"|'(?:\\\\.|[^'\\\\\n])*'|`(?:\\\\.|[^`\\\\])*`)"),
	}
	python = language{
		comment: regexp.MustCompile(`(?s)^(?:#[^\n]*(?:\n[ \t]*#[^\n]*)*|""".*?""")`),
		literal: regexp.MustCompile(`(?s)^(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')`),
	}
	name = regexp.MustCompile(`^[\pL_$][\pL\pN_$]*`)
)

// readCode reads a file of a language: comments, strings, and every name that it uses.
func readCode(s string, l language) (out []piece) {
	line := 1
	for len(s) > 0 {
		kind, n := scope(""), 1
		if at := l.comment.FindStringIndex(s); at != nil {
			kind, n = comment, at[1]
		} else if at := l.literal.FindStringIndex(s); at != nil {
			kind, n = literal, at[1]
		} else if at := name.FindStringIndex(s); at != nil {
			kind, n = identifier, at[1]
		}
		switch kind {
		case identifier:
			out = append(out, piece{kind, line, words(s[:n])})
		case comment:
			out = append(out, piece{kind, line, unsnake(unmarked(s[:n]))})
		case literal:
			out = append(out, piece{kind, line, unsnake(s[:n])})
		}
		line += strings.Count(s[:n], "\n")
		s = s[n:]
	}
	return out
}
