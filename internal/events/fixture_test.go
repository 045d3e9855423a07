package events

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
)

// fixtures returns the payloads under testdata/v1, by name. They are what
// agents and workers of version 1 send, and are never edited: a change that
// breaks one breaks an agent.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "v1", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = data
	}
	return out
}

// There is a fixture for each kind that agents send or receive.
func TestFixturesAreEnvelopes(t *testing.T) {
	var names []string
	for name, data := range fixtures(t) {
		names = append(names, name)
		env, err := openEnvelope(data, MaxTurnBytes)
		if err == nil && strings.HasPrefix(name, string(KindTurn)) {
			env.based()
		}
		if err == nil {
			env.check()
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(env.problems) > 0 {
			t.Errorf("%s: %v", name, env.problems)
		}
	}
	all := strings.Join(names, " ")
	for _, kind := range []Kind{KindTurn, KindOverflow, KindCompact, KindRewind, KindEnd, KindForget, KindCompacted, KindBudget, KindRejected, KindForgotten, KindErased} {
		if !strings.Contains(all+" ", string(kind)) {
			t.Errorf("no fixture of kind %s", kind)
		}
	}
}

func TestTurnFixtures(t *testing.T) {
	type facts struct {
		Turn, Generation, Replaces int64
		Model                      *Model
		System, Tools              bool
		Messages                   int
		Usage                      *Usage
	}
	turns := map[string]facts{
		"turn-anthropic": {7, 2, 0, &Model{"anthropic", "claude-sonnet-4-20250514", 8192, 0}, true, true, 4, &Usage{412, 20480, 1024, 96}},
		"turn-openai":    {1, 0, 0, &Model{"openai", "gpt-4o", 0, 0}, true, true, 4, &Usage{476, 1024, 0, 30}},
		"turn-neurolink": {1, 0, 1, &Model{"google", "gemini-2.5-pro", 0, 0}, true, true, 4, &Usage{600, 300, 0, 100}},
		"turn-minimal":   {Messages: 1},
	}
	all := fixtures(t)
	for name, want := range turns {
		turn, err := DecodeTurn(all[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := facts{turn.Number, turn.Generation, turn.ReplacesFrom, turn.Model, turn.System != nil, turn.Tools != nil, len(turn.Messages), turn.Usage}
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		f := cmp.Or(turn.Format, OpenAI)
		msgs, err := f.ReadAll(turn.Messages)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		out, err := writeAll(f, msgs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := gocmp.Diff(turn.Messages, out); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if bad := validate.Messages(f, out); len(bad) > 0 {
			t.Errorf("%s: %v", name, bad)
		}
	}
}

func TestOutcomeFixtures(t *testing.T) {
	all := fixtures(t)
	for _, k := range append(slices.Clone(OutcomeKinds), KindErased) {
		first, err := DecodeOutcome(k, all[string(k)])
		if err != nil {
			t.Errorf("%s: %v", k, err)
			continue
		}
		data, err := codec.Marshal(first)
		if err != nil {
			t.Errorf("%s: %v", k, err)
		}
		again, err := DecodeOutcome(k, data)
		if err != nil {
			t.Errorf("%s: %v", k, err)
		}
		// White space within raw messages does not survive Marshal.
		if d := gocmp.Diff(first, again, gocmp.Transformer("compact", compactRaw)); d != "" {
			t.Errorf("%s: %s", k, d)
		}
		if twice, err := codec.Marshal(again); err != nil || string(twice) != string(data) {
			t.Errorf("%s: written as %s, then as %s, %v", k, data, twice, err)
		}
	}
}

func TestCompactedFixture(t *testing.T) {
	v, err := DecodeOutcome(KindCompacted, fixtures(t)["compacted"])
	if err != nil {
		t.Fatal(err)
	}
	c := v.(*Compacted)
	if c.Generation != 3 || !c.Compacted || c.Code != "" || c.Reason != ReasonThreshold || c.Through != (Through{4711, 118}) ||
		c.TokensSaved != 50_000 || c.Budget.Level != LevelInfo || c.Budget.Breakdown.History != 100_000 {
		t.Errorf("got %+v", c)
	}
	want := []Edit{
		{Op: OpClear, Position: Position{Turn: 3, Index: 1}},
		{Op: OpTruncate, Position: Position{Turn: 1}, To: &Position{Turn: 2, Index: 4}},
	}
	if d := gocmp.Diff(want, c.Edits); d != "" {
		t.Error(d)
	}
	if got := validate.Messages(c.Format, c.Messages); len(got) > 0 {
		t.Error(got)
	}
	if !strings.Contains(string(c.Messages[1]), `"path": "a", "path": "b", "n": 1.0`) {
		t.Errorf("got %s", c.Messages[1])
	}
}

// Contents that were cut, and results that are shown again or no longer.
func TestTrimmedFixture(t *testing.T) {
	v, err := DecodeOutcome(KindCompacted, fixtures(t)["compacted-trim"])
	if err != nil {
		t.Fatal(err)
	}
	c := v.(*Compacted)
	want := []Edit{
		{Op: OpTrim, Position: Position{Turn: 3, Index: 1, Part: 2}, Units: 51_392, Direction: "tail", Lines: 2_000},
		{Op: OpTruncate, Position: Position{Turn: 1, Index: 2}, To: &Position{Turn: 2, Index: 4}},
		{Op: OpTrim, Position: Position{Turn: 4}, Units: 9_465},
		{Op: OpRestore, Position: Position{Turn: 1, Index: 3}},
		{Op: OpRestore, Position: Position{Turn: 2, Index: 1}, Units: 3_292},
	}
	if d := gocmp.Diff(want, c.Edits); d != "" {
		t.Error(d)
	}
	if got := validate.Messages(c.Format, c.Messages); len(got) > 0 {
		t.Error(got)
	}
}

func TestRejectedFixture(t *testing.T) {
	v, err := DecodeOutcome(KindRejected, fixtures(t)["rejected"])
	if err != nil {
		t.Fatal(err)
	}
	if r := v.(*Rejected); r.Seq != 4713 || r.Kind != KindTurn || r.Code != CodeTurnGap || r.Expected != 120 || r.Hint != Codes[r.Code].Hint {
		t.Errorf("got %+v", r)
	}
}

func TestDecodeOutcomeErrors(t *testing.T) {
	if v, err := DecodeOutcome(KindTurn, []byte(`{}`)); err == nil {
		t.Errorf("got %v, want an error", v)
	}
	if v, err := DecodeOutcome(KindBudget, []byte(`{"level":7}`)); err == nil {
		t.Errorf("got %v, want an error", v)
	}
}

func compactRaw(raw codec.Raw) string {
	data, _ := codec.Marshal(raw) // valid: it was decoded
	return string(data)
}
