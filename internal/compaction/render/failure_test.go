package render_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// A failure that is cleared keeps its first line with words: an empty one in front of it states nothing.
func TestFailureBehindEmptyLine(t *testing.T) {
	all, err := events.Anthropic.ReadAll([]codec.Raw{
		codec.Raw(`{"role":"user","content":"check it"}`),
		codec.Raw(`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"make"}}]}`),
		codec.Raw(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"\n> check failed\n` + strings.Repeat("noise ", 200) + `"}]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	var view []measure.Entry
	for i := range all {
		view = append(view, measure.Measure(all[i], measure.Entry{Seq: 1, Turn: 1, Index: uint32(i)})...)
	}
	for i := range view {
		if view[i].Kind == measure.KindResult {
			view[i].Set(&events.Edit{Op: events.OpTrim, Units: 500, Direction: string(measure.KeepHead), Lines: 1})
		}
	}
	raw, _, err := render.Render(&render.View{Format: events.Anthropic, Entries: view}, func(measure.Seq) ([]dialect.Message, error) { return all, nil })
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%.200s", raw); !strings.Contains(text, "> check failed") || strings.Contains(text, "noise") {
		t.Errorf("the failure is cut to\n%s", text)
	}
}
