package codec

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"compactd/internal/events/weigh"
)

// canonical is the form c1 of a value, made by another library: without what a dialect
// leaves out or replaces.
func canonical(v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) })
		out := []byte{'{'}
		for i, k := range keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, canonical(k)...), ':'), canonical(v[k])...)
		}
		return append(out, '}')
	case []any:
		out := []byte{'['}
		for i, x := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, canonical(x)...)
		}
		return append(out, ']')
	case string:
		out, _ := jsontext.AppendQuote(nil, v)
		return out
	case json.Number:
		return []byte(v)
	default:
		out, _ := json.Marshal(v)
		return out
	}
}

// FuzzScan: a scan takes what [Check] takes, up to the depth of an event, and writes the
// form that another library makes of it.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `""`, ` [ 1 , -0.5e+7 , true,false , null ] `, `{"b":1,"a":{"d":[],"c":{}},"b":2}`, `{"\ud83d\ude00":1,"\uffff":2,"é":3,"a":4}`,
		`["\u0041\/\n\u001f\"\\", "\ud83d", "😀\u00e9"]`, `{"a":1,}`, `[1,]`, `[1 2]`, `[01]`, `[1.]`, `[+1]`, `tru`, `{"a"}`, `{"a":}`, "[\"\x01\"]", "\"\xff\"",
		`"a" "b"`, `[`, `{"a":[`, `"\x"`, `"\u12"`, strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
		`{"m":0,"l":0,"k":0,"j":0,"i":0,"h":0,"g":0,"f":0,"e":0,"d":0,"c":0,"b":0,"a":0,"m":1}`,
	} {
		f.Add([]byte(s))
	}
	var s Scan
	f.Fuzz(func(t *testing.T, data []byte) {
		s.Reset()
		s.Write()
		w := s.Walk(data)
		raw := w.Value()
		err := w.End()
		if want := Check(data) == nil && !TooDeep(data); (err == nil) != want {
			t.Fatalf("%q: scanned with %v, valid is %t", data, err, want)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(raw, bytes.Trim(data, " \t\r\n")) {
			t.Fatalf("%q: the value is %q", data, raw)
		}
		if !bytes.Equal(Clean(data), data) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if want := canonical(v); !bytes.Equal(want, s.Canonical()) {
			t.Fatalf("%q: canonical is %s, want %s", data, s.Canonical(), want)
		}
		if text, ok := v.(string); ok {
			sameText(t, raw, text)
		}
	})
}

// sameText compares what is measured of a string in its JSON with the text itself.
func sameText(t *testing.T, raw Raw, text string) {
	q := weigh.String(raw)
	if want := weigh.Text(text); q.Size != want || q.Len != len(raw) {
		t.Fatalf("%s: %+v, want %+v", raw, q, want)
	}
	if s := weigh.Skip(raw); s.Len != q.Len || s.Long != q.Long {
		t.Fatalf("%s: skipped as %+v, measured as %+v", raw, s, q)
	}
}

// A large value leaves no large memory behind, once smaller ones have come.
func TestScanReleasesMemory(t *testing.T) {
	var s Scan
	scan := func(text string) {
		s.Reset()
		s.Write()
		w := s.Walk(Raw(`{"b":"` + text + `","a":1}`))
		w.Object(func([]byte) { w.Value() })
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
	}
	scan(strings.Repeat("x", 1<<20))
	if cap(s.out) < 1<<20 {
		t.Fatalf("%d bytes for a megabyte: the test shows nothing", cap(s.out))
	}
	scan("y")
	scan("y")
	if cap(s.out) > manyBytes {
		t.Errorf("%d bytes of memory for a short value", cap(s.out))
	}
}
