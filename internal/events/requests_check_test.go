package events_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// A request without a payload is refused for the same problems as its payload, and is completed to the same request.
func TestCheckAgreesWithDecoder(t *testing.T) {
	number := rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, 2, 100, 101, 8000, 8001, 1 << 31, 1<<31 + 1, 1 << 40, 1<<40 + 1})
	text := rapid.SampledFrom([]string{
		"", "default", "s-1", "a b", " padded ", "  ", "é", "one\ntwo", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 256),
		strings.Repeat("a", 257), strings.Repeat("a", 352), strings.Repeat("a", 353), strings.Repeat("a", 369), strings.Repeat("é", 512), strings.Repeat("b", 1025), strings.Repeat("c", 4097),
	})
	seq := rapid.SampledFrom([]uint64{1, 2, math.MaxInt64})
	perhaps := rapid.Ptr(number, true)
	kinds := rapid.SampledFrom([]codec.Raw{codec.Raw(`{}`), codec.Raw(`[]`), codec.Raw(`"x"`), codec.Raw(`7`)})
	rapid.Check(t, func(t *rapid.T) {
		n, s := func() int64 { return number.Draw(t, "number") }, func() string { return text.Draw(t, "text") }
		about := events.About{V: rapid.IntRange(-1, 3).Draw(t, "v"), Tenant: s(), Session: "x" + s()}
		if rapid.Bool().Draw(t, "named") {
			about = events.Address{Tenant: "acme", Session: "s1"}.About()
		}
		await := events.Await{Turn: n(), WaitMS: perhaps.Draw(t, "wait")}
		if rapid.Bool().Draw(t, "of an event") {
			await.Seq = seq.Draw(t, "seq")
		}
		recall := events.RecallRequest{About: about, Turn: n(), Index: perhaps.Draw(t, "index"), Page: n(), Text: s(), Limit: n(), Ancestor: s()}
		if rapid.Bool().Draw(t, "goes on") {
			recall.Before, recall.AsOf = &events.Position{Turn: n(), Index: n()}, &events.AsOf{Turn: n(), Seq: seq.Draw(t, "at"), Depth: n()}
		}
		agree(t, recall, events.Decode[events.RecallRequest])
		agree(t, events.ContextRequest{About: about, Page: n(), Generation: perhaps.Draw(t, "generation"), Await: await}, events.Decode[events.ContextRequest])
		agree(t, events.FilesRequest{About: about, Page: n()}, events.Decode[events.FilesRequest])
		agree(t, events.OutcomeRequest{About: about, Seq: seq.Draw(t, "seq"), WaitMS: perhaps.Draw(t, "wait")}, events.Decode[events.OutcomeRequest])
		agree(t, events.StatsRequest{About: about, Provider: s(), Model: s(), MaxOutputTokens: n(), Await: await}, events.Decode[events.StatsRequest])
		model := &events.Model{Provider: s(), Name: s(), MaxOutputTokens: n(), ContextWindow: n()}
		agree(t, events.Compact{ID: s(), Focus: s(), Model: model}, events.Decode[events.Compact])
		agree(t, events.SyncRequest{
			About: about, Branch: s(), Model: model, Format: events.Format(s()), System: kinds.Draw(t, "system"), Tools: kinds.Draw(t, "tools"),
			Policy: kinds.Draw(t, "policy"), Prefix: &events.SyncPrefix{Count: n()}, Messages: []codec.Raw{kinds.Draw(t, "message")},
			Usage: &events.SyncUsage{View: s(), Count: n(), Raw: codec.Raw(`{"input_tokens":3}`)}, Refused: &events.SyncRefused{View: s(), Status: n(), Error: kinds.Draw(t, "error")},
			OnDivergence: events.Divergence(s()), WaitMS: perhaps.Draw(t, "wait"), Form: events.Form(s()), Frozen: n(), Fork: &events.Fork{Session: s(), Turn: n()},
		}, events.Decode[events.SyncRequest])
		agree(t, events.SyncRequest{About: about, Model: model, Messages: []codec.Raw{}}, events.Decode[events.SyncRequest])
		agree(t, events.FleetRequest{Partition: perhaps.Draw(t, "partition")}, events.Decode[events.FleetRequest])
	})
}

func agree[R any](t *rapid.T, in R, decode func([]byte) (*R, error)) {
	t.Helper()
	data, err := codec.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	want, bad := decode(data)
	err = events.Check(any(&in).(events.Checkable))
	if diff := cmp.Diff(bad, err); diff != "" {
		t.Fatalf("%T %s: the decoder and the check differ:\n%s", in, data, diff)
	}
	if diff := cmp.Diff(*want, in); err == nil && diff != "" {
		t.Fatalf("%T %s: completed to another request:\n%s", in, data, diff)
	}
}

// A zero field that is required is absent.
func TestCheckRequired(t *testing.T) {
	about := events.Address{Tenant: "acme", Session: "s1"}.About()
	for name, in := range map[string]events.Checkable{
		"seq is required": &events.OutcomeRequest{About: about}, "session is required": &events.FilesRequest{}, "turn or text is required, not both": &events.RecallRequest{About: about},
	} {
		if err := events.Check(in); events.CodeOf(err) != events.CodeMissingField || err.Error() != name {
			t.Errorf("%T: %v, want %s", in, err, name)
		}
	}
}

// An empty choice of a sync is its default.
func TestSyncDefaults(t *testing.T) {
	in, err := events.Decode[events.SyncRequest]([]byte(`{"session":"s","messages":[],"on_diverge":"","form":""}`))
	if err != nil || in.OnDivergence != events.DivergeAuto || in.Form != events.FormParts {
		t.Errorf("%+v, %v", in, err)
	}
}
