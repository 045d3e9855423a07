package schematest_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/schema/schematest"
)

var update = flag.Bool("update", false, "write internal/events/schema/payloads")

var schemas = filepath.Join("..", "payloads")

// The schemas in internal/events/schema/payloads are those of the structs, and there are no
// others. With -update they are written again.
func TestSchemas(t *testing.T) {
	all, err := schematest.All(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for name, s := range all {
		want = append(want, name+".json")
		data, err := schematest.Text(s)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(schemas, name+".json")
		if *update {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if old, err := os.ReadFile(file); err != nil || !bytes.Equal(old, data) {
			t.Errorf("%s is not what the struct states: go test ./internal/events/schema/schematest -run TestSchemas -update; %v %s", file, err, cmp.Diff(string(old), string(data)))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, files(t, schemas)); diff != "" {
		t.Errorf("files in %s (-want +there):\n%s", schemas, diff)
	}
}

// files lists the JSON files of a directory.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if strings.HasSuffix(f.Name(), ".json") {
			out = append(out, f.Name())
		}
	}
	return out
}
