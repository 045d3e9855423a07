package worker_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"compactd/internal/events"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/service"
)

var update = flag.Bool("update", false, "write internal/events/schema/openapi.json and openapi-agents.json")

// statusesOf lists the statuses of refusals of an operation.
func statusesOf(name string) []int {
	all := []int{400, 401, 403, 405, 500, 503}
	switch name {
	case "context", "outcome", "recall":
		all = append(all, 404, 410)
	case "changes", "xray":
		all = append(all, 404, 410)
	case "attach", "check":
		all = append(all, 409, 413)
	case "preview", "whatif":
		all = append(all, 413)
	}
	if name == "sync" {
		all = append(all, 404, 409, 410, 413)
	}
	if slices.Contains([]string{"context", "stats", "check", "outcome"}, name) {
		all = append(all, 504)
	}
	return all
}

// listeners are that of operators and that of agents, and the files of their documents.
func listeners() map[string]schematest.Listener {
	ours, agent := schematest.Listener{URL: "http://127.0.0.1:8223", Title: "compactd for operators"}, schematest.Listener{URL: "http://127.0.0.1:8224", Title: "compactd for agents", Agents: true}
	for _, o := range service.Operations() {
		op := schematest.Operation{
			Method: o.Method, Path: o.Path, Name: o.Name, InPath: o.PathParams(), InQuery: map[string]string{}, Body: o.Body,
			Request: o.Request(), Responses: o.Responses, Refusals: statusesOf(o.Name),
		}
		for _, p := range o.Query {
			op.InQuery[p.Name] = ""
			if p.Place {
				op.InQuery[p.Name] = `^[0-9]+\.[0-9]+$`
			}
		}
		agent.Operations = append(agent.Operations, op)
		if o.Name != "sync" {
			ours.Operations = append(ours.Operations, op)
		}
	}
	ours.Verbs = map[string]events.Kind{"compact": events.KindCompact, "rewind": events.KindRewind, "end": events.KindEnd}
	agent.Verbs = map[string]events.Kind{"turns": events.KindTurn, "overflow": events.KindOverflow, "forget": events.KindForget}
	maps.Copy(agent.Verbs, ours.Verbs)
	return map[string]schematest.Listener{"openapi.json": ours, "openapi-agents.json": agent}
}

// The documents in internal/events/schema are generated from the operations and the schemas, and each
// listener serves its own unchanged. With -update they are written again.
func TestOpenAPI(t *testing.T) {
	all, err := schematest.All(filepath.Join("..", "events"))
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range listeners() {
		doc, err := l.OpenAPI(all)
		if err != nil {
			t.Fatal(err)
		}
		data, err := schematest.Text(doc)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("..", "events", "schema", name)
		if *update {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if old, err := os.ReadFile(file); err != nil || !bytes.Equal(old, data) {
			t.Errorf("%s is out of date: go test ./internal/worker -run TestOpenAPI -update; %v %s", file, err, cmp.Diff(string(old), string(data)))
		}
		wantOpenAPI(t, data)
	}
}

// Each listener answers exactly the requests of the document that it serves, by path and method.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	e := env.StartEdge(r.Worker, nil)
	defer e.Stop()
	_, ours := workertest.Get(t, m, "/v1/openapi.json", "", "")
	_, agent := e.Do(workertest.DefaultToken, "GET", "/v1/openapi.json", "")
	for _, x := range []struct {
		name, document string
		routes         []string
	}{{"operators", ours, m.Routes().Routes()}, {"agents", agent, e.Listener.Routes().Routes()}} {
		var doc struct {
			Paths map[string]map[string]any `json:"paths"`
		}
		if err := json.Unmarshal([]byte(x.document), &doc); err != nil {
			t.Fatalf("%s: %v: %.200s", x.name, err, x.document)
		}
		var described, answered []string
		for path, methods := range doc.Paths {
			for method := range methods {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
		for _, route := range x.routes {
			if strings.Contains(route, " /v1/") && !strings.HasSuffix(route, "{$}") {
				answered = append(answered, route)
			}
		}
		slices.Sort(described)
		slices.Sort(answered)
		if diff := cmp.Diff(answered, described); diff != "" {
			t.Errorf("%s (-answered +described):\n%s", x.name, diff)
		}
	}
	if status, body := workertest.Get(t, m, "/v1/schema/check-request", "", ""); status != 200 || !json.Valid([]byte(body)) {
		t.Errorf("the worker serves %d %.200s", status, body)
	}
}

// wantOpenAPI checks a document against the meta-schema of OpenAPI 3.1, its schemas
// against that of JSON Schema, and its references.
func wantOpenAPI(t *testing.T, data []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "events", "schema", "schematest", "testdata", "openapi-3.1.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	meta := &jsonschema.Schema{}
	if err := json.Unmarshal(asJSON, meta); err != nil {
		t.Fatal(err)
	}
	resolved, err := meta.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(doc); err != nil {
		t.Errorf("not OpenAPI 3.1: %v", err)
	}
	spoiled := maps.Clone(doc)
	spoiled["pathz"] = doc["paths"]
	if resolved.Validate(spoiled) == nil {
		t.Error("the meta-schema accepts anything")
	}
	components := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(components)) {
		text, err := json.Marshal(components[name])
		if err != nil {
			t.Fatal(err)
		}
		s := &jsonschema.Schema{}
		if err = json.Unmarshal(text, s); err == nil {
			_, err = s.Resolve(nil)
		}
		if err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	for _, ref := range refs(doc) {
		name, ours := bytes.CutPrefix([]byte(ref), []byte("#/components/schemas/"))
		if !ours || components[string(name)] == nil {
			t.Errorf("the reference %s has no target", ref)
		}
	}
}

// refs lists the references of a document.
func refs(v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if s, ok := value.(string); ok && key == "$ref" {
				out = append(out, s)
			}
			out = append(out, refs(value)...)
		}
	case []any:
		for _, value := range v {
			out = append(out, refs(value)...)
		}
	}
	return out
}
