package stage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// A summary whose range ends behind the beginning of an earlier truncation covers what that one has kept: whole
// messages, pinned ones with their calls and results, and none of them is restored beside itself.
func TestSummaryBehindTruncation(t *testing.T) {
	entry := func(turn, part uint32, k measure.Kind, r measure.Role, call dialect.Key, flags measure.Flags) measure.Entry {
		e := measure.Entry{Seq: measure.Seq(turn), Turn: turn, Part: part, Parts: 1, Kind: k, Role: r, Call: call, Flags: flags, Text: 400, Base: 100, Bytes: 400}
		if part == 0 {
			e.Flags |= measure.FlagFirst
		}
		return e
	}
	for _, pin := range []measure.Flags{measure.FlagPinned, 0} {
		notice := measure.TruncationAt(&measure.Entry{Turn: 2})
		notice.Covers(events.Position{Turn: 2}, events.Position{Turn: 5})
		d := NewDraft([]measure.Entry{
			entry(1, 0, measure.KindWords, measure.RoleUser, 0, 0),
			notice,
			entry(2, 0, measure.KindCall, measure.RoleAssistant, 7, 0), entry(2, 1, measure.KindCall, measure.RoleAssistant, 8, 0),
			entry(3, 0, measure.KindResult, measure.RoleUser, 7, pin), entry(3, 1, measure.KindResult, measure.RoleUser, 8, pin),
			entry(6, 0, measure.KindWords, measure.RoleAssistant, 0, 0),
			entry(7, 0, measure.KindWords, measure.RoleUser, 0, 0),
		}, events.Anthropic, measure.NewRate(measure.Profiles["default"], "anthropic"))
		read := entry(3, 1, measure.KindRestored, measure.RoleUser, 0, measure.FlagRead)
		read.Op, read.Ceiling = measure.OpTrim, read.Text
		d.condense(&Summary{Seq: 9, To: events.Position{Turn: 3}, Units: 50}, nil)
		p := policy.Default().Restore
		d.Restore(func(yield func(measure.Entry) bool) { yield(read) }, &p, 10_000, 10_000)
		d.Repair()
		type at struct {
			turn, part uint32
			kind       measure.Kind
		}
		want := []at{{1, 0, measure.KindSummary}, {3, 1, measure.KindRestored}}
		if pin != 0 {
			want = []at{{1, 0, measure.KindSummary}, {2, 0, measure.KindCall}, {2, 1, measure.KindCall}, {3, 0, measure.KindResult}, {3, 1, measure.KindResult}}
		}
		want = append(want, at{2, 0, measure.KindTruncation}, at{6, 0, measure.KindWords}, at{7, 0, measure.KindWords})
		var got []at
		for _, e := range d.Entries() {
			if got = append(got, at{e.Turn, e.Part, e.Kind}); e.Flags.Has(measure.FlagCall | measure.FlagAnswer) {
				t.Errorf("%v is without its counterpart", e.Position())
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(at{})); diff != "" {
			t.Errorf("pinned %t: %s", pin != 0, diff)
		}
	}
}
