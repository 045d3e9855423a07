package compaction_test

import (
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// hugeTurn is a turn of a session whose agent states a window of as many tokens as a field may have.
func hugeTurn(number int) object {
	turn := object{"turn": number, "messages": []object{{"role": "user", "content": "hello"}, {"role": "assistant", "content": "an answer of the model to the question"}}}
	if number == 1 {
		turn["format"], turn["model"] = events.OpenAI, object{"provider": "openai", "name": "gpt-5", "context_window": events.MaxTokens}
	}
	return turn
}

// Whatever an agent's usages bill, an answer without a usage never makes the next call smaller.
func TestHugeBills(t *testing.T) {
	t.Parallel()
	config := defaultConfig(t)
	rapid.Check(t, func(t *rapid.T) {
		a, sixteenths := newAgent(t, config), rapid.Int64Range(0, 16)
		billed := rapid.IntRange(1, 20).Draw(t, "billed")
		for i := range billed + 3 {
			turn, was := hugeTurn(i+1), a.ledger.Budget().EstimatedInput
			if i < billed {
				turn["usage"] = object{"prompt_tokens": sixteenths.Draw(t, "input") * events.MaxTokens / 16, "completion_tokens": sixteenths.Draw(t, "output") * events.MaxTokens / 16}
			}
			for _, o := range a.publish(turn) {
				if o.View != nil {
					was = 0
				}
			}
			if got := a.ledger.Budget().EstimatedInput; got < 0 || i >= billed && got < was {
				t.Fatalf("turn %d: %d tokens, before it %d; %s", i+1, got, was, a.ledger.Calibration())
			}
		}
	})
}

// The cost of a session never gets below zero, however large its agent states its window and its calls.
func TestHugeCosts(t *testing.T) {
	t.Parallel()
	const dearest = 1_000_000
	c, err := defaultConfig(t).WithPrices(measure.PriceTable{"gpt-5": {Input: dearest, Cached: dearest, Write: dearest, Output: dearest}})
	if err != nil {
		t.Fatal(err)
	}
	a, was := newAgent(t, c), measure.Tokens(0)
	for i := range 3000 {
		turn := hugeTurn(i + 1)
		turn["usage"] = object{"prompt_tokens": events.MaxTokens, "completion_tokens": 1}
		a.publish(turn)
		cost := measure.Tokens(a.ledger.Describe(c).Cost.Input)
		if cost < was {
			t.Fatalf("turn %d: the cost is %d after %d", i+1, cost, was)
		}
		was = cost
	}
}
