package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// checkBudget is the budget with what the policy leaves of an output reserve.
func checkBudget(p measure.Prompt, window, reserve measure.Tokens, policy *policy.Policy) events.Budget {
	reserve = policy.Reserve(reserve)
	m := policy.Thresholds(window, reserve, p.Fixed, window)
	return m.BudgetOf(p, window, policy)
}

// The three ways to set the trigger (A11), and where each level begins (A12): a
// level lasts until the next one; -1 is one that is not emitted.
func TestTriggers(t *testing.T) {
	const never = -1
	for _, c := range []struct {
		policy                                              string
		window, reserve, available                          measure.Tokens
		info, warning, error, compacting, trigger, blocking measure.Tokens
	}{
		{`{}`, 200_000, 64_000, 136_000, 81_600, 108_800, never, never, 108_800, 136_000},
		{`{"threshold":0.7,"target":0.5,"info":0.5}`, 200_000, 64_000, 136_000, 68_000, 95_200, never, never, 95_200, 136_000},
		{`{"enabled":false}`, 200_000, 64_000, 136_000, 81_600, 108_800, never, never, 108_800, 136_000},
		{`{"trigger_mode":"tokens","threshold_tokens":50000}`, 200_000, 64_000, 136_000, 37_500, 45_000, 47_500, 50_000, 50_000, 136_000},
		{`{"trigger_mode":"tokens","threshold_tokens":500000}`, 1_000_000, 64_000, 936_000, 375_000, 480_000, 490_000, 500_000, 500_000, 936_000},
		{`{"trigger_mode":"tokens","threshold_tokens":500000}`, 200_000, 64_000, 136_000, 102_000, 122_400, 129_200, never, 136_000, 136_000},
		{`{"trigger_mode":"buffer"}`, 200_000, 64_000, 180_000, 125_250, 147_000, 157_000, 167_000, 167_000, 177_000},
		{`{"trigger_mode":"buffer"}`, 1_000_000, 64_000, 980_000, 725_250, 947_000, 957_000, 967_000, 967_000, 977_000},
		{`{"trigger_mode":"buffer"}`, 100_000, 35_000, 80_000, 55_125, 63_500, 68_500, 73_500, 73_500, 78_500},
		{`{"trigger_mode":"buffer"}`, 200_000, 8_000, 192_000, 134_250, 159_000, 169_000, 179_000, 179_000, 189_000},
		{`{"trigger_mode":"buffer","enabled":false}`, 200_000, 64_000, 180_000, 125_250, 160_000, 170_000, never, 167_000, 177_000},
		{`{"trigger_mode":"buffer","buffers":{"error_tokens":20000}}`, 200_000, 64_000, 180_000, 125_250, never, 147_000, 167_000, 167_000, 177_000},
		{`{"trigger_mode":"buffer","limit_tokens":179000}`, 200_000, 64_000, 180_000, 125_250, 147_000, 157_000, 167_000, 167_000, 179_000},
		{`{"trigger_mode":"buffer","limit_tokens":100000}`, 200_000, 64_000, 180_000, 75_000, 80_000, 90_000, never, 100_000, 100_000},
		{`{"limit_tokens":120000}`, 200_000, 64_000, 136_000, 81_600, 108_800, never, never, 108_800, 120_000},
		{`{"threshold_cap":0.5}`, 200_000, 64_000, 136_000, 51_000, 68_000, never, never, 68_000, 136_000},
		{`{"threshold_cap":0.9}`, 200_000, 64_000, 136_000, 81_600, 108_800, never, never, 108_800, 136_000},
		{`{"trigger_mode":"buffer","threshold_cap":0.5}`, 200_000, 64_000, 180_000, 67_500, 70_000, 80_000, 90_000, 90_000, 177_000},
		{`{"trigger_mode":"buffer","threshold_cap":0.95}`, 200_000, 64_000, 180_000, 125_250, 147_000, 157_000, 167_000, 167_000, 177_000},
	} {
		t.Run(fmt.Sprintf("%s window %d", c.policy, c.window), func(t *testing.T) {
			p, err := policy.Default().With(codec.Raw(c.policy))
			if err != nil {
				t.Fatal(err)
			}
			below := events.LevelOK
			for _, x := range []struct {
				from  measure.Tokens
				level events.Level
			}{
				{c.info, events.LevelInfo},
				{c.warning, events.LevelWarning},
				{c.error, events.LevelError},
				{c.compacting, events.LevelCompacting},
				{c.blocking, events.LevelBlocking},
			} {
				if x.from == never {
					continue
				}
				for _, at := range []measure.Tokens{x.from - 1, x.from} {
					b := checkBudget(measure.Prompt{History: at}, c.window, c.reserve, &p)
					if b.AvailableInput != int64(c.available) {
						t.Fatalf("available input is %d, want %d", b.AvailableInput, c.available)
					}
					want := below
					if at == x.from {
						want = x.level
					}
					if b.Level != want || b.ShouldCompact != (at >= c.trigger) {
						t.Errorf("at %d: level %s, compact %v; want %s, %v", at, b.Level, b.ShouldCompact, want, at >= c.trigger)
					}
				}
				below = x.level
			}
		})
	}
}

// A summary has a smaller part of a smaller target, but never more than its policy allows.
func TestCeiling(t *testing.T) {
	for _, c := range []struct {
		policy          string
		available, want measure.Tokens
	}{
		{`{}`, 136_000, 5_440},
		{`{"threshold":0.9,"target":0.8}`, 136_000, 5_440},
		{`{"target":0.3}`, 136_000, 2_720},
		{`{"target":0.12}`, 136_000, 1_088},
		{`{"target":0.01}`, 136_000, 1_000},
		{`{"target":0.01,"summarize":{"ceiling_tokens":500}}`, 136_000, 500},
		{`{"target":0.3}`, 4_000, 400},
	} {
		p, err := policy.Default().With(codec.Raw(c.policy))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Ceiling(c.available); got != c.want {
			t.Errorf("%s of %d: %d tokens, want %d", c.policy, c.available, got, c.want)
		}
	}
}

// The remaining room is emitted in percent of the way to the trigger (A12), where nothing
// is compacted of the way to the end of the input.
func TestPercentLeft(t *testing.T) {
	for _, c := range []struct {
		policy  string
		history measure.Tokens
		want    int64
	}{
		{`{"trigger_mode":"buffer"}`, 0, 100},
		{`{"trigger_mode":"buffer"}`, 83_500, 50},
		{`{"trigger_mode":"buffer"}`, 166_164, 1},
		{`{"trigger_mode":"buffer"}`, 166_166, 0},
		{`{"trigger_mode":"buffer"}`, 170_000, 0},
		{`{"trigger_mode":"buffer","enabled":false}`, 90_000, 50},
		{`{}`, 54_400, 50},
	} {
		p, err := policy.Default().With(codec.Raw(c.policy))
		if err != nil {
			t.Fatal(err)
		}
		if got := checkBudget(measure.Prompt{History: c.history}, 200_000, 64_000, &p).PercentLeft; got != c.want {
			t.Errorf("%s at %d: %d %%, want %d %%", c.policy, c.history, got, c.want)
		}
	}
}

// Whatever the policy and the window, the level never falls while the input
// grows, and what is at the trigger is compacted (A11, A12).
func TestLevelsRise(t *testing.T) {
	order := []events.Level{
		events.LevelOK, events.LevelInfo, events.LevelWarning, events.LevelError, events.LevelCompacting, events.LevelBlocking,
	}
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Default()
		size := rapid.Custom(func(t *rapid.T) measure.Tokens {
			return measure.Tokens(rapid.Int64Range(0, 1<<rapid.IntRange(0, 40).Draw(t, "bits")).Draw(t, "size"))
		})
		p.Enabled = rapid.Bool().Draw(t, "enabled")
		p.TriggerMode = rapid.SampledFrom([]string{"ratio", "tokens", "buffer"}).Draw(t, "trigger")
		p.ThresholdTokens, p.LimitTokens = 1+size.Draw(t, "threshold"), size.Draw(t, "limit")
		p.ThresholdCap = measure.PPM(rapid.Int64Range(1, 1_000_000).Draw(t, "cap"))
		p.Buffers.ScaleBelow = size.Draw(t, "scale")
		window := 1 + size.Draw(t, "window")
		reserve := min(size.Draw(t, "reserve"), window)
		inputs := rapid.SliceOfN(size, 2, 12).Draw(t, "inputs")
		slices.Sort(inputs)
		last := 0
		for _, in := range inputs {
			b := checkBudget(measure.Prompt{History: in}, window, reserve, &p)
			now := slices.Index(order, b.Level)
			if now < last {
				t.Fatalf("%+v: at %d the level is %s, and was %s below", p, in, b.Level, order[last])
			}
			if last = now; now >= 4 && !b.ShouldCompact {
				t.Fatalf("%+v: at %d the level is %s, and nothing is compacted", p, in, b.Level)
			}
			if b.PercentLeft < 0 || b.PercentLeft > 100 {
				t.Fatalf("%+v: at %d %d %% are left", p, in, b.PercentLeft)
			}
		}
	})
}

// A trigger that cannot be is refused with every problem.
func TestBadTriggers(t *testing.T) {
	for _, bad := range []string{
		`{"trigger_mode":"always"}`, `{"trigger_mode":"tokens"}`, `{"threshold_tokens":-1}`, `{"threshold_cap":0}`, `{"threshold_cap":1.1}`,
		`{"limit_tokens":-1}`, `{"window_tokens":-1}`, `{"buffers":{"blocking_tokens":14000}}`, `{"buffers":{"warning_tokens":9000}}`,
		`{"buffers":{"reserve_tokens":-1}}`,
	} {
		if _, err := policy.Default().With(codec.Raw(bad)); events.CodeOf(err) != events.CodeBadPolicy {
			t.Errorf("%s: %v, want %s", bad, err, events.CodeBadPolicy)
		}
	}
}

// The shares are of what the history can take, which lies above the part that no compaction
// reduces: their order holds, whatever that part is, and the preset of the reference ignores it.
func TestRoomForTheHistory(t *testing.T) {
	tokens, err := policy.Default().With(codec.Raw(`{"trigger_mode":"tokens","threshold_tokens":100000}`))
	if err != nil {
		t.Fatal(err)
	}
	reference, _ := policy.Preset("neurolink")
	for _, c := range []struct {
		name                            string
		policy                          policy.Policy
		fixed, target, prepare, trigger measure.Tokens
	}{
		{"none", policy.Default(), 0, 81_600, 95_200, 108_800},
		{"some", policy.Default(), 48_000, 100_800, 109_600, 118_400},
		{"most of it", policy.Default(), 130_000, 108_800, 115_600, 122_400},
		{"trigger in tokens", tokens, 20_000, 80_000, 90_000, 100_000},
		{"reference", reference, 48_000, 95_200, 108_800, 108_800},
	} {
		m := c.policy.Thresholds(200_000, 64_000, c.fixed, 200_000)
		if m.Target != c.target || m.Prepare != c.prepare || m.Trigger != c.trigger {
			t.Errorf("%s: target %d, prepare %d, trigger %d; want %d, %d, %d", c.name, m.Target, m.Prepare, m.Trigger, c.target, c.prepare, c.trigger)
		}
	}
}

// A trigger given as a share keeps the places below it in order.
func TestAt(t *testing.T) {
	claude, _ := policy.Preset("claude")
	for _, base := range []policy.Policy{policy.Default(), claude} {
		for _, share := range []measure.PPM{1_000_000, 900_000, 800_000, 600_000, 500_000, 10_000, 2} {
			p := base.At(share)
			if err := p.Validate(); err != nil {
				t.Errorf("at %d: %v", share, err)
			}
			if b := checkBudget(measure.Prompt{History: 1_000_000}, 1_000_000, 0, &p); !b.ShouldCompact {
				t.Errorf("at %d: %+v", share, b)
			}
			if p.Summarize.Prepare > p.Threshold {
				t.Errorf("at %d a summary is prepared at %d", share, p.Summarize.Prepare)
			}
		}
	}
}
