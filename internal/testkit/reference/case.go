package reference

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/vectors
var recorded embed.FS

// file holds recorded answers of one function of the reference system.
type file struct {
	Function string  `json:"function"`
	Cases    []*Case `json:"cases"`
}

// Case is one call of a function of the reference system with its recorded answer.
type Case struct {
	Name  string          `json:"name"`
	Tags  []string        `json:"tags"`
	Input json.RawMessage `json:"input"`
	Want  json.RawMessage `json:"want"`

	Function string   `json:"-"`
	Release  *Release `json:"-"`

	answer func(*Case) any
}

// NewCase is a case of the current release that was not recorded.
func NewCase(function string, input, want any) *Case {
	return &Case{Name: "variant", Function: function, Input: encoded(input), Want: encoded(want), Release: Current}
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Into decodes the input of the case.
func (c *Case) Into(v any) {
	if err := json.Unmarshal(c.Input, v); err != nil {
		panic(err)
	}
}

// Excused reports whether the record itself shows that its answer need not be ours:
// a defect, a result over its target, or bytes that no Go string holds.
func (c *Case) Excused() bool {
	return slices.ContainsFunc(c.Tags, func(t string) bool {
		return t == "peer-bug" || t == "over-target" || t == "lone-surrogate" || t == "utf8-split"
	})
}

// wanted is the recorded answer, with the messages that it refers to in place.
func (c *Case) wanted() any {
	want := Parsed(c.Want)
	fields, ok := want.(map[string]any)
	if !ok || fields["messages"] == nil {
		return want
	}
	input := Parsed(c.Input).(map[string]any)["messages"].([]any)
	messages := fields["messages"].([]any)
	for i, m := range messages {
		if ref, ok := m.(map[string]any)["ref"]; ok {
			messages[i] = input[int(ref.(float64))]
		}
	}
	return want
}

// Cases reads the records of some functions; those under legacy-v9.5.3 are of the release
// that the reference documents.
func Cases(t *testing.T, functions ...string) (out []*Case) {
	t.Helper()
	from, _ := records()
	err := fs.WalkDir(from, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".json.gz") {
			return err
		}
		f, err := readFile(from, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !slices.Contains(functions, f.Function) {
			return nil
		}
		of := Current
		if path.Base(path.Dir(name)) == "legacy-v9.5.3" {
			of = Seed
		}
		for _, c := range f.Cases {
			c.Function, c.Release = f.Function, of
		}
		out = append(out, f.Cases...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// records are those of COMPACTD_VECTORS, or our own.
func records() (from fs.FS, own bool) {
	if directory := os.Getenv("COMPACTD_VECTORS"); directory != "" {
		return os.DirFS(directory), false
	}
	from, err := fs.Sub(recorded, "testdata/vectors")
	if err != nil {
		panic(err)
	}
	return from, true
}

func readFile(from fs.FS, name string) (*file, error) {
	in, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	f := &file{}
	return f, json.NewDecoder(text).Decode(f)
}
