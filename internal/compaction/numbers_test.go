package compaction_test

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// The wants of this file are recorded answers of the reference system: of the
// release that its document describes, but for reserves and windows.

// Sizes are in UTF-16 units of the recorded texts; tools are in tokens, since the
// reference counts their JSON without margin or multiplier.
func TestCheckBudget(t *testing.T) {
	for _, c := range []struct {
		name, provider    string
		window, maxOutput measure.Tokens
		trigger           measure.PPM
		system, current   int64
		tools             measure.Tokens
		messages, files   []int64
		total, available  int64
		history           measure.Tokens
		within, compact   bool
	}{
		{"empty", "openai", 128000, 0, 0, 0, 0, 0, nil, nil, 0, 83200, 0, true, false},
		{"max-tokens-eats-window", "openai", 8192, 8192, 0, 0, 40, 0, nil, nil, 16, 0, 0, false, true},
		{"exact-threshold-is-compact", "openai", 8192, 7192, 0, 0, 3029, 0, nil, nil, 876, 1000, 0, true, true},
		{"threshold-one", "openai", 8192, 0, 1_000_000, 18000, 0, 0, nil, nil, 5179, 5324, 0, true, false},
		{"rand-0", "lm-studio", 128000, 0, 0, 0, 399, 0, []int64{43, 0, 900, 0, 2500, 128, 27, 184}, nil, 1265, 83200, 1146, true, false},
		{"rand-1", "azure", 8192, 7600, 950_000, 444, 131, 0, []int64{99, 0, 0, 300, 80, 245, 164, 196, 51, 0, 300, 0, 2500, 206}, []int64{615, 764}, 1849, 592, 1277, false, true},
		{"rand-3", "openai", 8192, 6000, 0, 992, 0, 298, []int64{37, 0, 0, 335, 300, 715, 742, 278, 851, 0, 80, 362}, nil, 1730, 2192, 1142, true, false},
		{"rand-4", "groq", 128000, 127000, 0, 305, 0, 201, []int64{647, 0, 0, 0, 900, 900, 300, 806, 423, 0, 900, 629}, []int64{1742, 564}, 2619, 1000, 1660, false, true},
		{"rand-7", "azure", 8192, 7600, 0, 538, 557, 64, []int64{372, 0, 0, 0, 80, 2500, 900, 367, 656, 850}, nil, 2101, 592, 1712, false, true},
		{"rand-8", "bedrock", 200000, 0, 0, 0, 0, 82, []int64{133, 0, 0, 2535, 2530, 53, 627, 161, 286, 702}, nil, 2640, 136000, 2558, true, false},
		{"rand-11", "azure", 8192, 7000, 0, 422, 239, 0, []int64{117, 0, 80, 143, 62, 88, 142, 128}, nil, 479, 1192, 280, true, false},
	} {
		r := measure.NewRate(measure.Profiles["seed"], c.provider)
		framed := func(units int64) measure.Tokens {
			if units == 0 {
				return 0
			}
			return r.Text(units) + r.PerMessage
		}
		p := measure.Prompt{System: framed(c.system), Current: framed(c.current), Tools: c.tools}
		for i, units := range c.messages {
			if i == 0 {
				p.History = r.PerConversation
			}
			e := measure.Entry{Role: measure.RoleUser, Flags: measure.FlagFirst, Text: uint32(units)}
			p.History += r.Entry(&e)
		}
		for _, units := range c.files {
			p.Files += r.Text(units)
		}
		own := withoutSummaries()
		own.Threshold = max(own.Threshold, c.trigger)
		b := checkBudget(p, c.window, measure.OutputReserve(c.window, c.maxOutput), &own)
		if b.EstimatedInput != c.total || b.AvailableInput != c.available || p.History != c.history ||
			b.WithinBudget != c.within || b.ShouldCompact != c.compact {
			t.Errorf("%s: %+v", c.name, b)
		}
	}
}

// The newest result stays though it crosses the bound, as in the reference; a
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
			p := events.Part{Text: strings.Repeat("x", m.units), Tool: m.tool}
			role := events.RoleAssistant
			switch m.role {
			case "u":
				role = events.RoleUser
			case "c":
				p.Kind = events.PartCall
			case "r":
				role, p.Kind = events.RoleTool, events.PartResult
			}
			entries = append(entries, measure.Measure(
				events.Message{Role: role, Parts: []events.Part{p}}, measure.Entry{Turn: 1, Index: uint32(i)})...)
		}
		own := withoutSummaries()
		own.Prune = policy.Prune{Enabled: true, ProtectTokens: c.protect, MinimumTokens: c.minimum, ProtectedTools: c.protected}
		own.Deduplicate.Enabled, own.Truncate.Enabled = false, false
		rate := measure.NewRate(measure.Profiles["seed"], c.provider)
		plan := makePlan(entries, events.NeuroLink, rate, &own, 128000, 0)
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
