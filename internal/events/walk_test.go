package events

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// What the walker finds in any JSON is what the library finds, down to the last
// value; and what is no JSON makes it neither panic nor run on.
func FuzzWalk(f *testing.F) {
	for _, data := range fixtures(f) {
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
		if check(data) != nil {
			_, _ = members(data)
			_, _ = elements(data)
			for _, format := range []Format{OpenAI, Anthropic, NeuroLink} {
				_, _ = format.read(walker{raw: data})
			}
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
		if got, ok := unquote(raw); !ok || got != string(want) {
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
		got, _ = elements(raw)
	} else {
		ms, _ := members(raw)
		for i, m := range ms {
			if got = append(got, m.value); i < len(names) && m.name != names[i] {
				t.Fatalf("%s: name %d is %q, want %q", raw, i, m.name, names[i])
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
