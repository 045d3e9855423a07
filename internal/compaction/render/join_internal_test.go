package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// joinable draws a message of a role, with members beside its content.
func joinable(t *rapid.T, f events.Format, role measure.Role) message {
	m := dialect.Message{Role: speaker[role]}
	for i := range rapid.IntRange(1, 3).Draw(t, "parts") {
		p := dialect.Part{Kind: dialect.PartText, Text: rapid.SampledFrom([]string{"a", " b\n", "é", "\\\""}).Draw(t, "text")}
		if role == measure.RoleAssistant && rapid.Bool().Draw(t, "call") {
			p = dialect.Part{Kind: dialect.PartCall, CallID: fmt.Sprint("call", i), Tool: "read", Args: codec.Raw(`{"a":[1]}`)}
		}
		if role == measure.RoleUser && (f == events.Anthropic || f == events.Bedrock) && rapid.Bool().Draw(t, "result") {
			p = dialect.Part{Kind: dialect.PartResult, CallID: fmt.Sprint("call", i), Tool: "read", Text: "x"}
		}
		m.Parts = append(m.Parts, p)
	}
	raw, err := f.Write(m)
	if err != nil {
		t.Fatal(err)
	}
	texts, lists := []string{"", "null", `""`, `"r"`, `"s t"`}, []string{"", `["l"]`, `[{"k":1},{"k":2}]`, `[]`}
	for _, member := range []struct {
		name   string
		values []string
	}{{"ref", slices.Concat(texts, lists, []string{`[["n"]]`})}, {"reasoning_content", []string{"", `"r"`, `"s t"`}}, {"reasoning_details", lists}, {"id", texts}, {"x", slices.Concat(texts, lists)}} {
		name := member.name
		if value := rapid.SampledFrom(member.values).Draw(t, name); value != "" {
			raw = codec.Raw(fmt.Sprintf(`%s,%q:%s}`, raw[:len(raw)-1], name, value))
		}
	}
	out := message{raw: raw, role: role, first: events.Position{Turn: rapid.Int64Range(0, 4).Draw(t, "turn")}}
	out.last = out.first
	out.holdsParts(m.Parts)
	return out
}

// joinedOf is what messages of one role become.
func joinedOf(t *rapid.T, v *View, list []message) message {
	r := renderer{view: v, dialect: v.Format.Dialect(), out: list}
	if err := r.join(); err != nil {
		t.Fatal(err)
	}
	if err := r.writeUnion(); err != nil {
		t.Fatal(err)
	}
	if len(r.out) != 1 {
		t.Fatalf("%d messages", len(r.out))
	}
	return r.out[0]
}

// same reports whether two messages have the same members, whatever their order.
func same(t *rapid.T, a, b codec.Raw) bool {
	var x, y map[string]any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// Messages that become one give the same whether all are joined at once or one after the other.
func TestJoinedAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]events.Format{events.Anthropic, events.Bedrock, events.Gemini, events.AISDK, events.OpenAI}).Draw(t, "format")
		role := rapid.SampledFrom([]measure.Role{measure.RoleUser, measure.RoleAssistant}).Draw(t, "role")
		v := &View{Format: f}
		v.Demands.Alternates = role == measure.RoleAssistant || f == events.AISDK || f == events.Gemini || f == events.OpenAI
		var list []message
		for range rapid.IntRange(2, 5).Draw(t, "messages") {
			m := joinable(t, f, role)
			m.results = m.results && f != events.OpenAI
			list = append(list, m)
		}
		one := list[0]
		for _, m := range list[1:] {
			one = joinedOf(t, v, []message{one, m})
		}
		if all := joinedOf(t, v, list); !same(t, all.raw, one.raw) || all.calls != one.calls || all.results != one.results || all.first != one.first || all.last != one.last {
			t.Fatalf("%s %s\nat once %s\none by one %s", f, fmt.Sprint(role), all.raw, one.raw)
		}
	})
}
