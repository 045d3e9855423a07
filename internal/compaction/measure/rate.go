package measure

import (
	"compactd/internal/events/dialect"
	"compactd/internal/events/models"
	"compactd/internal/events/weigh"
)

// Profile is one way to estimate tokens. Profiles are data: no stage branches on one. Sizes are UTF-16 code
// units per token, framing is in tokens.
type Profile struct {
	// Classes counts contents by the classes of their characters, or by a Counter, and lets the usages of a
	// session correct one ratio. The sizes below then count for texts with only a known length.
	Classes bool

	TextUnits   int64 // prose
	ResultUnits int64 // results of tools
	JSONUnits   int64 // arguments of tool calls; 0 leaves name and arguments uncounted

	PerMessage      Tokens
	PerConversation Tokens
	PerTool         Tokens // for each call and each result
	PerImage        Tokens

	// The estimate is base × (provider × MarginPercent / 100 + AddPercent) / 100. A profile
	// with AddThird counts a third more of everything, framing and images included.
	MarginPercent, AddPercent int64
	AddThird                  bool
	ByProvider                bool // use multiplier and framing of the provider
}

// Profiles by name. seed is the documented reference, current its newer release, blocks the estimator of an
// agent that counts per block; default counts by classes. default has no margin, since its errors have no
// bias.
var Profiles = map[string]Profile{
	"default": {Classes: true, TextUnits: 4, ResultUnits: 4, JSONUnits: 2, PerMessage: 4, PerConversation: 24, PerTool: 12, PerImage: 1024, MarginPercent: 100, ByProvider: true},
	"seed":    {TextUnits: 4, ResultUnits: 4, PerMessage: 4, PerConversation: 24, PerImage: 1024, MarginPercent: 115, ByProvider: true},
	"current": {TextUnits: 4, ResultUnits: 4, PerMessage: 4, PerConversation: 24, PerImage: 1024, MarginPercent: 100, AddPercent: 5, ByProvider: true},
	"blocks":  {TextUnits: 4, ResultUnits: 2, JSONUnits: 2, PerMessage: 12, PerTool: 24, PerImage: 2000, MarginPercent: 100, AddThird: true},
}

// providerPercent is the number of a provider's tokens for 100 of OpenAI's. Absent providers count as 100.
var providerPercent = map[string]int64{
	"anthropic": 123, "bedrock": 123,
	"google-ai": 118, "vertex": 118,
	"mistral": 126,
}

// providerTool is a provider's framing of each call and result, where it was measured: ids, names and tags.
// It counts under Classes.
var providerTool = map[string]Tokens{"anthropic": 36, "bedrock": 36}

// Rate turns sizes into tokens for one profile and one provider.
type Rate struct {
	Profile
	// Recall counts placeholders with the places of their originals; see Policy.NamesPlaces.
	Recall bool

	times, of int64     // the estimate is base × times / of
	pictures  *pictures // rules for media; nil counts each as PerImage
}

// NewRate returns the rate of a provider, in any spelling, under a profile.
func NewRate(p Profile, provider string) Rate {
	provider = models.Provider(provider)
	percent := int64(100)
	if n, ok := providerPercent[provider]; ok && p.ByProvider {
		percent = n
	}
	if n, ok := providerTool[provider]; ok && p.ByProvider && p.Classes {
		p.PerTool = n
	}
	r := Rate{Profile: p, times: percent*p.MarginPercent + p.AddPercent*100, of: 10_000}
	if p.AddThird {
		for _, framing := range []*Tokens{&r.PerMessage, &r.PerConversation, &r.PerTool, &r.PerImage} {
			*framing = Tokens(CeilDiv(int64(*framing)*4, 3))
		}
		r.times, r.of = r.times*4, r.of*3
	}
	return r
}

// Text estimates a text by its UTF-16 code units.
func (r Rate) Text(units int64) Tokens { return r.scale(CeilDiv(units, r.TextUnits)) }

// Count estimates a text as a part of a message.
func (r Rate) Count(text string) Tokens { return r.Sized(Meter{}.Text(text)) }

// Sized estimates a measured text.
func (r Rate) Sized(s weigh.Size) Tokens {
	if r.Classes {
		return r.scale(s.Base)
	}
	return r.Text(s.Units)
}

// scale applies provider and margin to a base count of tokens, rounded up.
func (r *Rate) scale(base int64) Tokens { return Tokens(CeilDiv(base*r.times, r.of)) }

// Message estimates a message as it is.
func (r *Rate) Message(m dialect.Message) (t Tokens) {
	for _, e := range Measure(m, Entry{}) {
		t += r.Entry(&e)
	}
	return t
}

// Entry estimates one visible entry with its edits, framing included.
func (r *Rate) Entry(e *Entry) Tokens {
	t := r.Body(e)
	if e.Flags.Has(FlagFirst) {
		t += r.PerMessage
	}
	if e.Flags.Has(FlagAnswer) {
		t += r.synthetic(UnitsOf(AnswerText), 0)
	}
	if e.Flags.Has(FlagCall) {
		t += r.synthetic(UnitsOf(CallTextHead)+UnitsOf(CallTextTail)+8, 2*MaxToolUnits)
	}
	return t
}

// Body estimates one visible entry with its edits, without the framing of its message.
func (r *Rate) Body(e *Entry) Tokens {
	switch e.Op {
	case OpClear, OpClearOld:
		if e.Kind == KindWords {
			return r.placeholder(e.placeholderUnits(), 0, 0)
		}
		return r.PerTool + r.placeholder(e.placeholderUnits(), 0, 0)
	case OpDeduplicate:
		return r.PerTool + r.placeholder(e.placeholderUnits(), int64(e.PathUnits), int64(e.PathBase))
	case OpTrim, opTail, opHead, opBoth:
		return r.trimmedCost(e)
	}
	t := r.media(e)
	if e.Kind == KindCall || e.Kind == KindResult {
		t += r.PerTool
	}
	if r.Classes && e.Base > 0 {
		return t + r.scale(int64(e.Base))
	}
	switch e.Kind {
	case KindResult:
		return t + r.result(int64(e.Text))
	case KindCall:
		if r.JSONUnits == 0 {
			return t
		}
		return t + r.scale(CeilDiv(int64(e.Text), r.TextUnits)+CeilDiv(int64(e.JSON), r.JSONUnits))
	}
	base := CeilDiv(int64(e.Text), r.TextUnits)
	if e.JSON > 0 {
		base += CeilDiv(int64(e.JSON), max(r.JSONUnits, 2))
	}
	return t + r.scale(base)
}

func (r *Rate) result(units int64) Tokens { return r.scale(CeilDiv(units, r.ResultUnits)) }

// placeholder is the ceiling of a result's placeholder: plain words of so many units, and a path of this
// size.
func (r *Rate) placeholder(plain, pathUnits, pathBase int64) Tokens {
	if !r.Classes {
		return r.result(plain + pathUnits)
	}
	return r.scale(CeilDiv(plain, PlainUnits) + pathBase + 1)
}

// PlainUnits is the least number of units in a token of compactd's own words.
const PlainUnits = 3

// synthetic is the ceiling of a message that compactd adds, whatever its form, with plain
// words and foreign text of so many units.
func (r *Rate) synthetic(plain, foreign int64) Tokens {
	t := r.PerMessage + r.PerTool
	if r.Classes {
		return t + r.scale(CeilDiv(plain, PlainUnits)) + r.Ceiling(foreign)
	}
	return t + r.scale(CeilDiv(plain+foreign, min(r.TextUnits, r.ResultUnits)))
}

// Ceiling is the largest count of a text of so many UTF-16 code units, in any language or code.
func (r *Rate) Ceiling(units int64) Tokens {
	if r.Classes {
		return r.scale(units * densest)
	}
	return r.scale(CeilDiv(units, min(r.TextUnits, r.ResultUnits)))
}

// trimmedCost is the ceiling of an entry with a cut text, without the framing of its message. The rest of the
// text counts as its share of the whole.
func (r *Rate) trimmedCost(e *Entry) Tokens {
	t, per, name := r.media(e), r.TextUnits, int64(0)
	switch e.Kind {
	case KindResult:
		t, per = t+r.PerTool, r.ResultUnits
	case KindCall:
		if t += r.PerTool; r.JSONUnits == 0 {
			return t
		}
		per, name = r.JSONUnits, int64(e.Text)
	}
	kept, notice := e.Kept()
	size := max(e.content(), 1)
	if r.Classes && e.Base > 0 {
		base := CeilDiv(int64(e.Base)*kept, size) + min(name*densest, int64(e.Base)) + CeilDiv(notice, PlainUnits) + 1
		if e.Kind == KindRestored {
			base += int64(e.PathBase)
		}
		return t + r.scale(base)
	}
	return t + r.scale(CeilDiv(name, r.TextUnits)+CeilDiv(CeilDiv(size, per)*kept, size)+CeilDiv(notice, per))
}

// Units is the size of a text that costs at most t tokens as a message.
func (r Rate) Units(t Tokens) int64 {
	return int64(t-r.PerMessage) * r.of / r.times * r.TextUnits
}

// SummaryUnits is the number of units of a summary that count as a token.
const SummaryUnits = 4
