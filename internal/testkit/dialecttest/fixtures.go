package dialecttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// Fixtures are conversations as each dialect or library has them, by the name of its file in
// internal/events/dialect/testdata/dialects.
func Fixtures(t testing.TB) map[string][]codec.Raw {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "..", "..", "events", "dialect", "testdata", "dialects", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	out := map[string][]codec.Raw{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if codec.Check(data) != nil {
			t.Fatalf("%s is not JSON", file)
		}
		msgs, err := codec.ReadArray(data)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = msgs
	}
	return out
}

// Gists are the parts of a message, each in a line.
func Gists(m dialect.Message) (out []string) {
	out = append(out, string(m.Role))
	kinds := []string{"text", "call", "result", "thinking", "image", "other"}
	for _, p := range m.Parts {
		s := kinds[p.Kind]
		if p.Tool != "" {
			s += " " + p.Tool
		}
		if p.CallID != "" {
			s += " id=" + p.CallID
		}
		if p.Args != nil {
			var b bytes.Buffer
			b.Write(p.Args)
			s += " args=" + b.String()
		}
		if p.Text != "" {
			s += fmt.Sprintf(" %q", p.Text)
		}
		if p.Images > 0 {
			s += fmt.Sprintf(" images=%d", p.Images)
		}
		if p.Failed {
			s += " failed"
		}
		if p.Locked {
			s += " locked"
		}
		out = append(out, s)
	}
	return out
}
