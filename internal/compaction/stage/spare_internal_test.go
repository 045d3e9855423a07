package stage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/idents"
)

// Spare lines are read as they were written; what is cut short is an error.
func TestSpareStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, 1<<40)
		line := rapid.Custom(func(t *rapid.T) SpareLine {
			at := events.Position{Turn: number.Draw(t, "turn"), Index: number.Draw(t, "index"), Part: number.Draw(t, "part")}
			return SpareLine{at, number.Draw(t, "units"), rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "keys")}
		})
		want := Spare(rapid.SliceOf(line).Draw(t, "lines"))
		data, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Spare
		if err := got.UnmarshalText(data); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
	var s Spare
	for _, short := range []string{"gA==", "AQEBAQI=", "7"} {
		if err := s.UnmarshalText([]byte(short)); err == nil {
			t.Errorf("%s was read as %v", short, s)
		}
	}
}

// A line whose message the choice keeps is in view, one without room is missing, and the newest come first.
func TestKeepUsed(t *testing.T) {
	const name, tokens = 7, 1_000
	at := func(turn int64) events.Position { return events.Position{Turn: turn} }
	whole := measure.Entry{Seq: 2, Turn: 2, Parts: 1, Kind: measure.KindWords, Role: measure.RoleUser, Flags: measure.FlagFirst, Text: 40}
	trimmed := whole
	trimmed.Seq, trimmed.Turn = 3, 3
	trimmed.Set(&events.Edit{Op: events.OpTrim, Units: 30})
	for _, c := range []struct {
		name          string
		lines         Spare
		room          measure.Tokens
		missing, kept int
	}{
		{"nothing is used", Spare{{At: at(1), Units: 40, Keys: []idents.Key{9}}}, tokens, 0, 0},
		{"it is kept", Spare{{At: at(1), Units: 40, Keys: []idents.Key{9, name}}}, tokens, 1, 1},
		{"its message is in view", Spare{{At: at(2), Units: 40, Keys: []idents.Key{name}}}, tokens, 0, 0},
		{"a part of its message is in view", Spare{{At: at(3), Units: 40, Keys: []idents.Key{name}}}, tokens, 1, 1},
		{"there is no room", Spare{{At: at(1), Units: 40, Keys: []idents.Key{name}}}, 0, 1, 0},
		{"there is room for the second", Spare{{At: at(1), Units: 4000, Keys: []idents.Key{name}}, {At: at(1), Units: 40, Keys: []idents.Key{name}}}, 100, 2, 1},
	} {
		s := &Summary{Seq: 9, To: at(3), Units: 100, Spare: c.lines}
		s = s.Use([]idents.Key{name})
		e := s.entry()
		e.Covers(at(1), at(3))
		d := NewDraft([]measure.Entry{e, whole, trimmed}, events.Anthropic, measure.NewRate(measure.Profiles["default"], "anthropic"))
		d.edits = []events.Edit{{Op: events.OpCondense, Position: at(1), Seq: 9, Units: 100}}
		d.before = 2 * tokens
		d.keepUsed(s, &Means{Whole: d.Repaired() + c.room, WholeEnough: tokens})
		if d.missingLines != c.missing || d.keeps != c.kept {
			t.Errorf("%s: %d missing, %d kept, want %d and %d", c.name, d.missingLines, d.keeps, c.missing, c.kept)
		}
		if got := len(d.edits[0].Spare); got != c.kept {
			t.Errorf("%s: the edit has %d lines", c.name, got)
		}
	}
}
