package compaction

import "strings"

// Tokens is a number of tokens, estimated or counted.
type Tokens int64

// Profile is one way to estimate tokens. Profiles are data: no stage branches on
// one. Sizes are UTF-16 code units per token, framing is in tokens.
type Profile struct {
	TextUnits   int64 // prose
	ResultUnits int64 // results of tools
	JSONUnits   int64 // arguments of tool calls; 0 leaves name and arguments uncounted

	PerMessage      Tokens
	PerConversation Tokens
	PerTool         Tokens // for each call and each result
	PerImage        Tokens

	// The estimate is base × (provider × MarginPercent / 100 + AddPercent) / 100,
	// and a third more for a profile with AddThird.
	MarginPercent, AddPercent int64
	AddThird                  bool
	ByProvider                bool // whether the provider's multiplier counts
}

// Profiles by name. seed is the reference as documented, current its newer
// release, blocks the estimator of an agent that counts per block; default is
// seed with the arguments of tool calls counted, which the reference forgets.
var Profiles = map[string]Profile{
	"default": {TextUnits: 4, ResultUnits: 4, JSONUnits: 2, PerMessage: 4, PerConversation: 24, PerImage: 1024, MarginPercent: 115, ByProvider: true},
	"seed":    {TextUnits: 4, ResultUnits: 4, PerMessage: 4, PerConversation: 24, PerImage: 1024, MarginPercent: 115, ByProvider: true},
	"current": {TextUnits: 4, ResultUnits: 4, PerMessage: 4, PerConversation: 24, PerImage: 1024, MarginPercent: 100, AddPercent: 5, ByProvider: true},
	"blocks":  {TextUnits: 4, ResultUnits: 2, JSONUnits: 2, PerMessage: 12, PerTool: 24, PerImage: 2000, MarginPercent: 100, AddThird: true},
}

// providerPercent says how many tokens a provider's tokenizer makes of what
// OpenAI's makes 100 of. Absent providers count as 100.
var providerPercent = map[string]int64{
	"anthropic": 123, "bedrock": 123,
	"google-ai": 118, "vertex": 118,
	"mistral": 126,
}

// Rate turns sizes into tokens for one profile and one provider.
type Rate struct {
	Profile
	times, of int64 // the estimate is base × times / of
}

// NewRate returns the rate of a provider under a profile. Names of providers
// compare without case.
func NewRate(p Profile, provider string) Rate {
	percent := int64(100)
	if n, ok := providerPercent[strings.ToLower(provider)]; ok && p.ByProvider {
		percent = n
	}
	r := Rate{Profile: p, times: percent*p.MarginPercent + p.AddPercent*100, of: 10_000}
	if p.AddThird {
		r.times, r.of = r.times*4, r.of*3
	}
	return r
}

// Text estimates a text of so many UTF-16 code units.
func (r Rate) Text(units int64) Tokens { return r.scale(ceilDiv(units, r.TextUnits)) }

// scale applies provider and margin to a base count of tokens, rounded up.
func (r Rate) scale(base int64) Tokens { return Tokens(ceilDiv(base*r.times, r.of)) }

// Entry estimates one visible entry with its edits, framing included.
func (r Rate) Entry(e *Entry) Tokens {
	t := r.body(e)
	if e.Flags.has(FlagFirst) {
		t += r.PerMessage
	}
	if e.Flags.has(FlagAnswer) {
		t += r.made(unitsOf(AnswerText))
	}
	if e.Flags.has(FlagCall) {
		t += r.made(unitsOf(callTextHead) + maxToolUnits + unitsOf(callTextTail) + maxToolUnits + 8)
	}
	return t
}

func (r Rate) body(e *Entry) Tokens {
	switch e.Op {
	case opClear:
		return r.PerTool + r.result(unitsOf(ClearText))
	case opDeduplicate:
		return r.PerTool + r.result(unitsOf(dedupeHead)+int64(e.PathUnits)+unitsOf(dedupeTail))
	case opTrim, opTail, opHead, opBoth:
		return r.trimmed(e)
	}
	t := Tokens(e.Images) * r.PerImage
	switch e.Kind {
	case KindResult:
		return t + r.PerTool + r.result(int64(e.Text))
	case KindCall:
		if r.JSONUnits == 0 {
			return t + r.PerTool
		}
		return t + r.PerTool + r.scale(ceilDiv(int64(e.Text), r.TextUnits)+ceilDiv(int64(e.JSON), r.JSONUnits))
	}
	base := ceilDiv(int64(e.Text), r.TextUnits)
	if e.JSON > 0 {
		base += ceilDiv(int64(e.JSON), max(r.JSONUnits, 2))
	}
	return t + r.scale(base)
}

func (r Rate) result(units int64) Tokens { return r.scale(ceilDiv(units, r.ResultUnits)) }

// made is the ceiling of a message that compactd adds, whatever its form.
func (r Rate) made(units int64) Tokens {
	return r.PerMessage + r.PerTool + r.scale(ceilDiv(units, min(r.TextUnits, r.ResultUnits)))
}

const million = 1_000_000

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// share returns ppm parts per million of n, rounded down.
func (p PPM) share(n Tokens) Tokens { return Tokens(int64(n) * int64(p) / million) }
