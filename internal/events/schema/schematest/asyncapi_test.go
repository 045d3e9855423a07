package schematest_test

import (
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events"
	"compactd/internal/events/schema/schematest"
)

// page is docs/format/asyncapi.yaml, as JSON has it.
func page(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "format", "asyncapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return value(t, data).(map[string]any)
}

// The page is AsyncAPI 3.0 by the meta-schema of its authors.
func TestAsyncAPIIsValid(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "asyncapi-3.0.0.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	meta := &jsonschema.Schema{}
	if err := json.NewDecoder(z).Decode(meta); err != nil {
		t.Fatal(err)
	}
	meta.Schema = "http://json-schema.org/draft-07/schema#" // they leave out the #
	s, err := meta.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	doc := page(t)
	if err := s.Validate(doc); err != nil {
		t.Error(err)
	}
	for _, spoil := range []string{"asyncapi", "info", "channelz"} {
		spoiled := maps.Clone(doc)
		spoiled[spoil] = 7
		if s.Validate(spoiled) == nil {
			t.Errorf("with %s spoiled it is valid", spoil)
		}
	}
}

// Every kind and every subject of package events has a channel, and there is no
// other; every reference leads somewhere, and every schema is used.
func TestAsyncAPIInStep(t *testing.T) {
	doc := page(t)
	var got, want []string
	for _, c := range doc["channels"].(map[string]any) {
		if address, ok := c.(map[string]any)["address"].(string); ok {
			got = append(got, address)
		}
	}
	for _, k := range slices.Concat(events.LogKinds, events.OutcomeKinds, []events.Kind{events.KindErased}) {
		want = append(want, events.Published(k, events.Address{Tenant: "{tenant}", Session: "{session}"}))
	}
	want = append(want, "out.{partition}.job.{lane}.{tenant}.{session}")
	for _, subject := range subjects(t) {
		want = append(want, subject)
		if !slices.Contains([]string{events.SubjectHealth, events.SubjectFleet, events.SubjectTenants, events.SubjectPolicies, events.SubjectPolicy}, subject) {
			want = append(want, events.OfTenant(subject, "{tenant}"))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("channels (-events +page):\n%s", diff)
	}
	unused := map[string]bool{}
	for _, p := range schematest.Payloads() {
		switch name, _, _ := strings.Cut(p.Name, "-"); name {
		case "event", "compress", "usage", "retrieve", "timeline", "changes", "xray", "preview", "whatif", "token": // over HTTP only
			continue
		}
		unused["../../internal/events/schema/payloads/"+p.Name+".json"] = true
	}
	known := maps.Clone(unused)
	for _, ref := range refs(doc) {
		delete(unused, ref)
		if inner, ok := strings.CutPrefix(ref, "#/"); (!ok || !leads(doc, inner)) && !known[ref] {
			t.Errorf("%s leads nowhere", ref)
		}
	}
	for ref := range unused {
		t.Errorf("%s is not used", ref)
	}
	lanes := doc["components"].(map[string]any)["parameters"].(map[string]any)["lane"].(map[string]any)["enum"].([]any)
	for i, lane := range events.Lanes {
		if i >= len(lanes) || lanes[i] != string(lane) {
			t.Errorf("lanes are %v", lanes)
		}
	}
}

// subjects lists the subjects of requests, as the source of package events has them.
func subjects(t *testing.T) (out []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("..", "..", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	is := regexp.MustCompile(`Subject[A-Z]\w+ += "(compactd\.\w+)"`)
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range is.FindAllSubmatch(text, -1) {
			out = append(out, string(m[1]))
		}
	}
	if len(out) < 7 {
		t.Fatalf("only %q are subjects of requests", out)
	}
	return out
}

// leads reports whether a path of keys is in a document.
func leads(doc any, path string) bool {
	for key := range strings.SplitSeq(path, "/") {
		m, ok := doc.(map[string]any)
		if !ok || m[key] == nil {
			return false
		}
		doc = m[key]
	}
	return true
}

// refs lists the references of a document.
func refs(v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v["$ref"].(string); ok {
			out = append(out, s)
		}
		for _, value := range v {
			out = append(out, refs(value)...)
		}
	case []any:
		for _, value := range v {
			out = append(out, refs(value)...)
		}
	}
	return out
}
