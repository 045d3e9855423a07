package policyfile

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events/codec"
)

// Report is the effective policy of a tenant, or of the worker.
type Report struct {
	Config  string          `json:"config"` // hash
	Tenant  string          `json:"tenant,omitzero"`
	Policy  policy.Policy   `json:"policy"`
	Windows measure.Windows `json:"windows,omitzero"` // in place of the table's
	// Sources has the origin of each value, by its path.
	Sources map[string]string `json:"sources"`
	// Locks has the place of the lock for each field that sessions cannot set.
	Locks map[string]string `json:"locks"`
	// Tenants lists those that have a policy of their own.
	Tenants []string `json:"tenants,omitzero"`
}

// Report describes the policy of a tenant; "" is the worker's, which a tenant
// without its own has too.
func (s *Settings) Report(tenant string) *Report {
	l := s.of(tenant)
	r := &Report{
		Config: s.Config.Hash(), Tenant: tenant, Policy: l.policy, Windows: s.windows,
		Sources: map[string]string{}, Locks: map[string]string{}, Tenants: slices.Sorted(maps.Keys(s.tenants)),
	}
	for path, p := range l.places {
		r.Sources[path] = p.String()
	}
	for path, p := range l.locks {
		r.Locks[path] = p.String()
	}
	for path, p := range s.windowPlaces {
		r.Sources[path] = p.String()
	}
	return r
}

// of is the policy of a tenant.
func (s *Settings) of(tenant string) layers {
	if l, ok := s.tenants[tenant]; ok {
		return l
	}
	return s.worker
}

// Write prints the policy of a tenant as a file with the same meaning, with a note of the source of each
// value.
func (s *Settings) Write(w io.Writer, tenant string) error {
	r := s.Report(tenant)
	p := &printer{}
	p.note("config %s", r.Config)
	if tenant != "" {
		p.note("the policy of tenant %s, unless policy set changed it", tenant)
	} else if len(r.Tenants) > 0 {
		p.note("tenants with a policy of their own: %s", strings.Join(r.Tenants, ", "))
	}
	var open []string
	l := s.of(tenant)
	for path, value := range r.Policy.Values() {
		keys := strings.Split(path, ".")
		open = p.enter(open, keys)
		p.value(len(keys)-1, keys[len(keys)-1], value, r.Sources[path]+l.lockNote(path))
	}
	if len(r.Policy.Locked) > 0 {
		p.value(0, lockedKey, r.Policy.Locked, "")
	}
	if len(r.Windows) > 0 {
		p.line(0, "windows:", "")
	}
	for _, provider := range slices.Sorted(maps.Keys(r.Windows)) {
		p.line(1, text(provider)+":", "")
		for _, model := range slices.Sorted(maps.Keys(r.Windows[provider])) {
			p.value(2, text(model), r.Windows[provider][model], r.Sources["windows."+provider+"."+model])
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// printer aligns the notes behind the lines.
type printer struct{ lines, notes []string }

func (p *printer) note(format string, args ...any) {
	p.line(0, "# "+fmt.Sprintf(format, args...), "")
}

func (p *printer) line(depth int, s, note string) {
	p.lines = append(p.lines, strings.Repeat("  ", depth)+s)
	p.notes = append(p.notes, note)
}

func (p *printer) value(depth int, key string, v any, note string) {
	p.line(depth, key+": "+text(v), note)
}

// enter opens the mappings around a value that are not open yet.
func (p *printer) enter(open, keys []string) []string {
	around := keys[:len(keys)-1]
	for i, key := range around {
		if i >= len(open) || open[i] != key {
			p.line(i, key+":", "")
			open = nil
		}
	}
	return around
}

// text is a value in JSON, which is YAML too.
func text(v any) string {
	raw, err := codec.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v))
	}
	return string(raw)
}

func (p *printer) String() string {
	width := 0
	for i, l := range p.lines {
		if p.notes[i] != "" {
			width = max(width, utf8.RuneCountInString(l))
		}
	}
	var b strings.Builder
	for i, l := range p.lines {
		b.WriteString(l)
		if n := p.notes[i]; n != "" {
			b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(l)+2) + "# " + n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
