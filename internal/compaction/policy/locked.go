package policy

import (
	"iter"
	"reflect"
	"slices"
	"strings"
)

// locks reports whether sessions cannot set the field of a path.
func (p *Policy) locks(path string) bool {
	return slices.ContainsFunc(p.Locked, func(l string) bool { return covers(l, path) })
}

// covers reports whether a path names a field, or a group that contains it.
func covers(path, field string) bool {
	return path == field || strings.HasPrefix(field, path) && field[len(path)] == '.'
}

// restore returns p with the locked fields of the policy by, and the paths of those that differed. Sessions
// never set the list of locked fields.
func (p Policy) restore(by *Policy) (_ Policy, ignored []string) {
	locked := !slices.Equal(p.Locked, by.Locked)
	p.Locked = by.Locked
	if len(by.Locked) > 0 {
		eachField(&p, by, func(path string, field, old reflect.Value) {
			if by.locks(path) && !reflect.DeepEqual(field.Interface(), old.Interface()) {
				ignored = append(ignored, path)
				field.Set(old)
			}
		})
	}
	if locked {
		ignored = append(ignored, "locked")
	}
	return p, ignored
}

// Differences lists the paths of the fields in which two policies differ.
func (p *Policy) Differences(q *Policy) (out []string) {
	eachField(p, q, func(path string, a, b reflect.Value) {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			out = append(out, path)
		}
	})
	return out
}

// valid is Validate without the check of locked fields.
func (p Policy) valid() bool {
	p.Locked = nil
	return p.Validate() == nil
}

// Values yields the fields of a policy, except locked, in their order, each with its path.
func (p *Policy) Values() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		more := true
		eachField(p, p, func(path string, field, _ reflect.Value) { more = more && yield(path, field.Interface()) })
	}
}

// allFields are the paths of all fields except locked, in their order.
var allFields = listFields()

func listFields() (out []string) {
	eachField(&Policy{}, &Policy{}, func(path string, _, _ reflect.Value) { out = append(out, path) })
	return out
}

// Fields lists the paths of the fields that a path covers: the field itself, or those of a group; none for
// any other path.
func Fields(path string) (out []string) {
	for _, field := range allFields {
		if covers(path, field) {
			out = append(out, field)
		}
	}
	return out
}

// eachField visits the fields of two policies, except locked.
func eachField(p, q *Policy, visit func(path string, a, b reflect.Value)) {
	var walk func(path string, a, b reflect.Value)
	walk = func(path string, a, b reflect.Value) {
		if a.Kind() != reflect.Struct {
			visit(path, a, b)
			return
		}
		for i := range a.NumField() {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			if name = strings.TrimPrefix(path+"."+name, "."); name != "locked" {
				walk(name, a.Field(i), b.Field(i))
			}
		}
	}
	walk("", reflect.ValueOf(p).Elem(), reflect.ValueOf(q).Elem())
}
