package facts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
	"compactd/internal/testkit/linear"
)

func read(t *testing.T, raw ...string) []dialect.Message {
	t.Helper()
	var all []codec.Raw
	for _, r := range raw {
		all = append(all, codec.Raw(r))
	}
	out, err := events.Anthropic.ReadAll(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func turns(t *testing.T) []facts.Turn {
	return []facts.Turn{
		{Number: 1, Messages: read(
			t,
			`{"role":"user","content":"Fix the   build,\nplease"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Edit","input":{"file_path":"/src/a.go","old_string":"x","new_string":"y"}},
				{"type":"tool_use","id":"2","name":"Bash","input":{"command":"make \"all\" -j4"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"done"},
				{"type":"tool_result","tool_use_id":"2","content":"Exit code 2\nno rule","is_error":true},{"type":"text","text":"<system-reminder>no user wrote it"}]}`,
		)},
		{Number: 2, Messages: read(
			t,
			`{"role":"assistant","content":[{"type":"tool_use","id":"3","name":"TodoWrite","input":{"todos":[{"content":"old","status":"completed"},{"content":"write a rule","status":"pending"}]}},
				{"type":"tool_use","id":"4","name":"Write","input":{"file_path":"/src/b.go"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"4","content":"Error: read-only","is_error":true}]}`,
		)},
	}
}

// Facts that must not be dropped are found up to a position, each once.
func TestOf(t *testing.T) {
	first := &facts.Facts{
		Paths:    []facts.Probe{{"/src/a.go"}},
		Users:    []facts.Probe{{"Fix the build, please"}},
		Failures: []facts.Probe{{"Exit code 2", `make "all" -j4`}},
	}
	all := *first
	all.Failures = append(all.Failures, facts.Probe{"Error: read-only"})
	all.Todos = []facts.Probe{{"write a rule"}}
	for _, x := range []struct {
		to   events.Position
		want *facts.Facts
	}{{events.Position{Turn: 1, Index: 9}, first}, {events.Position{Turn: 2, Index: 9}, &all}, {events.Position{}, &facts.Facts{}}} {
		if diff := cmp.Diff(x.want, facts.Of(turns(t), x.to), cmpopts.IgnoreUnexported(facts.Facts{})); diff != "" {
			t.Errorf("up to %v (-want +got):\n%s", x.to, diff)
		}
	}
}

// Each fact has the turns that hold it.
func TestTurns(t *testing.T) {
	all := slices.Concat(turns(t), turns(t))
	all[2].Number, all[3].Number = 3, 4
	f := facts.Of(all, events.Position{Turn: 9})
	if got := f.Turns(f.Failures[1]); !slices.Equal(got, []int64{2, 2, 4, 4}) {
		t.Errorf("%q is in turns %v", f.Failures[1], got)
	}
}

// A history that lost nothing holds all; one that lost its results, not the
// failures; a line of a record holds a failure with its command.
func TestHolds(t *testing.T) {
	f := facts.Of(turns(t), events.Position{Turn: 3})
	var whole []dialect.Message
	for _, turn := range turns(t) {
		whole = append(whole, turn.Messages...)
	}
	for _, x := range []struct {
		name    string
		history []dialect.Message
		want    map[string]facts.Share
	}{
		{"whole", whole, map[string]facts.Share{"paths": {Kept: 1, All: 1}, "user_messages": {Kept: 1, All: 1}, "failures": {Kept: 2, All: 2}, "todos": {Kept: 1, All: 1}, "instructions": {}}},
		{"calls alone", whole[:2], map[string]facts.Share{"paths": {Kept: 1, All: 1}, "user_messages": {Kept: 1, All: 1}, "failures": {All: 2}, "todos": {All: 1}, "instructions": {}}},
		{"a record", read(t, `{"role":"user","content":"failed: Exit code 2 of make \"all\" -j4 x\nopen: write a rule"}`), map[string]facts.Share{
			"paths": {All: 1}, "user_messages": {All: 1}, "failures": {Kept: 1, All: 2}, "todos": {Kept: 1, All: 1}, "instructions": {},
		}},
		{"nothing", nil, map[string]facts.Share{"paths": {All: 1}, "user_messages": {All: 1}, "failures": {All: 2}, "todos": {All: 1}, "instructions": {}}},
	} {
		got, lines := map[string]facts.Share{}, facts.Lines(x.history)
		for _, k := range facts.Kinds {
			got[k.Name], _ = lines.Holds(k.Of(f))
		}
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, diff)
		}
	}
	if r := (facts.Share{}).Ratio(); r != 1 {
		t.Errorf("of no facts %v are kept", r)
	}
}

// Finding facts costs in proportion to the messages.
func TestOfLinear(t *testing.T) {
	const n, most = 4000, 2
	var sessions [2][]facts.Turn
	for size := range sessions {
		turn := facts.Turn{Number: 1}
		for i := range n << (2 * size) {
			turn.Messages = append(turn.Messages, dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: fmt.Sprintf("Then do number %d", i)}}})
		}
		sessions[size] = []facts.Turn{turn}
	}
	got := linear.RatioOf(n, most, func(size int) linear.Cost {
		return linear.Of(1, func() {
			if f := facts.Of(sessions[size], events.Position{Turn: 2}); len(f.Users) != len(sessions[size][0].Messages) {
				t.Errorf("%d facts", len(f.Users))
			}
		})
	})
	if got.Worst() > most {
		t.Errorf("a message costs %.2f times as much CPU and %.2f as many bytes among four times as many", got.CPU, got.Bytes)
	}
}
