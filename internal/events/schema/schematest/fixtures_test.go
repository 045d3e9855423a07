package schematest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
)

var fixtures = filepath.Join("..", "..", "..", "..", "docs", "format", "fixtures")

// There is a fixture of every payload, and each stands for ever: it is valid, its
// decoder takes it, its struct has a place for everything in it, and gives it back.
func TestFixtures(t *testing.T) {
	missing := map[string]bool{}
	for _, p := range schematest.Payloads() {
		missing[p.Name] = true
	}
	for _, file := range files(t, fixtures) {
		data, err := os.ReadFile(filepath.Join(fixtures, file))
		if err != nil {
			t.Fatal(err)
		}
		p, ok := payloadOf(strings.TrimSuffix(file, ".json"))
		if !ok {
			t.Errorf("%s is a fixture of no payload", file)
			continue
		}
		delete(missing, p.Name)
		if err := schematest.Validate(p.Name, data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if p.In {
			if err := p.Decode(data); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		v := reflect.New(p.Type).Interface()
		if err := codec.UnmarshalStrict(data, v); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again, err := codec.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(value(t, data), value(t, again)); diff != "" {
			t.Errorf("%s (-fixture +written again):\n%s", file, diff)
		}
	}
	for name := range missing {
		t.Errorf("there is no fixture %s.json", name)
	}
}

// payloadOf is the payload of a fixture, whose name may go on behind that of the
// payload.
func payloadOf(name string) (schematest.Payload, bool) {
	for {
		if p, ok := schematest.Find(name); ok {
			return p, true
		}
		cut := strings.LastIndexByte(name, '-')
		if cut < 0 {
			return schematest.Payload{}, false
		}
		name = name[:cut]
	}
}

func value(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
