package fakemodel

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var calls = map[string]string{
	"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"Hello"}]}`,
	"/v1/responses":        `{"model":"m","instructions":"Be brief.","input":"Hello"}`,
	"/v1/messages":         `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"Hello"}]}`,
}

// post returns the body of an answer.
func post(t *testing.T, m *Model, path, body string) (status int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	data, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(data)
}

func newModel() *Model {
	return &Model{Window: 1000, Output: 100, Answer: func(*Call) Answer {
		return Answer{Text: "Hi there.", Uses: []Use{{"call_1", "read_file", `{"path":"a"}`}}}
	}}
}

// Each API answers as a whole and as a stream of JSON, with the text, the call of the tool and the
// usage. The SDKs of providers read both in examples/agents.
func TestAnswers(t *testing.T) {
	for path, body := range calls {
		for _, body := range []string{body, strings.Replace(body, "{", `{"stream":true,`, 1)} {
			status, text := post(t, newModel(), path, body)
			if status != http.StatusOK || !strings.Contains(text, "there.") || !strings.Contains(text, "read_file") || !strings.Contains(text, "usage") {
				t.Errorf("%s: %d %s", path, status, text)
			}
			for line := range strings.Lines(text) {
				data, _ := strings.CutPrefix(line, "data: ")
				if data = strings.TrimSpace(data); strings.HasPrefix(data, "{") && !json.Valid([]byte(data)) {
					t.Errorf("%s: no JSON: %s", path, data)
				}
			}
		}
	}
}

// Agents list the models before they call one.
func TestModels(t *testing.T) {
	w := httptest.NewRecorder()
	newModel().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/models", http.NoBody))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":"fake"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A request that is too long, not valid, no JSON or no call of a model is refused, in this order of causes:
// a history that is not valid has no length.
func TestRefusals(t *testing.T) {
	var seen bytes.Buffer
	m := newModel()
	m.OnCall = func(c *Call) { seen.WriteString(strings.Join(c.Refused, ";")) }
	for path, body := range calls {
		if status, text := post(t, m, path, strings.Replace(body, "Hello", strings.Repeat("Hello", 1000), 1)); status != http.StatusBadRequest || !strings.Contains(text, "maximum") {
			t.Errorf("%s: %d %s", path, status, text)
		}
		if status, _ := post(t, m, path, "{"); status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, status)
		}
	}
	if seen.Len() > 0 {
		t.Errorf("refused: %s", &seen)
	}
	if status, _ := post(t, m, "/v1/chat/completions", `{"messages":[{"role":"tool","tool_call_id":"x","content":"y"}]}`); status != http.StatusBadRequest || seen.Len() == 0 {
		t.Errorf("%d %s", status, &seen)
	}
	if status, _ := post(t, m, "/v1/embeddings", ""); status != http.StatusNotFound {
		t.Error(status)
	}
}
