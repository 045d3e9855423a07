package stage_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// Errors of the reference system, each with the right behaviour instead.

// parallel are conversations with three calls in parallel.
var parallel = map[events.Format]string{
	events.NeuroLink: `{"role":"user","content":"Compare the three."}
{"role":"tool_call","content":"","tool":"read","toolCallId":"a","args":{"path":"0.go"}}
{"role":"tool_call","content":"","tool":"read","toolCallId":"b","args":{"path":"1.go"}}
{"role":"tool_call","content":"","tool":"read","toolCallId":"c","args":{"path":"2.go"}}
{"role":"tool_result","content":"content 0","tool":"read","toolCallId":"a","result":{"success":true}}
{"role":"tool_result","content":"content 1","tool":"read","toolCallId":"b","result":{"success":true}}
{"role":"tool_result","content":"content 2","tool":"read","toolCallId":"c","result":{"success":true}}
{"role":"assistant","content":"They are equal."}
{"role":"user","content":"Thanks."}`,
	events.OpenAI: `{"role":"user","content":"Compare the three."}
{"role":"assistant","content":"","tool_calls":[` +
		`{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"0.go\"}"}},` +
		`{"id":"b","type":"function","function":{"name":"read","arguments":"{\"path\":\"1.go\"}"}},` +
		`{"id":"c","type":"function","function":{"name":"read","arguments":"{\"path\":\"2.go\"}"}}]}
{"role":"tool","tool_call_id":"a","content":"content 0"}
{"role":"tool","tool_call_id":"b","content":"content 1"}
{"role":"tool","tool_call_id":"c","content":"content 2"}
{"role":"assistant","content":"They are equal."}
{"role":"user","content":"Thanks."}`,
	events.Anthropic: `{"role":"user","content":"Compare the three."}
{"role":"assistant","content":[` +
		`{"type":"tool_use","id":"a","name":"read","input":{"path":"0.go"}},` +
		`{"type":"tool_use","id":"b","name":"read","input":{"path":"1.go"}},` +
		`{"type":"tool_use","id":"c","name":"read","input":{"path":"2.go"}}]}
{"role":"user","content":[` +
		`{"type":"tool_result","tool_use_id":"a","is_error":false,"content":"content 0"},` +
		`{"type":"tool_result","tool_use_id":"b","is_error":false,"content":"content 1"},` +
		`{"type":"tool_result","tool_use_id":"c","is_error":false,"content":"content 2"}]}
{"role":"assistant","content":"They are equal."}
{"role":"user","content":"Thanks."}`,
}

// B10: calls made in parallel find their results by id, or by their order where
// there are no ids; repair, for which the reference has neighbours only, leaves
// them as they are.
func TestParallelCallsStayWhole(t *testing.T) {
	for format, history := range parallel {
		staysWhole(t, format, history)
	}
	staysWhole(t, events.NeuroLink, regexp.MustCompile(`"toolCallId":"\w",`).ReplaceAllString(parallel[events.NeuroLink], ""))
}

func staysWhole(t *testing.T, format events.Format, history string) {
	t.Helper()
	var sent []codec.Raw
	for line := range strings.SplitSeq(history, "\n") {
		sent = append(sent, codec.Raw(line))
	}
	msgs, err := format.ReadAll(sent)
	if err != nil {
		t.Fatal(err)
	}
	d := stage.NewDraft(measured(msgs), format, measure.NewRate(measure.Profiles["default"], ""))
	d.Repair()
	view := &render.View{Format: format, Entries: d.Entries(), Uncited: stage.Uncite(d.Entries(), math.MaxInt64)}
	got, _, err := render.Render(view, func(measure.Seq) ([]dialect.Message, error) { return msgs, nil })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got); diff != "" || len(d.Edits()) > 0 {
		t.Errorf("%s: %d edits\n%s", format, len(d.Edits()), diff)
	}
}

// measured measures messages as one turn.
func measured(msgs []dialect.Message) (out []measure.Entry) {
	for i, m := range msgs {
		out = append(out, measure.Measure(m, measure.Entry{Seq: 1, Turn: 1, Index: uint32(i)})...)
	}
	return out
}

// B5: a text that contains "read" is no read. The reference takes the word behind it
// for a path, and the second result of a search for the same file.
func TestWordsAreNoPath(t *testing.T) {
	long := strings.Repeat(" and so on", 200)
	for _, text := range []string{"The thread pool is full", "read the docs", "cat food", "I was reading about it", "already read"} {
		history := []dialect.Message{}
		for range 3 {
			history = append(history, dialect.Message{Role: dialect.RoleTool, Parts: []dialect.Part{
				{Kind: dialect.PartResult, Tool: "search", Text: text + long},
			}})
		}
		d := stage.NewDraft(measured(history), events.NeuroLink, measure.NewRate(measure.Profiles["default"], ""))
		if d.Deduplicate(0); len(d.Edits()) > 0 {
			t.Errorf("%q: %+v", text, d.Edits())
		}
	}
}
