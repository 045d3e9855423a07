package stage_test

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// Recorded answers of the reference system: of the release that its document describes. The newest result stays though it crosses the bound, as in the reference; a
// result that is smaller than the placeholder stays too, unlike there.
func TestPrune(t *testing.T) {
	type message struct {
		role  string // u, a, c for a tool's call, r for its result
		tool  string
		units int
	}
	tools := func(units int, names ...string) []message {
		out := []message{{"u", "", 60}}
		for _, n := range names {
			out = append(out, message{"c", n, 0}, message{"r", n, units})
		}
		return append(out, message{"a", "", 80})
	}
	boundary := tools(4000, "http_get", "bash", "read_file")
	boundary[6].units = 4028
	cleared := tools(900, "list_dir", "run_tests", "run_tests", "grep")
	cleared[2].units = len(measure.ClearText)
	for _, c := range []struct {
		name, provider   string
		protect, minimum measure.Tokens
		protected        []string
		messages         []message
		saved            measure.Tokens
		clears           []int64
	}{
		{"defaults-not-enough", "", 40000, 20000, []string{"skill"}, tools(2000, "read_file", "run_tests", "run_tests", "bash", "read_file", "run_tests"), 0, nil},
		{"protected-tool-skill", "", 0, 1, []string{"skill"}, tools(900, "skill", "skill", "skill", "skill", "skill"), 0, nil},
		{"protected-tools-custom", "", 0, 1, []string{"read_file", "grep"}, tools(900, "run_tests", "list_dir", "http_get", "bash", "bash", "grep"), 1260, []int64{2, 4, 6, 8, 10}},
		{"protected-empty-list", "", 0, 1, nil, tools(900, "skill", "skill", "skill", "skill"), 1008, []int64{2, 4, 6, 8}},
		{"zero-min-savings-nothing-to-do", "", 100000, 0, []string{"skill"}, tools(80, "grep", "bash"), 0, nil},
		{"boundary-result-kept-whole", "", 10, 1, []string{"skill"}, boundary, 2286, []int64{2, 4}},
		{"already-cleared-and-metadata", "", 100, 1, []string{"skill"}, cleared, 504, []int64{4, 6}},
		{"rand-3", "sagemaker", 2500, 1, []string{"run_tests", "skill"}, []message{
			{"u", "", 18},
			{"a", "", 143},
			{"u", "", 28},
			{"c", "list_dir", 0},
			{"c", "bash", 0},
			{"r", "list_dir", 900},
			{"r", "bash", 900},
			{"a", "", 245},
			{"u", "", 65},
			{"c", "read_file", 0},
			{"c", "run_tests", 0},
			{"c", "list_dir", 0},
			{"r", "read_file", 935},
			{"r", "run_tests", 900},
			{"r", "list_dir", 900},
			{"a", "", 212},
			{"u", "", 54},
			{"c", "grep", 0},
			{"r", "grep", 900},
			{"a", "", 386},
		}, 0, nil},
		{"rand-6", "", 900, 500, []string{"skill"}, []message{
			{"u", "", 290},
			{"c", "http_get", 0},
			{"r", "http_get", 900},
			{"a", "", 68},
			{"u", "", 319},
			{"a", "", 147},
			{"u", "", 169},
			{"c", "read_file", 0},
			{"c", "run_tests", 0},
			{"r", "read_file", 937},
			{"r", "run_tests", 900},
			{"a", "", 103},
			{"u", "", 163},
			{"c", "run_tests", 0},
			{"r", "run_tests", 900},
			{"c", "http_get", 0},
			{"r", "http_get", 900},
			{"a", "", 72},
			{"u", "", 103},
			{"c", "grep", 0},
			{"r", "grep", 900},
			{"a", "", 357},
			{"u", "", 186},
			{"c", "read_file", 0},
			{"r", "read_file", 936},
			{"a", "", 325},
			{"u", "", 66},
			{"a", "", 280},
			{"u", "", 349},
			{"c", "run_tests", 0},
			{"r", "run_tests", 900},
			{"c", "read_file", 0},
			{"r", "read_file", 932},
			{"a", "", 209},
			{"u", "", 123},
			{"c", "bash", 0},
			{"r", "bash", 900},
			{"a", "", 214},
		}, 1524, []int64{2, 9, 10, 14, 16, 20}},
	} {
		var entries []measure.Entry
		for i, m := range c.messages {
			p := dialect.Part{Text: strings.Repeat("x", m.units), Tool: m.tool}
			role := dialect.RoleAssistant
			switch m.role {
			case "u":
				role = dialect.RoleUser
			case "c":
				p.Kind = dialect.PartCall
			case "r":
				role, p.Kind = dialect.RoleTool, dialect.PartResult
			}
			entries = append(entries, measure.Measure(
				dialect.Message{Role: role, Parts: []dialect.Part{p}}, measure.Entry{Turn: 1, Index: uint32(i)})...)
		}
		own := policy.Default()
		own.Summarize.Enabled = false
		own.Prune = policy.Prune{Enabled: true, ProtectTokens: c.protect, MinimumTokens: c.minimum, ProtectedTools: c.protected}
		own.Deduplicate.Enabled, own.Truncate.Enabled = false, false
		rate := measure.NewRate(measure.Profiles["seed"], c.provider)
		plan := targeted(entries, events.NeuroLink, rate, &own, 128000, 0)
		var clears []int64
		for _, e := range plan.Edits {
			clears = append(clears, e.Index)
		}
		slices.Sort(clears)
		if got := plan.Before - plan.After; got != c.saved || !slices.Equal(clears, c.clears) {
			t.Errorf("%s: saved %d, want %d; cleared %v, want %v", c.name, got, c.saved, clears, c.clears)
		}
	}
}
