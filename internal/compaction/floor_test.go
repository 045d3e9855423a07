package compaction_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"

	"pgregory.net/rapid"
)

// A6: whatever usages say, what a session counts is never under a token for each
// 8 bytes in view, and a plan's room is the inverse of what the next call takes.
func TestFloorAndRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Default()
		p.Enabled = false
		p.Profile = rapid.SampledFrom([]string{"default", "default", "seed", "blocks"}).Draw(t, "profile")
		c, err := compaction.NewConfig(p, measure.DefaultWindows())
		if err != nil {
			t.Fatal(err)
		}
		a := newAgent(t, c)
		for i := range rapid.IntRange(1, 12).Draw(t, "turns") {
			turn := object{"format": "openai", "messages": messages(events.OpenAI,
				msg{role: dialect.RoleUser, text: rapid.StringMatching(`[a-z .]{1,400}`).Draw(t, "user")},
				msg{role: dialect.RoleAssistant, text: rapid.StringMatching(`[a-zA-Z0-9日本語 ]{1,400}`).Draw(t, "assistant")})}
			if i == 0 {
				turn["system"] = rapid.StringMatching(`[a-z ]{0,300}`).Draw(t, "system")
			}
			usage := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(1, 2_000), rapid.Int64Range(1, 1<<40)).Draw(t, "input")
			turn["usage"] = object{"input_tokens": usage, "output_tokens": 1}
			a.publish(turn)
			estimate := measure.Tokens(a.ledger.Budget().EstimatedInput)
			if floor := floorOf(a.ledger); estimate < floor {
				t.Fatalf("turn %d: %d tokens, floor %d; %s", i, estimate, floor, a.ledger.Calibration())
			}
			total := measure.Tokens(rapid.Int64Range(0, 200_000).Draw(t, "total"))
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
func floorOf(l *compaction.Ledger) measure.Tokens {
	var bytes int64
	for _, e := range l.Visible() {
		if e.Flags&measure.FlagEmpty == 0 {
			bytes += int64(e.Bytes)
		}
	}
	b := l.Budget().Breakdown
	return min(measure.Tokens((bytes+7)/8), measure.Tokens(b.SystemPrompt+b.History+b.ToolDefinitions))
}

// A7: with a counter, entries hold what it counted, and nothing else changes.
func TestCounter(t *testing.T) {
	p := policy.Default()
	c, err := configOf(t, p).WithCounter(everyByte{})
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, c)
	data, err := codec.Marshal(object{"format": "openai", "messages": messages(events.OpenAI, msg{role: dialect.RoleUser, text: "hello"})})
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
