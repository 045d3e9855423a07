package syncs

import (
	"testing"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// A rendering that is not valid for its provider leaves the agent with its own history: the answer
// keeps each message, warns, and names no view and no prefix.
func TestUnchanged(t *testing.T) {
	list := []codec.Raw{codec.Raw(`{"role":"assistant","content":"a"}`), codec.Raw(`{"role":"user","content":"b"}`)}
	x := &request{in: &events.SyncRequest{Messages: list}, format: events.OpenAI, history: align.Read(events.OpenAI, list, 3)}
	out := x.unchanged(t.Context(), &events.SyncResponse{View: "1:x", Count: 5, Hash: events.Digest{1}, Changed: true, Generation: 1})
	if out.View != "" || out.Count != 0 || out.Hash != (events.Digest{}) || out.Changed || align.Changed(out.Parts, 5) || len(out.Parts) == 0 {
		t.Errorf("%+v", out)
	}
	if len(out.Warnings) != 1 || out.Warnings[0].Code != events.CodeInvalidHistory {
		t.Errorf("warnings %+v", out.Warnings)
	}
	x.in.Form = events.FormMessages
	if out := x.unchanged(t.Context(), &events.SyncResponse{}); out.Need != events.NeedAll {
		t.Errorf("a prefix in the form messages: %+v", out)
	}
}
