package schematest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// words are what the source states about types beside their shape.
type words struct {
	comments map[string]string   // of a type
	fields   map[string]string   // those of a field, by Type.Field
	values   map[string][]string // the constants of a type of strings
	literals map[string]string   // constants without a type
}

// readWords reads the comments and constants of package events and of its dialects.
func readWords(dir string) (*words, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	dialects, bad := filepath.Glob(filepath.Join(dir, "dialect", "*.go"))
	if err = cmp.Or(err, bad); err != nil || len(files) == 0 || len(dialects) == 0 {
		return nil, fmt.Errorf("read %s: no source, %w", dir, err)
	}
	files = append(files, dialects...)
	w := &words{map[string]string{}, map[string]string{}, map[string][]string{}, map[string]string{}}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				w.read(g)
			}
		}
	}
	return w, nil
}

func (w *words) read(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			w.comments[s.Name.Name] = sentence(g.Doc, s.Doc)
			if t, ok := s.Type.(*ast.StructType); ok {
				w.readFields(s.Name.Name, t)
			}
		case *ast.ValueSpec:
			w.readConst(s)
		}
	}
}

func (w *words) readConst(s *ast.ValueSpec) {
	if len(s.Values) != 1 {
		return
	}
	lit, ok := s.Values[0].(*ast.BasicLit)
	if !ok {
		return
	}
	typ, ok := s.Type.(*ast.Ident)
	if value, err := strconv.Unquote(lit.Value); ok && err == nil {
		w.values[typ.Name] = append(w.values[typ.Name], value)
	}
	w.literals[s.Names[0].Name] = strings.Trim(lit.Value, `"`)
}

func (w *words) readFields(name string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		for _, id := range f.Names {
			w.fields[name+"."+id.Name] = sentence(f.Doc, f.Comment)
		}
	}
}

var links = regexp.MustCompile(`\[\*?([A-Za-z.]+)\]`)

// sentence joins comments into one line, without the brackets of links.
func sentence(groups ...*ast.CommentGroup) string {
	var all []string
	for _, g := range groups {
		if s := strings.Join(strings.Fields(g.Text()), " "); s != "" {
			all = append(all, s)
		}
	}
	return links.ReplaceAllString(strings.Join(all, " "), "$1")
}

// types are the schemas of types that reflection alone would get wrong: raw JSON is
// anything, and a name of a list states what is in it today.
func (w *words) types() map[reflect.Type]*jsonschema.Schema {
	out := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[codec.Raw]():             {},
		reflect.TypeFor[events.SessionsCursor](): {Type: "string"},
		reflect.TypeFor[events.Place]():          {Type: "string"},
		reflect.TypeFor[events.SyncRange]():      {Type: "array", Items: &jsonschema.Schema{Type: "integer"}, MinItems: new(2), MaxItems: new(2)},
		reflect.TypeFor[events.Digest]():         {Type: "string", Pattern: `^[0-9a-fA-F]{32}$`},
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[events.Code](), reflect.TypeFor[events.FileKind](), reflect.TypeFor[events.Format](), reflect.TypeFor[events.Health](),
		reflect.TypeFor[events.Kind](), reflect.TypeFor[events.Lane](), reflect.TypeFor[events.Level](), reflect.TypeFor[events.Op](),
		reflect.TypeFor[events.Reason](), reflect.TypeFor[events.RecordKind](), reflect.TypeFor[dialect.Role](), reflect.TypeFor[events.Stage](),
	} {
		s := &jsonschema.Schema{Type: "string"}
		for _, v := range w.values[t.Name()] {
			s.Examples = append(s.Examples, v)
		}
		out[t] = s
	}
	return out
}

var nothing = regexp.MustCompile(`\b[Nn]il\b`)

// field is what the source states of a field, in words of JSON.
func (w *words) field(owner reflect.Type, f reflect.StructField) string {
	if jsonName(f) == "v" {
		return "version of the contract"
	}
	s := w.fields[owner.Name()+"."+f.Name]
	if rest, ok := strings.CutPrefix(s, f.Name+" "); ok {
		s = jsonName(f) + " " + rest
	}
	return w.plain(owner, s)
}

var constants = regexp.MustCompile(`\bDefault[A-Z]\w+`)

// plain puts the names that travel in place of those of the source.
func (w *words) plain(owner reflect.Type, s string) string {
	s = nothing.ReplaceAllString(s, "absent")
	s = constants.ReplaceAllStringFunc(s, func(name string) string { return cmp.Or(w.literals[name], name) })
	if owner.Kind() != reflect.Struct {
		return s
	}
	for _, f := range reflect.VisibleFields(owner) {
		if name := jsonName(f); name != "" { // not where a sentence begins with the word
			s = regexp.MustCompile(`([a-z,;] )`+f.Name+`\b`).ReplaceAllString(s, "${1}"+name)
		}
	}
	return s
}

// describe gives a schema and its fields the comments of their type.
func (w *words) describe(s *jsonschema.Schema, t reflect.Type) {
	if s.Description == "" {
		s.Description = w.plain(t, w.comments[t.Name()])
	}
	for _, f := range reflect.VisibleFields(t) {
		sub := s.Properties[jsonName(f)]
		if sub == nil {
			continue
		}
		owner := t
		for _, i := range f.Index[:len(f.Index)-1] {
			owner = elem(owner.Field(i).Type)
		}
		sub.Description = w.field(owner, f)
		of := sub
		if sub.Items != nil {
			of = sub.Items
		}
		if inner := elem(f.Type); inner.Kind() == reflect.Struct {
			w.describe(of, inner)
		}
	}
	if t.Kind() == reflect.Struct && s.Description == "" {
		for f := range t.Fields() { // a payload around a struct is described as that is
			if f.Anonymous {
				s.Description = w.comments[f.Type.Name()] + s.Description
			}
		}
	}
}
