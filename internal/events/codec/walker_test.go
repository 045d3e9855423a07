package codec

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// The walker finds in any JSON the same as the library, down to the last
// value; other bytes make it neither panic nor run on.
func FuzzWalk(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "v1", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{
		`{}`, `[]`, `""`, `-0.1e+5`, ` [ ] `, `{"a":[1,2],"a":{"\u0062":null}}`, `["\\","\\\"",",]}"]`,
		`["\ud83d\ude00 \ud83d\u0041\uDE00 \b\f\n\r\t\/\\\"é\u00e9", "\ud83d\\", "a\ud83d\ud83d\ude00"]`, "[\"\xff\",\t-1 ,true,{ } ]",
		`{`, `[1,`, `{"a"`, `{"a":`, `"\"`, `[}`, `{"a":1]`, "{}\x00", `tru`, `[1 2]`, `{"a":["`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if Check(data) != nil {
			_, _ = ReadObject(data)
			_, _ = ReadArray(data)
			return
		}
		sameValues(t, bytes.TrimSpace(data))
	})
}

// sameValues compares the values of an object or array with the library's.
func sameValues(t *testing.T, raw Raw) {
	kind := raw.Kind()
	if kind == '"' {
		want, _ := jsontext.AppendUnquote(nil, raw)
		if got, ok := Text(raw); !ok || got != string(want) {
			t.Fatalf("%s: text is %q, want %q", raw, got, want)
		}
	}
	if kind != '{' && kind != '[' {
		return
	}
	var names []string
	var want, got []Raw
	d := jsontext.NewDecoder(bytes.NewReader(raw), lenient)
	next := func() Raw {
		v, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		return v.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		if kind == '{' {
			name, _ := jsontext.AppendUnquote(nil, next())
			names = append(names, string(name))
		}
		want = append(want, next())
	}
	if kind == '[' {
		got, _ = ReadArray(raw)
	} else {
		ms, _ := ReadObject(raw)
		for i, m := range ms {
			if got = append(got, m.Value); i < len(names) && m.Name != names[i] {
				t.Fatalf("%s: name %d is %q, want %q", raw, i, m.Name, names[i])
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", raw, len(got), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(string(want[i]), string(got[i])); diff != "" {
			t.Fatalf("%s: %s", raw, diff)
		}
		sameValues(t, got[i])
	}
}
