package traits

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The ids that providers take, and those that they take in the place of others: the same for the
// same id, and another one for each.
func TestIDs(t *testing.T) {
	ids := []string{
		"toolu_01", "call_1", "abcDEF123", "functions.Bash:0", "call_abc\nfc_1", "ツール",
		strings.Repeat("a", 40), strings.Repeat("a", 41), strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("x", 42) + "|" + strings.Repeat("y", 40),
	}
	for rule, d := range map[string]IDs{
		`^[a-zA-Z0-9_-]+$`:      {Plain: true},
		`^[a-zA-Z0-9_-]{1,64}$`: {Plain: true, Max: 64},
		`^[a-zA-Z0-9]{9}$`:      {Nine: true},
		`(?s)^.{1,64}$`:         {Max: 64},
		`(?s)^.{1,40}$`:         {Max: 40},
		`(?s)^.+$`:              {},
	} {
		taken := regexp.MustCompile(rule)
		for _, id := range ids {
			if got := d.Takes(ClassOf(id)); got != taken.MatchString(id) {
				t.Errorf("%s takes %q: %t", rule, id, got)
			}
			mapped := d.Map(id, "")
			if !taken.MatchString(mapped) || !d.Takes(ClassOf(mapped)) || mapped == d.Map(id, "1.2.3") || mapped != d.Map(id, "") {
				t.Errorf("%s: %q becomes %q", rule, id, mapped)
			}
		}
		seen := map[string]bool{}
		for i := range 100_000 {
			seen[d.Map(fmt.Sprint("call ", i), "")] = true
		}
		if len(seen) != 100_000 {
			t.Errorf("%s: %d ids of 100000", rule, len(seen))
		}
	}
}

// Demands of providers under the names that SDKs give them.
func TestDemandsOf(t *testing.T) {
	for call, want := range map[[3]string]Demands{
		{"anthropic", "", ""}:                                    {IDs: IDs{Plain: true}, UniqueIDs: true},
		{"anthropic", "anthropic", "claude-opus-5"}:              {IDs: IDs{Plain: true}, UniqueIDs: true, NoPrefill: true},
		{"anthropic", "anthropic", "claude-sonnet-4-5"}:          {IDs: IDs{Plain: true}, UniqueIDs: true},
		{"anthropic", "ollama", "llama"}:                         {IDs: IDs{Plain: true}, UniqueIDs: true, Alternates: true},
		{"bedrock", "amazon-bedrock", "amazon.nova-pro"}:         {IDs: IDs{Plain: true, Max: 64}, UniqueIDs: true},
		{"gemini", "google", "gemini-3-pro"}:                     {NoPrefill: true},
		{"openai-responses", "openai", "gpt-6"}:                  {IDs: IDs{Max: 64}},
		{"openai", "openai", "gpt-6"}:                            {IDs: IDs{Max: 40}},
		{"openai", "", "gpt-6"}:                                  {},
		{"openai", "groq", "llama-4"}:                            {Drops: mistral.Drops[:2]},
		{"openai", "Mistral AI", "devstral"}:                     {IDs: IDs{Nine: true}, Alternates: true, Bridges: true, NoPrefill: true, Drops: mistral.Drops},
		{"openai", "deepseek", "deepseek-v4"}:                    {Reasons: true},
		{"openai", "openrouter", "anthropic/claude-opus-5"}:      {IDs: IDs{Plain: true}, NoPrefill: true},
		{"openai", "openrouter", "openai/gpt-5-mini"}:            {IDs: IDs{Max: 40}},
		{"ai-sdk", "mistral", "mistral-large"}:                   {IDs: IDs{Nine: true}, Alternates: true, Bridges: true, NoPrefill: true},
		{"ai-sdk", "bedrock", "us.anthropic.claude-opus-5-v1:0"}: {IDs: IDs{Plain: true, Max: 64}, UniqueIDs: true, NoPrefill: true},
		{"neurolink", "ollama", "llama-4"}:                       {Alternates: true},
	} {
		if got := DemandsOf(call[0], call[1], call[2]); !cmp.Equal(want, got) {
			t.Errorf("%q: %+v, want %+v", call, got, want)
		}
	}
}
