package measure

import (
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Calls that a provider carries out are one entry with their results, one inside of another or
// beside it; a half is an entry of its own, and so are the words around them.
func TestMeasureHosted(t *testing.T) {
	const (
		call   = `{"type":"server_tool_use","id":"a","name":"code_execution","input":{}}`
		answer = `{"type":"code_execution_tool_result","tool_use_id":"a","content":{"encrypted_stdout":"x"}}`
		inner  = `{"type":"server_tool_use","id":"b","name":"web_search","input":{},"caller":{"tool_id":"a"}}`
		found  = `{"type":"web_search_tool_result","tool_use_id":"b","content":[]}`
		text   = `{"type":"text","text":"t"}`
	)
	type entry struct {
		from, parts uint32
		hosted      bool
		half        int
	}
	for content, want := range map[string][]entry{
		call + "," + answer:                                          {{0, 2, true, 0}},
		text + "," + call + "," + answer + "," + text:                {{0, 1, false, 0}, {1, 2, true, 0}, {3, 1, false, 0}},
		call + "," + inner + "," + found + "," + answer + "," + text: {{0, 4, true, 0}, {4, 1, false, 0}},
		call + "," + inner + "," + answer + "," + found:              {{0, 4, true, 0}},
		call + "," + answer + "," + inner + "," + found:              {{0, 2, true, 0}, {2, 2, true, 0}},
		call + "," + text + "," + answer:                             {{0, 1, false, 1}, {1, 1, false, 0}, {2, 1, false, 2}},
		call + "," + inner + "," + found:                             {{0, 1, false, 1}, {1, 2, true, 0}},
		answer:                                                       {{0, 1, false, 2}},
	} {
		m, err := events.Anthropic.Read(codec.Raw(`{"role":"assistant","content":[` + content + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		list := Measure(m, Entry{})
		var got []entry
		for i := range list {
			e := &list[i]
			got = append(got, entry{e.Part, e.Parts, e.Hosted(), int(e.HostedHalf())})
			if e.Hosted() && e.Part == 0 && (!e.Of(KeysOf([]string{"code_execution"})) || e.Parts == 4 && !e.Of(KeysOf([]string{"web_search"})) || e.Of(KeysOf([]string{"web_fetch"}))) {
				t.Errorf("%s: it is of other tools", content)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %+v", content, got)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %+v, want %+v", content, got[i], want[i])
			}
		}
	}
}
