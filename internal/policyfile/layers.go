package policyfile

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events/codec"
)

// layers is a policy from several sources, with the place of each value.
type layers struct {
	policy policy.Policy
	places map[string]place
	locks  locks
	set    locks // fields set by the command line
}

// preset is the lowest layer.
func preset(name string) (layers, bool) {
	p, ok := policy.Preset(name)
	l := layers{policy: p, places: map[string]place{}}
	for path := range p.Values() {
		l.places[path] = place{source: "preset " + name, preset: true}
	}
	return l, ok
}

// clone returns a copy for a tenant, whose policy begins as the worker's.
func (l layers) clone() layers {
	return layers{policy: l.policy, places: maps.Clone(l.places), locks: l.locks}
}

// lay sets written fields over the present ones.
func (l *layers) lay(o object, found *problems) {
	if o.fields == nil {
		return
	}
	p, err := l.policy.Set(o.fields)
	if err != nil { // the reader accepted a value that the policy refuses
		found.add(place{}, "%s", err)
		return
	}
	l.policy = p
	maps.Copy(l.places, o.places)
}

// flags sets the fields of the command line.
func (l *layers) flags(o Options, found *problems) {
	r := reader{source: "--set", flag: true, problems: found}
	l.set = locks{}
	for _, s := range o.Set {
		x := r.setting(s)
		l.lay(x, found)
		maps.Copy(l.set, x.places)
	}
	if o.Threshold != "" {
		at := place{source: "--compact-threshold"}
		var share measure.PPM
		if err := share.UnmarshalJSON([]byte(o.Threshold)); err != nil {
			found.add(at, "%s", err)
		} else {
			l.change(at, l.policy.At(share))
			l.set["trigger_mode"], l.set["threshold"] = at, at
		}
	}
	if o.Disable {
		p := l.policy
		p.Enabled = false
		at := place{source: "--disable-compaction"}
		l.change(at, p)
		l.set["enabled"] = at
	}
}

// change takes over a policy; changed values come from the given place.
func (l *layers) change(at place, to policy.Policy) {
	for _, path := range l.policy.Differences(&to) {
		l.places[path], l.set[path] = at, at
	}
	l.policy = to
}

// setting reads PATH=VALUE.
func (r *reader) setting(s string) object {
	path, text, ok := strings.Cut(s, "=")
	if !ok {
		r.problems.add(place{source: r.source}, "%s is not of the form PATH=VALUE, such as prune.enabled=false", s)
		return object{}
	}
	body := r.document([]byte(text))
	if body == nil {
		r.problems.add(place{source: r.source}, "%s has no value", path)
		return object{}
	}
	if path == lockedKey {
		r.problems.add(place{source: r.source}, "locked is set by --lock and --unlock, or in the file")
		return object{}
	}
	keys := strings.Split(path, ".")
	t := reflect.TypeFor[policy.Policy]()
	for i, key := range keys {
		e := entry{key, r.at(body), body}
		full := strings.Join(keys[:i+1], ".")
		f, ok := fieldOf(t, key)
		if !ok {
			r.unknown(e, full, names(t))
			return object{}
		}
		t = f.Type
	}
	o := object{places: map[string]place{}}
	o.fields = r.value(entry{path, r.at(body), body}, t, path, o.places)
	for _, key := range slices.Backward(keys) {
		if o.fields != nil {
			o.fields, _ = codec.Marshal(map[string]codec.Raw{key: o.fields}) // of valid JSON
		}
	}
	return o
}

// validate notes the defects of the policy as a whole, except those already reported of another policy.
func (l *layers) validate(prefix string, reported []error, found *problems) {
	for _, err := range all(l.policy.Validate()) {
		known := slices.ContainsFunc(reported, func(e error) bool { return e.Error() == err.Error() })
		if !known {
			found.add(l.blame(err.Error()), "%s%s%s", prefix, err, l.values(err.Error()))
		}
	}
}

// values are the values of the fields that a problem names.
func (l *layers) values(problem string) string {
	values := maps.Collect(l.policy.Values())
	var out []string
	for word := range strings.FieldsSeq(problem) {
		path := strings.TrimSuffix(word, ",")
		if value, ok := values[path]; ok {
			out = append(out, path+" "+text(value))
		}
	}
	if out == nil {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// blame finds the place where a user wrote one of the fields that a problem names.
func (l *layers) blame(text string) place {
	for word := range strings.FieldsSeq(text) {
		if p, ok := l.places[word]; ok && !p.preset {
			return p
		}
	}
	return place{}
}

// all separates the errors that errors.Join joined, also in several steps.
func all(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, all(e)...)
	}
	return out
}
