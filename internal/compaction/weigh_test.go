package compaction_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/stored"
)

// measureText is the entry of a message with one text.
func measureText(s string) compaction.Entry {
	m := events.Message{Role: events.RoleUser, Parts: []events.Part{{Kind: events.PartText, Text: s}}}
	return compaction.Measure(m, compaction.Entry{})[0]
}

// A6: one pass computes all sizes of a text: its UTF-16 units, its bytes, and tokens
// that are neither under a token for each 8 bytes nor over the densest class.
func TestMeasureSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.ToValidUTF8(rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9+/]{0,60}`)).Draw(t, "s"), "?")
		e := measureText(s)
		if want := events.Units(s); int(e.Text) != want || int(e.Bytes) != len(s) {
			t.Fatalf("%d units and %d bytes, want %d and %d", e.Text, e.Bytes, want, len(s))
		}
		if floor := (len(s) + 7) / 8; int(e.Base) < floor {
			t.Fatalf("%d tokens of %d bytes", e.Base, len(s))
		}
		r := measure.NewRate(measure.Profiles["default"], "openai")
		if n := r.Count(s); n > r.Ceiling(int64(e.Text)) {
			t.Fatalf("%d tokens, over the ceiling of %d units", n, e.Text)
		}
	})
}

// A6: what a table of OpenAI's makes of a text, for each class of contents.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       float64 // tokens of o200k_base
	}{
		{"prose", strings.Repeat("It was a bright cold day in April, and the clocks were striking thirteen. ", 20), 321},
		{"code", strings.Repeat("\tfor i, e := range list {\n\t\tif e.Kind == KindCall {\n\t\t\tout[i] = append(out[i], e.Name)\n\t\t}\n\t}\n", 20), 660},
		{"json", strings.Repeat(`{"id":"a81","name":"server","port":8080,"tags":["x","prod"]},`, 20), 421},
		{"log", strings.Repeat("2026-11-20T20:44:07.123Z INFO request done status=200 path=/v1/items took=31ms\n", 20), 620},
		{"chinese", strings.Repeat("我们需要检查这个文件的内容，然后再决定下一步该怎么做。", 20), 321},
		{"base64", strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4", 20), 620},
	} {
		if got := float64(measureText(c.text).Base); got < 0.8*c.want || got > 1.35*c.want {
			t.Errorf("%s: %.0f tokens, want about %.0f", c.name, got, c.want)
		}
	}
}

// A4, A6: arguments count as what a model reads: a line in a JSON string is a
// line, not a backslash and an n.
func TestEscapes(t *testing.T) {
	of := func(args string) uint32 {
		m := events.Message{Role: events.RoleAssistant, Parts: []events.Part{{Kind: events.PartCall, Args: events.Raw(args)}}}
		return compaction.Measure(m, compaction.Entry{})[0].Base
	}
	code := "\tif a {\n\t\treturn \"b\"\n\t}\n"
	raw, err := events.Marshal(map[string]string{"code": strings.Repeat(code, 40)})
	if err != nil {
		t.Fatal(err)
	}
	plain := measureText(strings.Repeat(code, 40)).Base
	if got := of(string(raw)); got < plain || got > plain+20 {
		t.Errorf("%d tokens in JSON, %d as text", got, plain)
	}
}

// A6: whatever usages say, what a session counts is never under a token for each
// 8 bytes in view, and a plan's room is the inverse of what the next call takes.
func TestFloorAndRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := compaction.DefaultPolicy()
		p.Enabled = false
		p.Profile = rapid.SampledFrom([]string{"default", "default", "seed", "blocks"}).Draw(t, "profile")
		c, err := compaction.NewConfig(p, compaction.DefaultWindows())
		if err != nil {
			t.Fatal(err)
		}
		a := newAgent(t, c)
		for i := range rapid.IntRange(1, 12).Draw(t, "turns") {
			turn := object{"format": "openai", "messages": messages(events.OpenAI,
				msg{role: events.RoleUser, text: rapid.StringMatching(`[a-z .]{1,400}`).Draw(t, "user")},
				msg{role: events.RoleAssistant, text: rapid.StringMatching(`[a-zA-Z0-9日本語 ]{1,400}`).Draw(t, "assistant")})}
			if i == 0 {
				turn["system"] = rapid.StringMatching(`[a-z ]{0,300}`).Draw(t, "system")
			}
			usage := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(1, 2_000), rapid.Int64Range(1, 1<<40)).Draw(t, "input")
			turn["usage"] = object{"input_tokens": usage, "output_tokens": 1}
			a.publish(turn)
			estimate := compaction.Tokens(a.ledger.Budget().EstimatedInput)
			if floor := floorOf(a.ledger); estimate < floor {
				t.Fatalf("turn %d: %d tokens, floor %d; %s", i, estimate, floor, a.ledger.Calibration())
			}
			total := compaction.Tokens(rapid.Int64Range(0, 200_000).Draw(t, "total"))
			room := a.ledger.AvailableFor(total)
			if room < 0 {
				continue // the fixed parts alone take more
			}
			if a.ledger.Input(room) > total || a.ledger.Input(room+1) <= total {
				t.Fatalf("turn %d: room %d for %d: takes %d, one more %d", i, room, total, a.ledger.Input(room), a.ledger.Input(room+1))
			}
		}
	})
}

// floorOf is a token for each 8 bytes of what is rendered, and no more than the
// estimate before any usage.
func floorOf(l *compaction.Ledger) compaction.Tokens {
	var bytes int64
	for _, e := range l.Visible() {
		if e.Flags&measure.FlagEmpty == 0 {
			bytes += int64(e.Bytes)
		}
	}
	b := l.Budget().Breakdown
	return min(compaction.Tokens((bytes+7)/8), compaction.Tokens(b.SystemPrompt+b.History+b.ToolDefinitions))
}

// A7: with a counter, entries hold what it counted, and nothing else changes.
func TestCounter(t *testing.T) {
	p := compaction.DefaultPolicy()
	c, err := configOf(t, p).WithCounter(everyByte{})
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, c)
	data, err := events.Marshal(object{"format": "openai", "messages": messages(events.OpenAI, msg{role: events.RoleUser, text: "hello"})})
	if err != nil {
		t.Fatal(err)
	}
	turn, _, err := stored.ReadTurn(c, a.ledger, data, 1)
	if err != nil {
		t.Fatal(err)
	}
	compaction.Apply(a.ledger, turn, nil, c)
	if e := a.ledger.Entries()[0]; e.Base != 5 || e.Text != 5 {
		t.Errorf("base %d of %d units", e.Base, e.Text)
	}
	if got := string(c.Text()); !strings.Contains(got, `"counter":"bytes"`) {
		t.Errorf("the config does not name its counter: %s", got)
	}
}

// everyByte counts a token for each byte.
type everyByte struct{}

func (everyByte) Name() string            { return "bytes" }
func (everyByte) Count(text string) int64 { return int64(len(text)) }
