package codec

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		`"plain"`:                        `"plain"`,
		`"\ud83d"`:                       `"\ufffd"`,
		`"\uDE00"`:                       `"\ufffd"`,
		`"\ud83d\ude00"`:                 `"\ud83d\ude00"`,
		`"\ud83d\ud83d\ude00"`:           `"\ufffd\ud83d\ude00"`,
		`"\ude00\ud83d"`:                 `"\ufffd\ufffd"`,
		`"\ud83d\n"`:                     `"\ufffd\n"`,
		`"\ud83d\u0041"`:                 `"\ufffd\u0041"`,
		`"\\ud83d"`:                      `"\\ud83d"`,
		`"\\\ud83d"`:                     `"\\\ufffd"`,
		`"\ud7ff\/\u0041"`:               `"\ud7ff\/\u0041"`,
		`{"\ud83d" : [ 1.0 , "\u0041"]}`: `{"\ufffd" : [ 1.0 , "\u0041"]}`,
		"\"a\xffb\"":                     "\"a\uFFFDb\"",
		"\"\xe4\xb8\"":                   "\"\uFFFD\uFFFD\"",
		"\"\xed\xa0\xbd\"":               "\"\uFFFD\uFFFD\uFFFD\"", // a surrogate in UTF-8
		`"\uFFFD"`:                       `"\uFFFD"`,
	} {
		if got := string(Clean(Raw(in))); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// Cleaned JSON means what Go's decoder, which replaces too, makes of the
// original; it is strictly valid; and cleaning it again changes nothing.
func TestCleanProperties(t *testing.T) {
	piece := rapid.SampledFrom([]string{`\ud83d`, `\ude00`, `\uD800`, `\u0041`, `\\`, `\"`, `\n`, "a", "é", "😀", "\xff", "\xe4", `u`, `d83d`})
	rapid.Check(t, func(t *rapid.T) {
		raw := Raw(`{"k":"` + strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") + `"}`)
		var want, got map[string]string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("generator made %q: %v", raw, err)
		}
		out := Clean(raw)
		if !out.IsValid() {
			t.Fatalf("%q is not strictly valid", out)
		}
		if err := Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		if again := Clean(out); string(again) != string(out) {
			t.Fatalf("again: %q, then %q", out, again)
		}
		ms, err := ReadObject(raw)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := Text(ms[0].Value); !ok || s != want["k"] {
			t.Fatalf("Text of %q = %q, want %q", ms[0].Value, s, want["k"])
		}
	})
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{`""`: "", `"a"`: "a", `"\u0041\n"`: "A\n", `"\ud83d"`: "\uFFFD", `"x\ud83d\\"`: "x\uFFFD\\"} {
		if got, ok := Text(Raw(in)); !ok || got != want {
			t.Errorf("Text(%s) = %q, %v; want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "null", "1", "[]", `{"a":"b"}`, `"`} {
		if got, ok := Text(Raw(in)); ok {
			t.Errorf("Text(%s) = %q, want none", in, got)
		}
	}
}

func TestQuoteText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, ok := Text(Quote(s)); !ok || got != s {
			t.Fatalf("got %q, %v", got, ok)
		}
	})
}

func TestInteger(t *testing.T) {
	const top, low = int64(1<<63 - 1), -int64(1<<63-1) - 1
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "1e3": 1000, "1.0": 1, "9007199254740993": 9007199254740993,
		"99999999999999999999": top, "-99999999999999999999": low, "1e400": top, "-1e400": low,
	} {
		if got, ok := Integer(Raw(in)); !ok || got != want {
			t.Errorf("Integer(%s) = %d, %v; want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{"1.5", "1e-3", `"1"`, "null", "true", "[1]"} {
		if got, ok := Integer(Raw(in)); ok {
			t.Errorf("Integer(%s) = %d, want none", in, got)
		}
	}
}

func TestUnits(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "日本": 2, "😀": 2, "a😀b": 4, "\xff": 1, "\xe4\xb8": 2} {
		if got := Units(s); got != want {
			t.Errorf("Units(%q) = %d, want %d", s, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "valid") {
			s = rapid.String().Draw(t, "s")
		}
		if got, want := Units(s), len(utf16.Encode([]rune(s))); got != want {
			t.Fatalf("Units(%q) = %d, want %d", s, got, want)
		}
	})
}

func TestTooDeep(t *testing.T) {
	nest := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2) }
	for name, test := range map[string]struct {
		in   string
		want bool
	}{
		"at the bound":  {nest(MaxDepth), false},
		"beyond it":     {nest(MaxDepth + 2), true},
		"in a string":   {`["` + strings.Repeat(`[\"{`, 1000) + `"]`, false},
		"side by side":  {`[` + strings.Repeat(`{},`, 1000) + `{}]`, false},
		"after strings": {`["\\","\"",` + nest(MaxDepth) + `]`, true},
	} {
		if got := TooDeep([]byte(test.in)); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestReadObject(t *testing.T) {
	ms, err := ReadObject(Raw(` { "a" : 1.0 , "\u0062":{ "x" : [ ] }, "a":null } `))
	if err != nil {
		t.Fatal(err)
	}
	want := []Member{{"a", Raw("1.0")}, {"b", Raw(`{ "x" : [ ] }`)}, {"a", Raw("null")}}
	if d := cmp.Diff(want, ms); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", " ", "[]", "1", `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:2}`, `{"a":1]`, `{} {}`, `{},`, "{}x", "{}\x00"} {
		if ms, err := ReadObject(Raw(bad)); err == nil {
			t.Errorf("ReadObject(%q) = %v, want an error", bad, ms)
		}
	}
}

func TestReadArray(t *testing.T) {
	es, err := ReadArray(Raw(` [ 1 , {"a" : 2},[ ] ,"x"] `))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Raw{Raw("1"), Raw(`{"a" : 2}`), Raw("[ ]"), Raw(`"x"`)}, es); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "{}", "null", "[", "[1", "[1,]", "[1 2]", "[]]", "[1}"} {
		if es, err := ReadArray(Raw(bad)); err == nil {
			t.Errorf("ReadArray(%q) = %v, want an error", bad, es)
		}
	}
}

// Values are parts of the input with no capacity behind them, so that an append
// cannot write into a neighbour.
func TestValuesShareTheInput(t *testing.T) {
	raw := Raw(`{"a":[1],"b":{"c":2}}`)
	ms, err := ReadObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		if cap(m.Value) != len(m.Value) {
			t.Errorf("%s has room for %d bytes more", m.Name, cap(m.Value)-len(m.Value))
		}
	}
	if &ms[0].Value[0] != &raw[5] {
		t.Error("the value was copied")
	}
}

func TestWithMember(t *testing.T) {
	for _, test := range [][2]string{
		{`{}`, `{"n":0}`},
		{`{"n":1}`, `{"n":0}`},
		{`{"a":{ "x" : 1},"n":1,"b":1.50}`, `{"a":{ "x" : 1},"n":0,"b":1.50}`},
		{`{"n":1,"a":2,"n":3}`, `{"n":0,"a":2,"n":0}`},
		{`{"a":"\u0041"}`, `{"a":"\u0041","n":0}`},
	} {
		got, err := WithMember(Raw(test[0]), "n", Raw("0"))
		if err != nil || string(got) != test[1] {
			t.Errorf("%s: got %s, %v; want %s", test[0], got, err, test[1])
		}
	}
	if got, err := WithMember(Raw(`[1]`), "n", Raw("0")); err == nil {
		t.Errorf("got %s, want an error", got)
	}
}

// Raw values are written with their numbers, escapes, order and duplicates.
func TestMarshalKeepsRawValues(t *testing.T) {
	raw := `{"b":1.0E5,"a":"\u0041\/","a":[1,-0]}`
	got, err := Marshal(map[string][]Raw{"messages": {Raw(raw)}})
	if err != nil || !strings.Contains(string(got), `"messages":[`+raw+`]`) {
		t.Errorf("got %s, %v", got, err)
	}
}

func BenchmarkUnits(b *testing.B) {
	s := strings.Repeat("the quick brown fox jumps over the lazy dog ", 1000)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		if Units(s) != utf8.RuneCountInString(s) {
			b.Fatal("wrong")
		}
	}
}
