package stage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/reference"
)

// Models of what the reference does, small enough to be read, and checked against all of
// its records. They give records for inputs that were not recorded.

// modelPrune lists the results that the reference clears, and what that saves.
func modelPrune(messages []codec.Raw, protect, minimum measure.Tokens, tools []string, r measure.Rate) (cleared []int, saved measure.Tokens) {
	var kept measure.Tokens
	for i, raw := range slices.Backward(messages) {
		m := reference.Parsed(raw)
		tool, _ := reference.At(m, "tool").(string)
		text, _ := reference.At(m, "content").(string)
		if reference.At(m, "role") != "tool_result" || slices.Contains(tools, tool) {
			continue
		}
		cost := r.Text(reference.Size(text))
		if kept < protect {
			kept += cost
			continue
		}
		if text != measure.ClearText {
			cleared = append(cleared, i)
			saved += cost - r.Text(reference.Size(measure.ClearText))
		}
	}
	if saved < minimum {
		return nil, 0
	}
	return cleared, saved
}

// differsFromPrune compares our answer with the model.
func differsFromPrune(c *reference.Case) string {
	in, _ := stageOf(c)
	minimum := reference.Or(in.Config.MinimumSavings, c.Release.MinimumTokens)
	cleared, saved := modelPrune(in.Messages, reference.Or(in.Config.ProtectTokens, 40_000), minimum, reference.Or(in.Config.ProtectedTools, []string{"skill"}), c.Release.Rate(in.Config.Provider))
	got := reference.Plain(answerPrune(c))
	for i, m := range reference.Messages(got) {
		if is := reference.At(m, "content") == measure.ClearText && reference.At(reference.Parsed(in.Messages[i]), "content") != measure.ClearText; is != slices.Contains(cleared, i) {
			return fmt.Sprintf("message %d of %d: cleared %v", i, len(in.Messages), is)
		}
	}
	if reference.At(got, "tokensSaved") != float64(saved) {
		return fmt.Sprintf("saved %v, the model %d", reference.At(got, "tokensSaved"), saved)
	}
	return ""
}

// B3: the model is that of the records.
func TestModelPrune(t *testing.T) {
	for _, c := range reference.Cases(t, "pruneToolOutputs") {
		if v, rule, _ := suite.Compare(c); v == reference.Passed {
			if bad := differsFromPrune(c); bad != "" {
				t.Errorf("%s %s: %s", c.Release.Name, c.Name, bad)
			}
		} else if v == reference.Failed {
			t.Errorf("%s: %s", c.Name, rule)
		}
	}
}

// B3, B1: a compaction that needs no more than prune clears what prune alone does, whatever
// the sizes: the reference limits a tool's output when it arrives, not then.
func TestCompactPruneVariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawResults(t)
		in, d := stageOf(c)
		target := measure.Tokens(float64(d.Tokens()) * rapid.Float64Range(0.1, 0.99).Draw(t, "target"))
		if err := json.Unmarshal(c.Input, &in); err != nil {
			t.Fatal(err)
		}
		c.Input = append(c.Input[:len(c.Input)-1], fmt.Sprintf(`,"targetTokens":%d}`, target)...)
		got := reference.Plain(answerCompact(c))
		if stages, _ := reference.At(got, "stagesUsed").([]any); len(stages) != 1 || stages[0] != string(events.StagePrune) {
			return
		}
		minimum := c.Release.MinimumTokens
		cleared, _ := modelPrune(in.Messages, 40_000, minimum, []string{"skill"}, c.Release.Rate(in.Config.Provider))
		for i, m := range reference.Messages(got) {
			if same := reference.Mismatch(reference.Parsed(in.Messages[i]), m) == ""; same == slices.Contains(cleared, i) {
				t.Fatalf("message %d of %d: unchanged %v", i, len(in.Messages), same)
			}
		}
	})
}

// B3: with any sizes, up to hundreds of kilobytes, what is cleared is what the reference
// clears.
func TestPruneVariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawResults(t)
		if bad := differsFromPrune(c); bad != "" {
			t.Fatal(bad)
		}
	})
}

// drawResults draws a conversation of calls with results of up to 250 KB.
func drawResults(t *rapid.T) *reference.Case {
	c := &reference.Case{Release: rapid.SampledFrom([]*reference.Release{reference.Seed, reference.Current}).Draw(t, "manner")}
	var messages []map[string]any
	for i := range rapid.IntRange(1, 14).Draw(t, "exchanges") {
		tool := rapid.SampledFrom([]string{"read_file", "bash", "skill", "grep"}).Draw(t, "tool")
		length := rapid.OneOf(rapid.IntRange(100, 4_000), rapid.IntRange(4_000, 60_000), rapid.IntRange(60_000, 250_000), rapid.Just(200<<10), rapid.Just(51_200)).Draw(t, "length")
		if len(messages) == 0 {
			messages = append(messages, map[string]any{"id": "u", "role": "user", "content": "go"})
		}
		messages = append(messages,
			map[string]any{"id": fmt.Sprintf("c%d", i), "role": "tool_call", "content": "", "tool": tool, "args": map[string]any{"n": i}},
			map[string]any{"id": fmt.Sprintf("r%d", i), "role": "tool_result", "content": strings.Repeat("word ", length/5), "tool": tool, "result": map[string]any{"success": true}})
		if rapid.Bool().Draw(t, "answer") {
			messages = append(messages, map[string]any{"id": fmt.Sprintf("a%d", i), "role": "assistant", "content": "so"})
		}
	}
	config := map[string]any{}
	if rapid.Bool().Draw(t, "provider") {
		config["provider"] = rapid.SampledFrom([]string{"anthropic", "openai", "vertex"}).Draw(t, "name")
	}
	raw, err := json.Marshal(map[string]any{"messages": messages, "config": config})
	if err != nil {
		t.Fatal(err)
	}
	c.Input = raw
	return c
}

// B7, B8, B9: whatever the sizes, no cut makes a history larger, and one that stays above its
// target has nothing left to cut: a notice never costs more than what it stands for.
func TestCutVariants(t *testing.T) {
	for _, function := range []string{"truncateWithSlidingWindow", "ContextCompactor.compact", "emergencyContentTruncation"} {
		t.Run(function, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := &reference.Case{Release: rapid.SampledFrom([]*reference.Release{reference.Seed, reference.Current}).Draw(t, "manner"), Function: function}
				var messages []map[string]any
				for i := range rapid.IntRange(1, 9).Draw(t, "messages") {
					length := rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(60, 400), rapid.IntRange(400, 6000)).Draw(t, "length")
					word := rapid.SampledFrom([]string{"word ", "line of text\n", "A sentence. ", "x", "日本", "😀"}).Draw(t, "word")
					messages = append(messages, map[string]any{
						"id": fmt.Sprintf("m%d", i), "role": []string{"user", "assistant"}[i%2], "content": strings.Repeat(word, length/len(word)+1),
					})
				}
				put := func(v map[string]any) {
					raw, err := json.Marshal(v)
					if err != nil {
						t.Fatal(err)
					}
					c.Input = raw
				}
				put(map[string]any{"messages": messages})
				in, _ := stageOf(c)
				r := c.Release.Rate("")
				before := reference.History(in.Messages, r)
				target := measure.Tokens(float64(before) * rapid.Float64Range(0.3, 1).Draw(t, "target"))
				put(map[string]any{
					"messages": messages, "config": map[string]any{"targetTokens": target}, "targetTokens": target,
					"availableTokens": target, "breakdown": map[string]any{"conversationHistory": before},
				})
				got := reference.Plain(suite.Answers[function](c))
				after := reference.History(reference.RawMessages(got), r)
				if after > before {
					t.Fatalf("%d tokens became %d, target %d", before, after, target)
				}
				cuts := function != "truncateWithSlidingWindow" || len(messages) <= 4 && c.Release != reference.Seed
				if after > target && cuts {
					floor := int64(contentFloor)
					if fewest := r.PerConversation + measure.Tokens(len(messages))*(r.PerMessage+r.Text(16)); len(messages) <= 4 && fewest <= target {
						floor = 12 // a few letters and the dots
					}
					if bad := worn(reference.Messages(got), floor); bad != "" {
						t.Fatalf("%d tokens became %d, target %d: %s", before, after, target, bad)
					}
				}
			})
		})
	}
}

// worn reports a content that could be cut further.
func worn(messages []any, floor int64) string {
	for i, m := range messages {
		if text, _ := reference.At(m, "content").(string); reference.Size(text) > floor {
			return fmt.Sprintf("message %d has %d units", i, reference.Size(text))
		}
	}
	return ""
}
