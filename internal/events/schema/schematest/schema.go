package schematest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events/schema"
)

// jsonSchema is the version of JSON Schema that is sent.
const jsonSchema = "https://json-schema.org/draft/2020-12/schema"

// All returns the schemas of all payloads by name. source is the directory of package
// events, whose comments become descriptions.
func All(source string) (map[string]*jsonschema.Schema, error) {
	words, err := readWords(source)
	if err != nil {
		return nil, fmt.Errorf("describe payloads: %w", err)
	}
	out := map[string]*jsonschema.Schema{}
	for _, p := range payloads {
		s, err := p.schema(words)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", p.Name, err)
		}
		s.Schema, s.ID = jsonSchema, schema.ID(p.Name)
		out[p.Name] = s
	}
	return out, nil
}

// schema is what the struct states, then the rules of its decoder.
func (p *Payload) schema(w *words) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(p.Type, &jsonschema.ForOptions{TypeSchemas: w.types()})
	if err != nil {
		return nil, err
	}
	s.Title = p.Name
	w.describe(s, p.Type)
	p.open(s)
	if err := p.rules.apply(s); err != nil {
		return nil, err
	}
	nullable(s)
	return s, nil
}

// open lets through fields of later versions. Of what comes from outside nothing is
// required but by a rule.
func (p *Payload) open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.AdditionalProperties = nil
	if p.In {
		s.Required = nil
	}
	if i := slices.IndexFunc(s.Types, func(t string) bool { return t != "null" }); i >= 0 {
		s.Type, s.Types = s.Types[i], nil // a pointer or a list; it is never written as null
	}
	for _, f := range s.Properties {
		p.open(f)
	}
	p.open(s.Items)
}

// nullable lets null mean absent where a field is not required.
func nullable(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for name, f := range s.Properties {
		nullable(f)
		if slices.Contains(s.Required, name) {
			continue
		}
		if f.Type != "" {
			f.Type, f.Types = "", []string{f.Type}
		}
		if len(f.Types) > 0 {
			f.Types = append(f.Types, "null")
		}
		if f.Enum != nil {
			f.Enum = append(f.Enum, nil)
		}
	}
	nullable(s.Items)
}

// Text writes a schema, or any other document of this package, as its file has it.
func Text(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return append(data, '\n'), nil
}

// elem is the struct behind pointers and lists, or the type itself.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	return t
}

// jsonName is the name that a field travels under, "" for none of its own.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || f.Anonymous {
		return ""
	}
	return cmp.Or(name, f.Name)
}
