package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"compactd/internal/compaction/measure"
)

// E7: one command refreshes windows and prices. An entry by hand goes before, and one that a shorter
// name implies is left out.
func TestRefresh(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	old := `{"sources":[{"name":"models.dev","date":"2026-01-01","windows":{"":{"gone":1000}},"prices":{"gone":null}},
		{"name":"by hand","date":"2026-02-02","windows":{"":{"claude-opus-4":200000}},"prices":{"gpt-9":{"input":7,"cached":1,"write":7,"output":9}}}]}`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	text := `"limit":{"context":200000,"output":1},"modalities":{"output":["text"]}`
	provider := map[string]json.RawMessage{}
	for name := range open {
		provider[name] = json.RawMessage(`{"models":{"x-` + name + `":{` + text + `}}}`)
	}
	provider["google"] = json.RawMessage(`{"models":{"gemma-4":{"open_weights":true,` + text + `},"gemini-embed":{` + text + `}}}`)
	provider["xai"] = json.RawMessage(`{"models":{"grok-9":{` + text + `,"cost":{"input":0.0028,"output":0.01}}}}`)
	provider["anthropic"] = json.RawMessage(`{"models":{"claude-opus-4-2":{` + text + `,"cost":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75,
		"tiers":[{"tier":{"size":200000},"input":6,"output":22.5,"cache_read":0.6,"cache_write":7.5}]}},
		"claude-opus-4-2-20260101":{` + text + `,"cost":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75,
		"tiers":[{"tier":{"size":200000},"input":6,"output":22.5,"cache_read":0.6,"cache_write":7.5}]}},
		"claude-opus-4-2-picture":{"limit":{"context":1},"modalities":{"output":["text","image"]},"cost":{"input":3,"output":15}}}}`)
	provider["openai"] = json.RawMessage(`{"models":{"gpt-9":{` + text + `,"cost":{"input":1,"output":2}}}}`)
	provider["openrouter"] = json.RawMessage(`{"models":{"openai/gpt-9":{` + text + `},"qwen/qwen9":{` + text + `},"other/model":{` + text + `}}}`)
	body, err := json.Marshal(provider)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer server.Close()
	if err := run(t.Context(), root, server.URL, "2026-03-03"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c measure.Catalog
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Sources) != 2 || c.Sources[0].Date != "2026-03-03" || c.Sources[1].Date != "2026-02-02" {
		t.Fatalf("sources %+v", c.Sources)
	}
	got, err := json.Marshal(c.Sources[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"models.dev","date":"2026-03-03","windows":{"":{"claude-opus-4-2-picture":1,"gpt-9":200000,"grok-9":200000},` +
		`"cohere":{"x-cohere":200000},"deepseek":{"x-deepseek":200000},"google-ai":{"gemma-4":200000},"minimax":{"x-minimax":200000},` +
		`"mistral":{"x-mistral":200000},"moonshot":{"x-moonshotai":200000},"openrouter":{"qwen/qwen9":200000},"qwen":{"x-alibaba":200000},"zhipu":{"x-zai":200000}},` +
		`"prices":{"claude-opus-4-2":{"input":3000,"cached":300,"write":3750,"output":15000,"long":{"over":200000,"input":6000,"cached":600,"write":7500,"output":22500}},` +
		`"claude-opus-4-2-picture":null,"grok-9":{"input":3,"cached":3,"write":3,"output":10}}}`
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if w, _ := json.Marshal(wanted); string(canonical(t, got)) != string(w) {
		t.Errorf("got  %s\nwant %s", canonical(t, got), w)
	}
	again := data
	if err := run(t.Context(), root, server.URL, "2026-03-03"); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(path); err != nil || string(data) != string(again) {
		t.Errorf("a second refresh changes the file: %v", err)
	}
	if err := run(t.Context(), root, server.URL+"/nothing\x7f", ""); err == nil {
		t.Error("a bad URL is no error")
	}
}

// canonical is JSON with its names in order.
func canonical(t *testing.T, data []byte) []byte {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
