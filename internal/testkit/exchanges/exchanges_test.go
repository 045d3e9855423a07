package exchanges

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
)

const dir = "../../../clients/conformance"

// Each file can be read, and what it sends to the worker and from it is JSON.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		s, err := read(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, step := range s.steps {
			for _, e := range step.events {
				object := e.name == "sync" || e.name == "answer" && e.text[0] == '{'
				if object && !json.Valid([]byte(e.text)) {
					t.Errorf("%s: %s is not JSON", file, e)
				}
			}
		}
	}
}

// Without an adapter a request that none may change passes.
func TestRun(t *testing.T) {
	s, err := read(filepath.Join(dir, "exchanges", "passes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	newPlayer(t, s, func(Setup) actor { return wire{http.DefaultTransport} }).run(s)
}
