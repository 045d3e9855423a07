package compress

import (
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// The original of calls that the provider carried out is an array of their blocks.
func TestOriginalOfHosted(t *testing.T) {
	const blocks = `{"type":"server_tool_use","id":"a","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"a","content":[]}`
	turn := []codec.Raw{codec.Raw(`{"role":"assistant","content":[{"type":"text","text":"t"},` + blocks + `]}`)}
	want := "[" + blocks + "]"
	if got, _, ok, err := original(t.Context(), turn, 7, events.ContentHash(7, want)); err != nil || !ok || got != want {
		t.Errorf("got %q", got)
	}
}
