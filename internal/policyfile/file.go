package policyfile

import (
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// file is the content of a file, section by section.
type file struct {
	reader  reader
	preset  string
	worker  object
	locked  locks
	tenants []entry

	windows      measure.Windows
	windowPlaces map[string]place
}

// split reads the sections; all other keys are fields of the worker's policy.
func (f *file) split(all []entry) {
	var fields []entry
	for _, e := range all {
		switch e.key {
		case "preset":
			f.preset = f.reader.presetName(e, "")
		case "windows":
			f.readWindows(f.reader.entries(e.value, "windows"))
		case "tenants":
			f.tenants = f.reader.entries(e.value, "tenants")
		case lockedKey:
			f.locked = f.reader.readLocks(e)
		default:
			fields = append(fields, e)
		}
	}
	f.worker = f.reader.policy(fields)
}

// presetName reads the name of a preset, "" if it is not one.
func (r *reader) presetName(e entry, prefix string) string {
	name := e.value.GetToken().Value
	if _, ok := policy.Preset(name); ok {
		return name
	}
	r.problems.add(e.at, "%spreset %q must be one of %s", prefix, name, strings.Join(policy.PresetNames(), ", "))
	return ""
}

// readWindows reads provider, model, tokens.
func (f *file) readWindows(providers []entry) {
	f.windows, f.windowPlaces = measure.Windows{}, map[string]place{}
	seen := map[string]string{}
	for _, p := range providers {
		if other, ok := seen[measure.Provider(p.key)]; ok {
			f.reader.problems.add(p.at, "windows.%s is the provider %s again; put them together", p.key, other)
			continue
		}
		seen[measure.Provider(p.key)] = p.key
		path := "windows." + p.key
		models := map[string]measure.Tokens{}
		for _, m := range f.reader.entries(p.value, path) {
			n, ok := integer(m.value)
			if !ok || m.key == "" {
				f.reader.problems.add(m.at, "%s.%s must be a whole number of tokens", path, m.key)
				continue
			}
			models[m.key] = measure.Tokens(n)
			f.windowPlaces[path+"."+m.key] = m.at
		}
		f.windows[p.key] = models
	}
}

// readTenants reads the policies of tenants.
func (f *file) readTenants(s *Settings) {
	for _, t := range f.tenants {
		r := f.reader
		r.prefix = "tenants." + t.key + "."
		if !events.ValidID(t.key) {
			r.problems.add(t.at, "tenants.%s is no tenant: a name is 1 to 64 of A-Z a-z 0-9 _ -", t.key)
			continue
		}
		s.tenants[t.key] = s.tenant(r, r.entries(t.value, "tenants."+t.key))
	}
}

// tenant reads the policy of a tenant, over the worker's or over a preset of its own. Its locks replace the
// worker's, except those of the command line.
func (s *Settings) tenant(r reader, fields []entry) layers {
	l, reported := s.worker.clone(), all(s.worker.policy.Validate())
	if i := slices.IndexFunc(fields, func(e entry) bool { return e.key == "preset" }); i >= 0 {
		if name := r.presetName(fields[i], r.prefix); name != "" {
			l, _ = preset(name)
			l.locks, reported = s.worker.locks, nil
		}
		fields = slices.Delete(fields, i, i+1)
	}
	fields, locked := r.takeLocks(fields)
	l.lay(r.policy(fields), r.problems)
	if locked != nil {
		l.locks = locked
	}
	l.lock(s.flags)
	l.validate(r.prefix, reported, r.problems)
	return l
}

// placeOf finds the place of the path that begins a text.
func placeOf(text string, places map[string]place) place {
	for path, p := range places {
		if strings.HasPrefix(text, path+" ") {
			return p
		}
	}
	return place{}
}
