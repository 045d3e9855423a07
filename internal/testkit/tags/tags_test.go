package tags

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/events/codec"
)

var tagged = []codec.Raw{
	codec.Raw(`{"id":"m1","role":"user","content":"a"}`),
	codec.Raw(`{"id":"m2","role":"assistant", "content":"b","condenseParent":"c1"}`),
	codec.Raw(`{"id":"s1","role":"system","content":"sum","condenseId":"c1","metadata":{"isSummary":true}}`),
	codec.Raw(`{"id":"m3","role":"user","content":"c","condenseParent":"","truncationParent":""}`),
	codec.Raw(`{"id":"m4","role":"assistant","content":"d","truncationParent":"t1","condenseParent":"c1"}`),
	codec.Raw(`{"id":"t1","role":"user","content":"cut","truncationId":"t1","isTruncationMarker":true}`),
	codec.Raw(`{"id":"m5","role":"user","content":"not a summary","condenseId":"c1","truncationId":"t1"}`),
}

// B12: what names a parent is hidden, and nothing else; an empty name is none.
func TestEffective(t *testing.T) {
	want := []codec.Raw{tagged[0], tagged[2], tagged[3], tagged[5], tagged[6]}
	if d := cmp.Diff(want, Effective(tagged)); d != "" {
		t.Error(d)
	}
}

// B12: a tag taken away shows what it hid, and takes what stood for it away; other
// tags stay.
func TestShow(t *testing.T) {
	want := []codec.Raw{
		tagged[0], codec.Raw(`{"id":"m2","role":"assistant","content":"b"}`), tagged[3],
		codec.Raw(`{"id":"m4","role":"assistant","content":"d","truncationParent":"t1"}`), tagged[5], tagged[6],
	}
	if d := cmp.Diff(want, Condensed.Show(tagged, "c1")); d != "" {
		t.Error(d)
	}
	want = []codec.Raw{
		tagged[0], tagged[1], tagged[2], tagged[3],
		codec.Raw(`{"id":"m4","role":"assistant","content":"d","condenseParent":"c1"}`), tagged[6],
	}
	if d := cmp.Diff(want, Truncated.Show(tagged, "t1")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(tagged, Truncated.Show(tagged, "t2")); d != "" {
		t.Error(d)
	}
}

// B12: nothing is ever deleted: what Hide hides is gone from the effective history,
// and Show gives back the history as it was.
func TestHideAndShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var history []codec.Raw
		for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
			history = append(history, codec.Raw(fmt.Sprintf(`{"role":"user","content":"m%d"}`, i)))
		}
		tag := rapid.SampledFrom([]Tag{Condensed, Truncated}).Draw(t, "tag")
		from, to := rapid.IntRange(-2, 14).Draw(t, "from"), rapid.IntRange(-2, 14).Draw(t, "to")
		hidden := tag.Hide(history, from, to, "x")
		n := max(0, min(to, len(history))-max(from, 0))
		if got := len(Effective(hidden)); got != len(history)-n {
			t.Fatalf("%d of %d messages are left, %d were hidden", got, len(history), n)
		}
		if d := cmp.Diff(append([]codec.Raw{}, history...), tag.Show(hidden, "x")); d != "" {
			t.Fatal(d)
		}
	})
}
