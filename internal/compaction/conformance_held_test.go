package compaction_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// refused is a record of an error with a text.
func refused(function, text string, want any) *vectorCase {
	return heldCase(function, map[string]any{"error": map[string]any{"kind": "string", "value": text}}, want)
}

func heldCase(function string, input, want any) *vectorCase {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	answer, err := json.Marshal(want)
	if err != nil {
		panic(err)
	}
	return &vectorCase{Name: "variant", function: function, Input: raw, Want: answer, manner: mannerOfCurrent}
}

func details(actual, limit any) any {
	return map[string]any{"details": map[string]any{"actualTokens": actual, "budgetTokens": limit}}
}

// D1, D2, D3, B10, B15: classes of answers that no record of ours has.
func TestOtherRecords(t *testing.T) {
	const output = "This model's maximum context length is 8192 tokens. However, you requested 12000 tokens (4000 in the messages, 8000 in the completion)."
	file := func(name string, tokens int) any {
		return map[string]any{"fileName": name, "fileType": "Text File", "content": "", "estimatedTokens": tokens}
	}
	step := func(name string, target int) any {
		if target == 0 {
			return map[string]any{"fileName": name, "action": "keep"}
		}
		return map[string]any{"fileName": name, "action": "summarize", "targetTokens": target}
	}
	for _, c := range []*vectorCase{
		refused("parseProviderOverflowDetails", "However, your messages exceed it: 1,048,577 > 1,048,576 350 of them", details(1_048_577, 1_048_576)),
		refused("parseProviderOverflowDetails", "200,001 exceeds 200,000", details(200_001, 200_000)),
		refused("parseProviderOverflowDetails", "However, 200001, exceeds ,200000", details(200_001, 200_000)),
		refused("parseProviderOverflowDetails", "prompt is too long: , tokens > , maximum", details(nil, nil)),
		refused("parseProviderOverflowDetails", "839,979 tokens:,,,", details(839_979, nil)),
		refused("isContextOverflowError", output, map[string]any{"overflow": true}),
		refused("getContextOverflowProvider", output, map[string]any{"provider": "openai"}),
		refused("parseProviderOverflowDetails", output, map[string]any{"details": nil}),
		heldCase("extractErrorMessage", map[string]any{"error": map[string]any{"kind": "error", "message": "", "cause": map[string]any{"kind": "error", "message": "prompt is too long"}}}, map[string]any{"message": " prompt is too long"}),
		heldCase("extractErrorMessage", map[string]any{"error": map[string]any{"kind": "error", "message": ""}}, map[string]any{"message": ""}),
		heldCase("extractErrorMessage", map[string]any{"error": map[string]any{"kind": "object", "value": map[string]any{"message": "", "error": "too many tokens"}}}, map[string]any{"message": ""}),
		heldCase("extractErrorMessage", map[string]any{"error": map[string]any{"kind": "object", "value": map[string]any{"error": map[string]any{"message": ""}}}}, map[string]any{"message": ""}),
		heldCase("planFileSummarization", map[string]any{
			"files":  []any{file("a", 30_000), file("b", 20_000), file("c", 40)},
			"params": map[string]any{"provider": "ollama", "conversationHistoryTokens": 60_000, "fileTokens": 50_040, "fileCount": 6},
		}, map[string]any{"plan": []any{step("a", 1_786), step("b", 1_786), step("c", 0)}}),
	} {
		if v, rule, diff := compare(c); v == failed {
			t.Errorf("%s %s: %s %s", c.function, c.Input, rule, diff)
		}
	}
}

// B7, B8, B9, B10: messages without a content are none to a provider, and are left out. Whatever
// else is in the history, our answer to it passes its checks beside a record that keeps them.
func TestEmptyMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2_000 {
		var messages []any
		for i := range 1 + r.IntN(9) {
			text := strings.Repeat("some words of it. ", r.IntN(30)*r.IntN(2))
			messages = append(messages, map[string]any{"id": fmt.Sprint("m", i), "role": []string{"user", "assistant"}[i%2], "content": text})
		}
		function := []string{"repairToolPairs", "truncateWithSlidingWindow", "ContextCompactor.compact", "emergencyContentTruncation"}[r.IntN(4)]
		input := map[string]any{"messages": messages}
		size := history(rawOf(plain(input)), mannerOfCurrent.rate(""))
		input["targetTokens"], input["config"] = size, map[string]any{"targetTokens": size}
		input["availableTokens"], input["breakdown"] = size, map[string]any{"conversationHistory": size}
		c := heldCase(function, input, map[string]any{"messages": messages})
		got, want := plain(answers[function](c)), c.resolved()
		i := slices.IndexFunc(deviations, func(d deviation) bool { return d.function == function && d.applies(c, want, got) })
		if mismatch(listed(want), listed(got)) == "" || i < 0 {
			continue
		}
		if bad := deviations[i].check(c, want, got); bad != "" {
			t.Fatalf("%s by %s: %s\n%s", function, deviations[i].name(), bad, c.Input)
		}
	}
}
