package events_test

import (
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// A sync that a worker sends on to another one has the view and the count of its usage.
func TestSyncUsageIsSentOn(t *testing.T) {
	in := &events.SyncRequest{About: events.About{Session: "s"}, Messages: []codec.Raw{}, Usage: &events.SyncUsage{View: "1:00", Count: 7, Raw: codec.Raw(`{"input_tokens":3}`)}}
	data, err := codec.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := events.Decode[events.SyncRequest](data)
	if err != nil || out.Usage == nil || out.Usage.View != "1:00" || out.Usage.Count != 7 || string(out.Usage.Raw) != `{"input_tokens":3}` {
		t.Errorf("%s: %+v, %v", data, out.Usage, err)
	}
}
