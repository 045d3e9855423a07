package policyfile

import (
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/models"
)

// file is the content of a file, section by section.
type file struct {
	reader  reader
	worker  part
	tenants []entry

	windows      measure.Windows
	windowPlaces map[string]place
}

// split reads the sections; all other keys are of the worker's policy.
func (f *file) split(all []entry) {
	var worker []entry
	for _, e := range all {
		switch e.key {
		case "windows":
			f.readWindows(f.reader.entries(e.value, "windows"))
		case "tenants":
			f.tenants = f.reader.entries(e.value, "tenants")
		default:
			worker = append(worker, e)
		}
	}
	f.worker = f.reader.part(worker)
}

// part is what a file states of one policy.
type part struct {
	object
	preset string // "" for none
	locked locks  // nil for none
}

func (r *reader) part(all []entry) (p part) {
	var fields []entry
	for _, e := range all {
		switch e.key {
		case "preset":
			p.preset = r.presetName(e)
		case lockedKey:
			p.locked = r.readLocks(e)
		default:
			fields = append(fields, e)
		}
	}
	p.object = r.policy(fields)
	return p
}

// presetName reads the name of a preset, "" if it is not one.
func (r *reader) presetName(e entry) string {
	name := e.value.GetToken().Value
	if _, ok := policy.Preset(name); ok {
		return name
	}
	r.problems.add(e.at, "%spreset %q must be one of %s", r.prefix, name, strings.Join(policy.PresetNames(), ", "))
	return ""
}

// readWindows reads provider, model, tokens.
func (f *file) readWindows(providers []entry) {
	f.windows, f.windowPlaces = measure.Windows{}, map[string]place{}
	seen := map[string]string{}
	for _, p := range providers {
		if other, ok := seen[models.Provider(p.key)]; ok {
			f.reader.problems.add(p.at, "windows.%s is the provider %s again; put them together", p.key, other)
			continue
		}
		seen[models.Provider(p.key)] = p.key
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
	p := r.part(fields)
	if p.preset != "" {
		l, _ = preset(p.preset)
		l.locks, reported = s.worker.locks, nil
	}
	l.lay(p.object, r.problems)
	if p.locked != nil {
		l.locks = p.locked
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
