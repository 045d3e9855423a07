package policyfile

import (
	"reflect"
	"strings"
)

// The fields of a policy are those of its JSON: what a session may send, a file
// may say.

// nameOf is the written name of a field.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fieldOf finds the field of a name; other types than structs have none.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for f := range t.Fields() {
		if nameOf(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// names lists the fields of a struct in order; other types than structs have none.
func names(t reflect.Type) []string {
	var out []string
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		out = append(out, nameOf(f))
	}
	return out
}

// lockedKey is the field that states which others sessions cannot set.
const lockedKey = "locked"
