package validate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
)

// planted is a history with one error: the rules it breaks, the one it was
// planted for first.
type planted struct {
	name    string
	history []string
	broken  []string
}

// Histories that their providers take as they stand.
var valid = map[string]map[string][]string{
	anthropic: {
		"empty": {},
		"long": {
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},` +
				`{"type":"text","text":"b"},{"type":"tool_use","id":"t1","name":"n","input":{"a":1,"a":2}},` +
				`{"type":"tool_use","id":"t2","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2"},{"type":"tool_result","tool_use_id":"t1","content":""},{"type":"text","text":"c"}]}`,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","text":"d"}]}`,
			`{"role":"user","content":[{"type":"image","source":{}}]}`,
		},
		"results of a server in the next message": {
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"code_execution","input":{}},{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
			`{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"s1","content":{}},` +
				`{"type":"text","text":"b","citations":[{"type":"web_search_result_location","encrypted_index":"g"},null,` +
				`{"type":"char_location"}]}]}`,
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s2","name":"web_search","input":{}}]}`,
		},
		"calls open at the end": {
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
		},
		"system messages behind a user's": {
			`{"role":"user","content":"a"}`,
			`{"role":"system","content":"b"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
			`{"role":"system","clear_at":"next_user_message","content":[{"type":"text","text":"c"}]}`,
			`{"role":"system","content":"d"}`,
		},
		"some results at the end": {
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}},{"type":"tool_use","id":"t2","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}`,
		},
	},
	openai: {
		"empty": {},
		"long": {
			`{"role":"system","content":"a"}`,
			`{"role":"developer","content":[{"type":"text","text":"a"}]}`,
			`{"role":"user","content":""}`,
			`{"role":"user","content":"b"}`,
			`{"role":"system","content":"c"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":""}},{"id":"c2","type":"custom","custom":{"name":"n","input":"x"}}]}`,
			`{"role":"tool","tool_call_id":"c2","content":""}`,
			`{"role":"tool","tool_call_id":"c1","content":"x"}`,
			`{"role":"assistant","refusal":"no"}`,
			`{"role":"assistant","content":"ids may come again","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{"}}]}`,
			`{"role":"tool","tool_call_id":"c1","content":"x"}`,
			`{"role":"assistant","content":null,"function_call":{"name":"n","arguments":"{}"}}`,
			`{"role":"function","name":"n","content":"x"}`,
			`{"role":"assistant","content":""}`,
		},
		"calls open at the end": {
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
		},
		"some results at the end": {
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c2","content":"x"}`,
		},
	},
	neurolink: {
		"adjacent": { // B10: adjacency is all there is without ids
			`{"role":"tool_call","content":"","tool":"n"}`,
			`{"role":"tool_result","content":"x"}`,
			`{"role":"tool_result","content":"x"}`,
		},
		"empty": {},
		"long": {
			`{"id":"m1","role":"system","content":"a"}`,
			`{"id":"m2","role":"user","content":[{"type":"text","text":"a"}]}`,
			`{"id":"m3","role":"tool_call","content":"","tool":"n","toolCallId":"c1"}`,
			`{"id":"m4","role":"tool_call","content":"","tool":"n","metadata":{"toolCallId":"c2"}}`,
			`{"id":"m5","role":"tool_result","content":"x","tool":"n","tool_call_id":"c2"}`,
			`{"id":"m6","role":"tool_result","content":"x","tool":"n","toolCallId":"c1"}`,
			`{"id":"m7","role":"assistant","content":""}`,
			`{"id":"m8","role":"tool_call","content":"","tool":"n"}`,
			`{"id":"m9","role":"tool_call","content":"","tool":"n","metadata":{"truncated":true}}`,
			`{"id":"ma","role":"tool_result","content":"x"}`,
			`{"id":"mb","role":"tool_result","content":{"a":1},"toolCallId":"c9"}`,
			`{"id":"mc","role":"user","content":"a"}`,
		},
		"calls open at the end": {
			`{"role":"user","content":"a"}`,
			`{"role":"tool_call","content":"","tool":"n"}`,
			`{"role":"tool_call","content":"","tool":"n"}`,
			`{"role":"tool_result","content":"x"}`,
		},
	},
}

var plants = map[string][]planted{
	anthropic: {
		{"first is an assistant", []string{`{"role":"assistant","content":"a"}`}, []string{"first_is_user"}},
		{"two users", []string{`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`}, []string{"roles_alternate"}},
		{"an unknown role", []string{`{"role":"user","content":"a"}`, `{"role":"tool","content":"b"}`}, []string{"roles_alternate"}},
		{"a system message first", []string{`{"role":"system","content":"b"}`, `{"role":"user","content":"a"}`}, []string{"system_place", "system_place"}},
		{"a system message behind an assistant's", []string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"a"}`, `{"role":"system","content":"b"}`}, []string{"system_place"}},
		{"a system message before a user's", []string{`{"role":"user","content":"a"}`, `{"role":"system","content":"b"}`, `{"role":"user","content":"c"}`}, []string{"system_place", "roles_alternate"}},
		{"a system message between a call and its result", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"system","content":"b"}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
		}, []string{"system_place", "system_place"}},
		{"a call without its result", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}},{"type":"tool_use","id":"t2","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
			`{"role":"assistant","content":"b"}`,
		}, []string{"call_answered"}},
		{"a call passed over at the end", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":"never mind"}`,
		}, []string{"call_answered"}},
		{"a server's call without its result", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"text","text":"b"}]}`,
			`{"role":"user","content":"c"}`,
		}, []string{"server_result"}},
		{"a server's call without its result behind results", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"mcp_tool_use","id":"s1","name":"n","input":{}},{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"b"}]}`,
		}, []string{"server_result"}},
		{"a server's result behind a user's words", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]}`,
			`{"role":"user","content":"b"}`,
			`{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}]}`,
		}, []string{"server_result", "server_result"}},
		{"a server's result without its call", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"s1","content":{}},` +
				`{"type":"server_tool_use","id":"s1","name":"web_fetch","input":{}},` +
				`{"type":"code_execution_tool_result","tool_use_id":"s1","content":{}}]}`,
		}, []string{"server_result"}},
		{"a citation of no result", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"text","text":"b","citations":[{"type":"web_search_result_location","encrypted_index":"g"}]}]}`,
		}, []string{"citation"}},
		{"text before a result", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
		}, []string{"results_first"}},
		{"a result of nothing", []string{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`}, []string{"orphan_result"}},
		{"a result too late", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":"b"}`,
			`{"role":"assistant","content":"c"}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
		}, []string{"orphan_result", "call_answered"}},
		{"two results", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"},{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
		}, []string{"duplicate_result"}},
		{"a call id twice", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`,
		}, []string{"duplicate_call_id"}},
		{"a call id with another sign", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"functions.Bash:0","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions.Bash:0","content":"x"}]}`,
		}, []string{"call_id"}},
		{"a blank block", []string{`{"role":"user","content":[{"type":"text","text":" \n\t"}]}`}, []string{"empty_text"}},
		{"a blank string", []string{`{"role":"user","content":""}`}, []string{"empty_text"}},
		{"no blocks", []string{`{"role":"user","content":[]}`}, []string{"empty_content"}},
		{"no object", []string{`[]`}, []string{"bad_shape"}},
		{"no JSON", []string{`{"role":"user","content":"a"`}, []string{"bad_shape"}},
		{"half a surrogate", []string{`{"role":"user","content":"\ud83d"}`}, []string{"bad_shape"}},
		{"content null", []string{`{"role":"user","content":null}`}, []string{"bad_shape"}},
		{"a bare block", []string{`{"role":"user","content":["a"]}`}, []string{"bad_shape"}},
		{"a block without type", []string{`{"role":"user","content":[{"text":"a"}]}`}, []string{"bad_shape"}},
		{"a text without text", []string{`{"role":"user","content":[{"type":"text"}]}`}, []string{"bad_shape"}},
		{"a user's call", []string{`{"role":"user","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`}, []string{"bad_shape"}},
		{"a call without input", []string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n"}]}`}, []string{"bad_shape"}},
		{"a result without id", []string{`{"role":"user","content":[{"type":"tool_result","content":"x"}]}`}, []string{"bad_shape"}},
	},
	openai: {
		{"a call without its result", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c1","content":"x"}`,
			`{"role":"user","content":"b"}`,
		}, []string{"call_answered"}},
		{"a result after another role", []string{
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			`{"role":"user","content":"b"}`,
			`{"role":"tool","tool_call_id":"c1","content":"x"}`,
		}, []string{"orphan_result", "call_answered"}},
		{"a result of nothing", []string{`{"role":"tool","tool_call_id":"c1","content":"x"}`}, []string{"orphan_result"}},
		{"two results", []string{
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c1","content":"x"}`,
			`{"role":"tool","tool_call_id":"c1","content":"x"}`,
		}, []string{"duplicate_result"}},
		{"a call id twice", []string{
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
		}, []string{"duplicate_call_id"}},
		{"an empty assistant", []string{`{"role":"assistant"}`}, []string{"empty_content"}},
		{"an assistant without parts", []string{`{"role":"assistant","content":[]}`}, []string{"empty_content"}},
		{"unknown role", []string{`{"role":"king","content":"a"}`}, []string{"bad_shape"}},
		{"a user without content", []string{`{"role":"user"}`}, []string{"bad_shape"}},
		{"a user without parts", []string{`{"role":"user","content":[]}`}, []string{"bad_shape"}},
		{"content an object", []string{`{"role":"user","content":{}}`}, []string{"bad_shape"}},
		{"a user's call", []string{`{"role":"user","content":"a","tool_calls":[]}`}, []string{"bad_shape", "bad_shape"}},
		{"no calls", []string{`{"role":"assistant","content":"a","tool_calls":[]}`}, []string{"bad_shape"}},
		{"arguments an object", []string{`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":{}}}]}`}, []string{"bad_shape"}},
		{"a call without id", []string{`{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"n","arguments":"{}"}}]}`}, []string{"bad_shape"}},
		{"a result without id", []string{`{"role":"tool","content":"x"}`}, []string{"bad_shape"}},
		{"no JSON", []string{`{`}, []string{"bad_shape"}},
	},
	neurolink: {
		{"a call without its result, by id", []string{
			`{"role":"tool_call","content":"","tool":"n","toolCallId":"c1"}`,
			`{"role":"tool_call","content":"","tool":"n","toolCallId":"c2"}`,
			`{"role":"tool_result","content":"x","toolCallId":"c1"}`,
			`{"role":"user","content":"a"}`,
		}, []string{"call_answered"}},
		{"a call without its result, by place", []string{
			`{"role":"tool_call","content":"","tool":"n"}`,
			`{"role":"assistant","content":"a"}`,
		}, []string{"call_answered"}},
		{"a result of nothing", []string{`{"role":"user","content":"a"}`, `{"role":"tool_result","content":"x"}`}, []string{"orphan_result"}},
		{"a result of another call", []string{
			`{"role":"tool_call","content":"","tool":"n","toolCallId":"c1"}`,
			`{"role":"tool_result","content":"x","toolCallId":"c2"}`,
		}, []string{"orphan_result"}},
		{"two results", []string{
			`{"role":"tool_call","content":"","tool":"n","toolCallId":"c1"}`,
			`{"role":"tool_result","content":"x","toolCallId":"c1"}`,
			`{"role":"tool_result","content":"x","toolCallId":"c1"}`,
		}, []string{"orphan_result"}},
		{"a result without id that stands apart", []string{
			`{"role":"tool_call","content":"","tool":"n"}`,
			`{"role":"tool_result","content":"x"}`,
			`{"role":"user","content":"a"}`,
			`{"role":"tool_result","content":"x"}`,
		}, []string{"orphan_result"}},
		{"unknown role", []string{`{"role":"tool","content":"a"}`}, []string{"bad_shape"}},
		{"no content", []string{`{"role":"user"}`}, []string{"bad_shape"}},
		{"no object", []string{`7`}, []string{"bad_shape"}},
	},
}

func TestValidHistories(t *testing.T) {
	for f, histories := range valid {
		for name, history := range histories {
			if got := Messages(f, raws(history)); len(got) > 0 {
				t.Errorf("%s %s: %v", f, name, got)
			}
		}
	}
}

// Each planted error is found, and nothing else.
func TestPlantedErrors(t *testing.T) {
	for f, cases := range plants {
		for _, test := range cases {
			var got []string
			for _, v := range Messages(f, raws(test.history)) {
				if v.Index < 0 || v.Index >= len(test.history) || v.Text == "" {
					t.Errorf("%s, %s: %+v", f, test.name, v)
				}
				got = append(got, v.Rule)
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(test.broken))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, %s: %s", f, test.name, d)
			}
		}
	}
}

// Every rule has an error planted for it, and no error is reported under
// another name.
func TestEveryRuleHasAPlantedError(t *testing.T) {
	for f, rules := range rules {
		var first []string
		for _, p := range plants[f] {
			first = append(first, p.broken[0])
		}
		slices.Sort(first)
		var names []string
		for _, r := range rules {
			names = append(names, r.name)
		}
		slices.Sort(names)
		if d := cmp.Diff(names, slices.Compact(first)); d != "" {
			t.Errorf("%s: %s", f, d)
		}
		if len(valid[f]) == 0 {
			t.Errorf("%s has no valid history", f)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	got := Messages("esperanto", nil)
	if len(got) != 1 || got[0].String() != "messages[-1] bad_shape: the format is unknown" {
		t.Errorf("got %v", got)
	}
}

// The cost of a check of a history, beside one pass of the library over its bytes.
func BenchmarkMessages(b *testing.B) {
	text := strings.Repeat(`The quick brown fox, \"quoted\" \u00e9 and a path /usr/lib/x.go:12\n`, 60)
	histories := map[string][]string{
		anthropic: {
			`{"role":"user","content":[{"type":"text","text":"` + text + `"}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{"path":"a.go"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"` + text + `"}]}]}`,
		},
		openai: {
			`{"role":"user","content":"` + text + `"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"t1","content":"` + text + `"}`,
		},
	}
	for _, f := range slices.Sorted(maps.Keys(histories)) {
		history := raws(histories[f])
		b.Run(f, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if bad := Messages(f, history); len(bad) > 0 {
					b.Fatal(bad)
				}
			}
		})
		b.Run(f+"/one_pass", func(b *testing.B) {
			for b.Loop() {
				for _, m := range history {
					if err := codec.Check(m); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func raws(history []string) []codec.Raw {
	out := make([]codec.Raw, len(history))
	for i, s := range history {
		out[i] = codec.Raw(s)
	}
	return out
}
