package stage_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// exchangesOf makes a history of a question and one exchange a turn, whose results have so
// many tokens.
func exchangesOf(results ...uint32) []measure.Entry {
	out := []measure.Entry{{Seq: 1, Turn: 1, Parts: 1, Role: measure.RoleUser, Flags: measure.FlagFirst, Text: 40, Base: 10}}
	for i, n := range results {
		turn, id := uint32(i+1), dialect.Key(i+1)
		out = append(out,
			measure.Entry{Seq: measure.Seq(turn), Turn: turn, Index: 1, Parts: 1, Kind: measure.KindCall, Role: measure.RoleAssistant, Flags: measure.FlagFirst, Call: id, JSON: 40, Base: 10},
			measure.Entry{Seq: measure.Seq(turn + 1), Turn: turn + 1, Parts: 1, Kind: measure.KindResult, Role: measure.RoleUser, Flags: measure.FlagFirst, Call: id, Text: 4 * n, Base: n})
	}
	turn := uint32(len(results) + 1)
	return append(out, measure.Entry{Seq: measure.Seq(turn), Turn: turn, Index: 1, Parts: 1, Role: measure.RoleAssistant, Flags: measure.FlagFirst, Text: 40, Base: 10})
}

func planOf(p *policy.Policy, entries []measure.Entry, less measure.Tokens, s *stage.Summary) stage.Plan {
	h := stage.History{
		View:   func(out []measure.Entry) []measure.Entry { return append(out, entries...) },
		Format: events.Anthropic, Rate: measure.NewRate(measure.Profiles[p.Profile], "openai"),
	}
	target := stage.NewDraft(slices.Clone(entries), h.Format, h.Rate).Repaired() - less
	return stage.MakePlan(h, p, 200_000, stage.Means{Target: target, Enough: target, Whole: target, WholeEnough: target, Summary: s})
}

// cleared lists the turns of the calls whose results a plan clears.
func cleared(p stage.Plan) []int64 { return edited(p, events.OpClear) }

// edited lists the turns of the calls whose results have one of some edits.
func edited(p stage.Plan, ops ...events.Op) (out []int64) {
	for _, x := range p.Edits {
		if slices.Contains(ops, x.Op) {
			out = append(out, x.Turn-1)
		}
	}
	return out
}

// hidden lists the turns of the calls that are not in a view.
func hidden(p stage.Plan, turns int) (out []int64) {
	for n := int64(1); n <= int64(turns); n++ {
		if !slices.ContainsFunc(p.Entries, func(e measure.Entry) bool { return e.Kind == measure.KindCall && int64(e.Turn) == n }) {
			out = append(out, n)
		}
	}
	return out
}

// B3: of results the largest and oldest go first, and no more than the target needs: of the last
// one a part stays.
func TestBurden(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens = 0, 0
	entries := exchangesOf(1000, 5000, 1000, 1000, 1000, 900, 1000, 1000)
	for _, c := range []struct {
		less measure.Tokens
		want []int64
	}{
		{1, []int64{2}},
		{3_000, []int64{2}},
		{5_000, []int64{1, 2}},
		{6_500, []int64{1, 2, 3}},
	} {
		plan := planOf(&p, entries, c.less, nil)
		if unused := plan.Before - c.less - plan.After; unused < 0 || unused > 250 {
			t.Errorf("%d tokens less: %d of the target are not used", c.less, unused)
		}
		got := edited(plan, events.OpClear, events.OpTrim)
		slices.Sort(got)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%d tokens less (-want +got):\n%s", c.less, d)
		}
	}
	p.Prune.ToTarget = false
	if d := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 7, 8}, cleared(planOf(&p, entries, 1, nil))); d != "" {
		t.Errorf("without a target (-want +got):\n%s", d)
	}
}

// B3: what a call wrote into a file stays longer than an older result, and words go before both.
func TestWorth(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens, p.Restore.Enabled = 0, 0, false
	entries := exchangesOf(5, 5, 5, 5, 5, 5, 5, 5)
	for i := range entries {
		if e := &entries[i]; e.Kind == measure.KindCall && e.Turn == 2 {
			e.Path, e.Base, e.JSON = 7, 400, 1600
		}
	}
	s := &stage.Summary{Seq: 100, To: events.Position{Turn: 8, Index: 1}, Units: 4}
	if d := cmp.Diff([]int64{1, 3}, hidden(planOf(&p, entries, 100, s), 8)); d != "" {
		t.Errorf("hidden (-want +got):\n%s", d)
	}
}

// B3: a result of a file stays longer than others of its age.
func TestFilesStay(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens = 0, 0
	entries := exchangesOf(1000, 1000, 1000, 1000)
	for i := range entries {
		if e := &entries[i]; e.Kind == measure.KindResult && e.Turn == 2 {
			e.Path = 7
		}
	}
	if d := cmp.Diff([]int64{2}, edited(planOf(&p, entries, 800, nil), events.OpClear, events.OpTrim)); d != "" {
		t.Errorf("cleared (-want +got):\n%s", d)
	}
}

// B6: where the target is out of reach, the least stays of what a summary covers, unless a truncation
// follows.
func TestLeastStays(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens, p.Restore.Enabled = 0, 0, false
	entries := exchangesOf(1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000)
	s := &stage.Summary{Seq: 100, To: events.Position{Turn: 8, Index: 1}, Units: 400}
	h := stage.History{
		View:   func(out []measure.Entry) []measure.Entry { return append(out, entries...) },
		Format: events.Anthropic, Rate: measure.NewRate(measure.Profiles[p.Profile], "openai"),
	}
	for _, c := range []struct {
		means       stage.Means
		least, most measure.Tokens
	}{
		{stage.Means{Target: 100, Whole: 100, Least: 4_000, WholeEnough: 6_000}, 3_000, 4_000},
		{stage.Means{Target: 100, Whole: 100, Least: 4_000, WholeEnough: 2_000}, 1_000, 2_000},
		{stage.Means{Target: 100, Whole: 5_000, Least: 4_000, WholeEnough: 6_000}, 4_000, 5_000},
		{stage.Means{Target: 100, Whole: 100, Least: 4_000, WholeEnough: 6_000, Truncate: true}, 0, 2_000},
	} {
		c.means.Summary = s
		if after := stage.MakePlan(h, &p, 200_000, c.means).After; after < c.least || after > c.most {
			t.Errorf("%d tokens are left for %+v, want %d to %d", after, c.means, c.least, c.most)
		}
	}
}

// B6: behind a summary stays what is small or new, as far as there is room.
func TestSummaryKeeps(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens, p.Restore.Enabled = 0, 0, false
	entries := exchangesOf(5, 5000, 5, 5000, 5, 5, 5, 5)
	s := &stage.Summary{Seq: 100, To: events.Position{Turn: 8, Index: 1}, Units: 400}
	plan := planOf(&p, entries, 10_010, s)
	if !plan.Uses(events.StageSummarize) {
		t.Fatalf("no summary is used: %+v", plan.Stages)
	}
	if d := cmp.Diff([]int64{1, 2, 3}, hidden(plan, 8)); d != "" {
		t.Errorf("hidden (-want +got):\n%s", d)
	}
	again := planOf(&p, plan.Entries, 60, nil)
	if got := len(hidden(again, 8)); got < 4 || again.After > again.Before-60 {
		t.Errorf("a second plan hides %d exchanges, and leaves %d of %d", got, again.After, again.Before)
	}
}

// B16: of files that a summary hides, one that calls behind it use comes back before a newer one, and
// the stage counts it; one that has no room is counted as missing.
func TestFilesInUse(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens, p.Restore.Files = 0, 0, 1
	entries := exchangesOf(5000, 5000, 5000, 5, 5)
	entries[7].Path = 3 // the call of turn 4, behind the summary
	read := func(turn, file int) measure.Entry {
		return measure.Entry{
			Seq: measure.Seq(turn), Turn: uint32(turn), Parts: 1, Kind: measure.KindRestored, Role: measure.RoleUser, Op: measure.OpTrim,
			Flags: measure.FlagFirst | measure.FlagRead, Path: dialect.Key(file), Text: 2_000, Base: 500, Ceiling: 2_200,
		}
	}
	h := stage.History{
		View:   func(out []measure.Entry) []measure.Entry { return append(out, entries...) },
		Format: events.Anthropic, Rate: measure.NewRate(measure.Profiles[p.Profile], "openai"),
	}
	for _, c := range []struct {
		target            measure.Tokens
		back              []int64
		missing, restored int64
	}{
		{20_000, []int64{2}, 1, 1},
		{100, nil, 1, 0},
	} {
		plan := stage.MakePlan(h, &p, 200_000, stage.Means{
			Target: c.target, Enough: c.target, Whole: c.target, WholeEnough: c.target, Force: true, All: true,
			Summary: &stage.Summary{Seq: 100, To: events.Position{Turn: 4}, Units: 400},
			Hidden:  slices.Values([]measure.Entry{read(3, 4), read(2, 3)}),
		})
		var back []int64
		for _, x := range plan.Edits {
			if x.Op == events.OpRestore {
				back = append(back, x.Turn)
			}
		}
		last := plan.Stages[len(plan.Stages)-1]
		if d := cmp.Diff(c.back, back); d != "" || last.Missing != c.missing || last.Restored != c.restored {
			t.Errorf("target %d (-want +got):\n%s%+v", c.target, d, last)
		}
	}
}

// Entries that a summary kept are candidates again once media are cleared: before, the target was out
// of its reach.
func TestSummaryKeepsLessOnceMediaAreCleared(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens, p.Restore.Enabled = 0, 0, false
	s := &stage.Summary{Seq: 100, To: events.Position{Turn: 8, Index: 1}, Units: 400}
	kept := planOf(&p, exchangesOf(5, 5000, 5, 5000, 5, 5, 5, 5), 10_010, s)
	if got := len(hidden(kept, 8)); got != 3 {
		t.Fatalf("%d exchanges are hidden", got)
	}
	at := len(kept.Entries) - 1 // in front of the last answer
	picture := measure.Entry{Seq: 9, Turn: 9, Part: 1, Parts: 2, Role: measure.RoleUser, Images: 1}
	entries := slices.Insert(slices.Clone(kept.Entries), at, picture)
	rate := measure.NewRate(measure.Profiles[p.Profile], "openai")
	less := rate.Entry(&picture) + 40
	plan := planOf(&p, entries, less, nil)
	if n := len(cleared(plan)); n != 1 {
		t.Errorf("%d contents are cleared", n)
	}
	if plan.After > plan.Before-less || len(hidden(plan, 8)) <= 3 {
		t.Errorf("%d of %d tokens, %d less are wanted; %v are hidden", plan.After, plan.Before, less, hidden(plan, 8))
	}
}

// B3: a failure that is cleared keeps its first line, and is not cleared further; where the
// policy clears what its reference clears, nothing of it stays.
func TestFailuresKeepTheirFirstLine(t *testing.T) {
	p := policy.Default()
	p.Prune.ProtectTokens, p.Prune.MinimumTokens = 0, 0
	entries := exchangesOf(1000, 5000, 1000, 1000)
	for i := range entries {
		if entries[i].Kind == measure.KindResult {
			entries[i].Flags |= measure.FlagFailed
		}
	}
	plan := planOf(&p, entries, 1, nil)
	want := []events.Edit{{Op: events.OpTrim, Position: events.Position{Turn: 3}, Units: 352, Direction: "head", Lines: 1}}
	if d := cmp.Diff(want, plan.Edits); d != "" {
		t.Errorf("edits (-want +got):\n%s", d)
	}
	least := planOf(&p, entries, 1_000_000, nil)
	if n := len(least.Edits); n != 4 || len(cleared(least)) > 0 {
		t.Errorf("%d failures are cut, %v cleared", n, cleared(least))
	}
	if again := planOf(&p, least.Entries, 1_000_000, nil); len(again.Edits) > 0 {
		t.Errorf("a second plan edits them again: %+v", again.Edits)
	}
	p.Prune.ToTarget = false
	if got := cleared(planOf(&p, entries, 1, nil)); len(got) != 4 {
		t.Errorf("without a target %v are cleared", got)
	}
}
