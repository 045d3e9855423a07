package measure

import (
	"cmp"

	"compactd/internal/events/models"
)

// inputs are the largest inputs of models, if these are less than their windows whatever the output: by maker
// and the beginning of a name, the longest that fits; 0 is no such limit. Sources, read on 2026-11-22 and 23:
// "Introducing GPT-5 for developers" of OpenAI (272,000 of input beside 128,000 of output); for gpt-5-pro,
// where it is the other way round, and for mini and nano, github.com/BerriAI/litellm/pull/19056 and
// issues/30928; for gpt-5.3-codex-spark, 5.4 and 5.5 github.com/anomalyco/models.dev at f3fc692 of
// 2026-07-02; for gpt-6 developers.openai.com/api/docs/models/gpt-6.2-sol (922,000 of 1,050,000).
var inputs = map[string]map[string]Tokens{
	"openai": {
		"gpt-5":               272_000,
		"gpt-5-chat":          0,
		"gpt-5-pro":           128_000,
		"gpt-5.1-chat":        0,
		"gpt-5.2-chat":        0,
		"gpt-5.3-chat":        0,
		"gpt-5.3-codex-spark": 100_000,
		"gpt-5.4":             922_000,
		"gpt-5.4-mini":        272_000,
		"gpt-5.4-nano":        272_000,
		"gpt-5.5":             922_000,
		"gpt-6":               922_000,
	},
}

// InputLimit is the largest input of a model, 0 if its window is the only limit.
func InputLimit(model string) Tokens {
	limits := inputs[models.Maker(model)]
	return limits[longest(limits, models.Canonical(model))]
}

// Tokenizer is the provider whose multiplier a model has: Claude has Claude's on any provider, and other
// models their provider's, if that is known.
func Tokenizer(provider, model string) string {
	maker := models.Maker(model)
	if maker == "anthropic" && cmp.Or(models.Provider(provider), maker) != "bedrock" || maker != "" && !models.KnownProvider(provider) {
		return maker
	}
	return provider
}

// families are further tokenizers of a maker, beside the one behind its provider's multiplier: by the
// beginning of a name, the longest that fits, the tokens for a text of which that one makes 100. Claude has a
// newer one since Opus 4.7 and Sonnet 5: 30 % more tokens for the same text by
// platform.claude.com/docs/models/sonnet-5/migration-guide, 1.0 to 1.35 times as many by that of Opus 4.7,
// and 1.325 times measured over seven samples of agents' content (claudecodecamp.com, April 2026). A Claude
// that is not listed has the newer one.
var families = map[string]map[string]Tokens{
	"anthropic": {
		"claude":          130,
		"claude-2":        100,
		"claude-3":        100,
		"claude-instant":  100,
		"claude-haiku-4":  100,
		"claude-sonnet-4": 100,
		"claude-opus-4":   100,
		"claude-opus-4-7": 130,
		"claude-opus-4-8": 130,
	},
}

// RateOf is the rate of a model of a provider under a profile. Only a profile with classes
// distinguishes models.
func RateOf(p Profile, provider, model string) Rate {
	if !p.Classes {
		return NewRate(p, provider)
	}
	r := NewRate(p, Tokenizer(provider, model))
	r.pictures = picturesOf(model)
	tokenizers := families[models.Maker(model)]
	if percent, ok := tokenizers[longest(tokenizers, models.Canonical(model))]; ok && p.ByProvider {
		r.times, r.of = r.times*int64(percent), r.of*100
	}
	return r
}
