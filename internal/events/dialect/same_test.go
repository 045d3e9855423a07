package dialect_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/dialecttest"

	"pgregory.net/rapid"
)

// exampleRow is an example: a dialect and two messages, each in a line.
var exampleRow = regexp.MustCompile(`(?m)^([a-z-]+)\n  (\{.*\})\n  (\{.*\})$`)

// The examples of docs/format/identity.txt are true, and each dialect has some of both kinds and a
// line in each table of identity.md.
func TestIdentityExamples(t *testing.T) {
	page := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "format", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	same, other, ok := strings.Cut(page("identity.txt"), "In each of these the second message is another one.")
	if !ok {
		t.Fatal("no examples of other messages")
	}
	for i, table := range []string{same, other} {
		seen := map[Format]bool{}
		for _, row := range exampleRow.FindAllStringSubmatch(table, -1) {
			f, a, b := Format(row[1]), codec.Raw(row[2]), codec.Raw(row[3])
			seen[f] = true
			for _, raw := range []codec.Raw{a, b} {
				if _, err := f.ReadNew([]codec.Raw{raw}); err != nil {
					t.Errorf("%s: %s: %v", f, raw, err)
				}
			}
			if equal := f.DigestOf([]codec.Raw{a}) == f.DigestOf([]codec.Raw{b}); equal != (i == 0) {
				t.Errorf("%s: %s and %s are the same: %t", f, a, b, equal)
			}
		}
		for _, f := range events.Formats() {
			if !seen[f] {
				t.Errorf("table %d has no example of %s", i, f)
			}
		}
	}
	rules := page("identity.md")
	for _, head := range []string{"left out", "ids of calls", "inline media"} {
		_, table, _ := strings.Cut(rules, "| dialect | "+head+" |")
		table, _, _ = strings.Cut(table, "\n\n")
		for _, f := range events.Formats() {
			if !strings.Contains(table, "`"+string(f)+"`") {
				t.Errorf("the table of %s has no line for %s", head, f)
			}
		}
	}
}

// object is a JSON object of a message.
type object = map[string]any

// twin draws the same message as another SDK, or the same one a call later, writes it.
func twin(t *rapid.T, f Format, m object) object {
	m = maps.Clone(m)
	some := func(name string) bool { return rapid.Bool().Draw(t, name) }
	cacheMark := func(o object) {
		if some("mark") {
			o["cache_control"] = object{"type": "ephemeral"}
		}
		if some("null") {
			o["future"] = nil
		}
		if some("list") {
			o["annotations"] = []any{}
		}
		if f == AISDK && some("option") {
			o["providerOptions"] = withMark(o["providerOptions"])
		}
	}
	cacheMark(m)
	if some("id") && m["type"] != "item_reference" {
		m["id"] = "another"
	}
	if f == Responses && some("status") && m["status"] != "failed" {
		m["status"] = "completed"
	}
	list := "content"
	if f == Gemini {
		list = "parts"
	}
	if text, ok := m[list].(string); ok && text != "" && m["role"] != nil && f != NeuroLink && !(f == AISDK && m["role"] == "system") {
		kind := "text"
		if f == Responses {
			kind = map[any]string{"assistant": "output_text"}[m["role"]]
			if kind == "" {
				kind = "input_text"
			}
		}
		if some("block") {
			m[list] = []any{object{"type": kind, "text": text}}
		}
	}
	blocks, ok := m[list].([]any)
	if !ok || f == NeuroLink {
		return m
	}
	blocks = slices.Clone(blocks)
	for i := range blocks {
		if b, ok := blocks[i].(object); ok {
			b = maps.Clone(b)
			cacheMark(b)
			blocks[i] = b
		}
	}
	if f == Bedrock && len(blocks) > 0 && some("cachePoint") {
		blocks = append(blocks, object{"cachePoint": object{"type": "default"}})
	}
	m[list] = blocks
	return m
}

// withMark adds a mark of a cache to options of the AI SDK.
func withMark(options any) object {
	out := object{}
	if o, ok := options.(object); ok {
		maps.Copy(out, o)
	}
	provider := object{}
	if p, ok := out["anthropic"].(object); ok {
		maps.Copy(provider, p)
	}
	provider["cacheControl"] = object{"type": "ephemeral"}
	out["anthropic"] = provider
	return out
}

// apart are members whose value is no content, or of which only the order counts.
var apart = strings.Fields("id timestamp metadata cache_control cacheControl cachePoint status type tool_call_id toolCallId tool_use_id toolUseId " +
	"call_id approval_request_id role")

// leaves lists what changes each string of a value, but for those that are apart.
func leaves(v any, put func(any), out []func()) []func() {
	switch v := v.(type) {
	case string:
		out = append(out, func() { put(v + "~") })
	case object:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(apart, k) {
				out = leaves(v[k], func(x any) { v[k] = x }, out)
			}
		}
	case []any:
		for i := range v {
			out = leaves(v[i], func(x any) { v[i] = x }, out)
		}
	}
	return out
}

// A7: a message is the same with other marks of a cache, with or without what SDKs add, and
// in another form of its content; with any other word in it, it is another one.
func TestSameMessage(t *testing.T) {
	all := dialecttest.Fixtures(t)
	for _, f := range events.Formats() {
		t.Run(string(f), rapid.MakeCheck(func(t *rapid.T) {
			raw := rapid.SampledFrom(all[string(f)]).Draw(t, "message")
			var m, changed object
			for _, o := range []*object{&m, &changed} {
				if err := json.Unmarshal(raw, o); err != nil {
					t.Fatal(err)
				}
			}
			write := func(o object) codec.Raw {
				data, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				return data
			}
			want, other := f.DigestOf([]codec.Raw{raw}), write(twin(t, f, m))
			if f.DigestOf([]codec.Raw{other}) != want {
				t.Fatalf("%s is not %s", other, raw)
			}
			a, errA := f.Read(raw)
			b, errB := f.Read(other)
			if errA != nil || errB != nil || len(a.Parts) != len(b.Parts) {
				t.Fatalf("%s has %d parts, %s has %d: %v %v", raw, len(a.Parts), other, len(b.Parts), errA, errB)
			}
			if edits := leaves(changed, nil, nil); len(edits) > 0 {
				rapid.SampledFrom(edits).Draw(t, "edit")()
				if edited := write(changed); f.DigestOf([]codec.Raw{edited}) == want {
					t.Fatalf("%s is %s", edited, raw)
				}
			}
		}))
	}
}
