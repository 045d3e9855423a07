package policyfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
)

// maxFile bounds a file, in bytes.
const maxFile = 1 << 20

// Options is what an operator requests.
type Options struct {
	// Policy is the name of a preset, or of a file. Default the preset default.
	Policy string
	// Set holds fields of the policy as PATH=VALUE, the value in YAML.
	Set []string
	// Threshold is the trigger as a share of the available input; target and preparation are adjusted to it.
	// "" keeps that of the policy.
	Threshold string
	// Disable switches automatic compaction off.
	Disable bool
	// Lock holds paths of fields, or of groups of them, that sessions cannot set,
	// beside those that the file locks. Fields that the options above set are locked
	// too.
	Lock []string
	// Unlock holds paths that sessions can set all the same.
	Unlock []string
}

// Settings is the result.
type Settings struct {
	// Config decides about sessions.
	Config *compaction.Config

	worker       layers
	flags        flagLocks
	tenants      map[string]layers
	windows      measure.Windows // in place of the table's
	windowPlaces map[string]place
}

// Load reads the file, if one is named, and puts everything together. Wrong
// contents are an [*Error].
func Load(o Options) (*Settings, error) {
	name := cmp.Or(o.Policy, "default")
	if base, ok := preset(name); ok {
		return build(nil, base, o)
	}
	data, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is neither a file nor a preset; the presets are %s", name, strings.Join(policy.PresetNames(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	return parse(name, data, o)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return data, err
}

// parse puts a file and the options together.
func parse(name string, data []byte, o Options) (*Settings, error) {
	base, _ := preset("default")
	f := &file{reader: reader{source: name, problems: &problems{}}}
	if body := f.reader.document(data); body != nil {
		f.split(f.reader.entries(body, "the file"))
	}
	if f.worker.preset != "" {
		base, _ = preset(f.worker.preset)
	}
	return build(f, base, o)
}

// Set returns a policy with fields set as by --set, which sessions cannot set then. Wrong fields
// are an [*Error].
func Set(p policy.Policy, fields []string) (policy.Policy, error) {
	found := &problems{}
	l := layers{policy: p, places: map[string]place{}, locks: locks{}}
	for _, path := range p.Locked {
		l.locks.add(path, place{}, "", found)
	}
	l.flags(Options{Set: fields}, found)
	l.lock(flagLocks{lock: l.set})
	l.validate("", nil, found)
	return l.policy, found.err()
}

// build lays the file's values and the options over a preset.
func build(f *file, worker layers, o Options) (*Settings, error) {
	found := &problems{}
	s := &Settings{tenants: map[string]layers{}}
	if f != nil {
		found = f.reader.problems
		worker.lay(f.worker.object, found)
		worker.locks = f.worker.locked
	}
	worker.flags(o, found)
	s.flags = o.locks(worker.set, found)
	worker.lock(s.flags)
	worker.validate("", nil, found)
	s.worker = worker
	if f != nil {
		f.readTenants(s)
		s.windows, s.windowPlaces = f.windows, f.windowPlaces
	}
	table, err := measure.CustomOf(s.worker.policy.Profile).Windows().With(s.windows)
	for _, err := range all(err) {
		found.add(placeOf(err.Error(), s.windowPlaces), "%s", err)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	c, err := compaction.NewConfig(s.worker.policy, table)
	if err != nil {
		return nil, err
	}
	s.Config, err = s.config(c)
	return s, err
}

// config is a config with the policies of the tenants.
func (s *Settings) config(c *compaction.Config) (*compaction.Config, error) {
	if len(s.tenants) == 0 {
		return c, nil
	}
	tenants := map[string]policy.Policy{}
	for name, l := range s.tenants {
		tenants[name] = l.policy
	}
	return c.WithTenants(tenants)
}

// WithTenants returns the settings with policies that were written elsewhere, each like that of one tenant in a file,
// in whose place it is. Wrong ones are left out, each with its [*Error].
func (s *Settings) WithTenants(texts map[string][]byte) (*Settings, map[string]error, error) {
	out, wrong := *s, map[string]error{}
	out.tenants = maps.Clone(s.tenants)
	for name, text := range texts {
		r := reader{source: "policy of " + name, problems: &problems{}}
		var fields []entry
		if body := r.document(text); body != nil {
			fields = r.entries(body, "the policy")
		}
		l := s.tenant(r, fields)
		if err := r.problems.err(); err != nil {
			wrong[name] = err
			continue
		}
		out.tenants[name] = l
	}
	var err error
	out.Config, err = out.config(s.Config)
	return &out, wrong, err
}
