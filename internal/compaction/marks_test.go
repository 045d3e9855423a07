package compaction_test

import (
	"fmt"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// The three ways to set the trigger (A11): from which input on compaction runs,
// and from which on it no longer waits.
func TestTriggers(t *testing.T) {
	for _, c := range []struct {
		policy                          string
		window, reserve                 compaction.Tokens
		available, info, trigger, limit compaction.Tokens
	}{
		{`{}`, 200_000, 64_000, 136_000, 81_600, 108_800, 136_000},
		{`{"threshold":0.7,"target":0.5,"info":0.5}`, 200_000, 64_000, 136_000, 68_000, 95_200, 136_000},
		{`{"trigger":"tokens","threshold_tokens":50000}`, 200_000, 64_000, 136_000, 37_500, 50_000, 136_000},
		{`{"trigger":"tokens","threshold_tokens":500000}`, 200_000, 64_000, 136_000, 102_000, 136_000, 136_000},
		{`{"trigger":"buffer"}`, 200_000, 64_000, 180_000, 125_250, 167_000, 177_000},
		{`{"trigger":"buffer"}`, 1_000_000, 64_000, 980_000, 725_250, 967_000, 977_000},
		{`{"trigger":"buffer"}`, 100_000, 35_000, 80_000, 55_125, 73_500, 78_500},
		{`{"trigger":"buffer"}`, 200_000, 8_000, 192_000, 134_250, 179_000, 189_000},
	} {
		t.Run(fmt.Sprintf("%s window %d", c.policy, c.window), func(t *testing.T) {
			p, err := compaction.DefaultPolicy().With(events.Raw(c.policy))
			if err != nil {
				t.Fatal(err)
			}
			level := func(total compaction.Tokens) (events.Level, bool) {
				b := compaction.CheckBudget(compaction.Prompt{History: total}, c.window, c.reserve, &p)
				if b.AvailableInput != int64(c.available) {
					t.Fatalf("available input is %d, want %d", b.AvailableInput, c.available)
				}
				return b.Level, b.ShouldCompact
			}
			for _, x := range []struct {
				total   compaction.Tokens
				want    events.Level
				compact bool
			}{
				{c.info - 1, events.LevelOK, false},
				{c.info, events.LevelInfo, false},
				{c.trigger - 1, events.LevelInfo, false},
				{c.trigger, events.LevelWarning, true},
				{c.limit, events.LevelBlocking, true},
			} {
				if c.trigger == c.limit && x.want == events.LevelWarning {
					continue
				}
				if got, compact := level(x.total); got != x.want || compact != x.compact {
					t.Errorf("at %d: level %s, compact %v; want %s, %v", x.total, got, compact, x.want, x.compact)
				}
			}
		})
	}
}

// A trigger that cannot be is refused with every problem.
func TestBadTriggers(t *testing.T) {
	for _, bad := range []string{`{"trigger":"always"}`, `{"trigger":"tokens"}`, `{"threshold_tokens":-1}`} {
		if _, err := compaction.DefaultPolicy().With(events.Raw(bad)); events.CodeOf(err) != events.CodeBadPolicy {
			t.Errorf("%s: %v, want %s", bad, err, events.CodeBadPolicy)
		}
	}
}
