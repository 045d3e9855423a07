package policyfile

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"compactd/internal/compaction/policy"
	"compactd/internal/events/codec"
)

// reader turns YAML into the JSON of a policy and notes where each value is.
type reader struct {
	source   string // a file, or a flag
	flag     bool   // it has no lines
	prefix   string // of paths in problems, such as tenants.acme.
	problems *problems
}

// object is a written part of a policy.
type object struct {
	fields codec.Raw        // a JSON object
	places map[string]place // of each value by its path
}

// entry is a key with its value.
type entry struct {
	key   string
	at    place
	value ast.Node
}

// document parses a text of one YAML document; nil is an empty one. A text that is not YAML has one problem,
// at the place where the parser stopped.
func (r *reader) document(data []byte) ast.Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the BOM of editors of Windows
	f, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return nil
	}
	if len(f.Docs) > 1 && f.Docs[1].Body != nil {
		r.problems.add(r.at(f.Docs[1].Body), "a second document is not read; write one")
	}
	if len(f.Docs) == 0 {
		return nil
	}
	return f.Docs[0].Body
}

// syntax notes the place where the parser stopped.
func (r *reader) syntax(err error) {
	at, text := place{source: r.source}, err.Error()
	if e, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		text = e.Message
		if !r.flag {
			at.line = e.Token.Position.Line
		}
	}
	text, _, _ = strings.Cut(text, "\n")
	r.problems.add(at, "is no YAML: %s", text)
}

func (r *reader) at(n ast.Node) place {
	p := place{source: r.source}
	if t := n.GetToken(); t != nil && !r.flag {
		p.line = t.Position.Line
	}
	return p
}

// entries lists the keys of a mapping, each once.
func (r *reader) entries(n ast.Node, what string) []entry {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.problems.add(r.at(n), "%s must be a mapping of keys to values", what)
		return nil
	}
	var out []entry
	for _, v := range m.Values {
		e := entry{v.Key.GetToken().Value, r.at(v.Key), v.Value}
		if _, plain := v.Key.(ast.ScalarNode); !plain || v.Key.Type() == ast.MergeKeyType {
			r.problems.add(e.at, "only plain keys are read: no merge, alias or anchor")
			continue
		}
		if i := slices.IndexFunc(out, func(x entry) bool { return x.key == e.key }); i >= 0 {
			r.problems.add(e.at, "%s is set twice; it is in line %d too", e.key, out[i].at.line)
			continue
		}
		out = append(out, e)
	}
	return out
}

// policy reads fields of a policy.
func (r *reader) policy(fields []entry) object {
	o := object{places: map[string]place{}}
	o.fields = r.structure(fields, reflect.TypeFor[policy.Policy](), "", o.places)
	return o
}

// structure reads the fields of a struct under a path.
func (r *reader) structure(fields []entry, t reflect.Type, path string, places map[string]place) codec.Raw {
	out := map[string]codec.Raw{}
	for _, e := range fields {
		full := strings.TrimPrefix(path+"."+e.key, ".")
		f, ok := fieldOf(t, e.key)
		if !ok {
			r.unknown(e, full, names(t))
			continue
		}
		if raw := r.value(e, f.Type, full, places); raw != nil {
			out[e.key] = raw
		}
	}
	raw, _ := codec.Marshal(out) // of valid JSON
	return raw
}

func (r *reader) unknown(e entry, full string, known []string) {
	text := r.prefix + full + " is not known"
	if meant := nearest(e.key, known); meant != "" {
		text += "; did you mean " + strings.TrimSuffix(full, e.key) + meant + "?"
	} else if len(known) > 0 {
		text += "; the keys here are " + strings.Join(known, ", ")
	}
	r.problems.add(e.at, "%s", text)
}

// value reads a value for a type; nil if it does not fit.
func (r *reader) value(e entry, t reflect.Type, full string, places map[string]place) codec.Raw {
	if t.Kind() == reflect.Struct {
		if fields := r.entries(e.value, r.prefix+full); fields != nil {
			return r.structure(fields, t, full, places)
		}
		return nil
	}
	v, err := scalar(e.value, t)
	if err != nil {
		r.problems.add(e.at, "%s%s %s", r.prefix, full, err)
		return nil
	}
	places[full] = e.at
	return v
}
