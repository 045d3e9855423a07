package compaction

// Tokens is a number of tokens, estimated or counted.
type Tokens int64

// Profile is one way to estimate tokens. Profiles are data: no stage branches on
// one. Sizes are UTF-16 code units per token, framing is in tokens.
type Profile struct {
	// Classes counts contents by the classes of their characters, or as a Counter
	// did, and lets the usage of a session calibrate one ratio for it. The sizes
	// below count then for texts known by their length alone.
	Classes bool

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
	ByProvider                bool // whether multiplier and framing of the provider count
}

// Profiles by name. seed is the reference as documented, current its newer
// release, blocks the estimator of an agent that counts per block; default counts
// by classes. It has no margin, since its errors have no side.
var Profiles = map[string]Profile{
	"default": {Classes: true, TextUnits: 4, ResultUnits: 4, JSONUnits: 2, PerMessage: 4, PerConversation: 24, PerTool: 12, PerImage: 1024, MarginPercent: 100, ByProvider: true},
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

// providerTool is what a provider frames a call and a result with, each, where it
// was measured: ids, names and tags. It counts under Classes.
var providerTool = map[string]Tokens{"anthropic": 36, "bedrock": 36}

// Rate turns sizes into tokens for one profile and one provider.
type Rate struct {
	Profile
	// Recall counts placeholders with what they say of their originals; see
	// Policy.RecallNotice.
	Recall bool

	times, of int64 // the estimate is base × times / of
}

// NewRate returns the rate of a provider under a profile, whatever the spelling
// of its name.
func NewRate(p Profile, provider string) Rate {
	provider = Provider(provider)
	percent := int64(100)
	if n, ok := providerPercent[provider]; ok && p.ByProvider {
		percent = n
	}
	if n, ok := providerTool[provider]; ok && p.ByProvider && p.Classes {
		p.PerTool = n
	}
	r := Rate{Profile: p, times: percent*p.MarginPercent + p.AddPercent*100, of: 10_000}
	if p.AddThird {
		r.times, r.of = r.times*4, r.of*3
	}
	return r
}

// Text estimates a text of so many UTF-16 code units.
func (r Rate) Text(units int64) Tokens { return r.scale(ceilDiv(units, r.TextUnits)) }

// Count estimates a text that is at hand, as it counts as part of a message.
func (r Rate) Count(text string) Tokens { return r.sized(meter{}.text(text)) }

// sized estimates a text that was measured.
func (r Rate) sized(s size) Tokens {
	if r.Classes {
		return r.scale(s.Base)
	}
	return r.Text(s.Units)
}

// scale applies provider and margin to a base count of tokens, rounded up.
func (r *Rate) scale(base int64) Tokens { return Tokens(ceilDiv(base*r.times, r.of)) }

// Entry estimates one visible entry with its edits, framing included.
func (r *Rate) Entry(e *Entry) Tokens {
	t := r.body(e)
	if e.Flags.has(FlagFirst) {
		t += r.PerMessage
	}
	if e.Flags.has(FlagAnswer) {
		t += r.synthetic(unitsOf(AnswerText))
	}
	if e.Flags.has(FlagCall) {
		t += r.syntheticWith(unitsOf(callTextHead)+unitsOf(callTextTail)+8, 2*maxToolUnits)
	}
	return t
}

func (r *Rate) body(e *Entry) Tokens {
	switch e.Op {
	case opClear, opClearOld:
		return r.PerTool + r.placeholder(e.placeholderUnits(), 0, 0)
	case opDeduplicate:
		return r.PerTool + r.placeholder(e.placeholderUnits(), int64(e.PathUnits), int64(e.PathBase))
	case opTrim, opTail, opHead, opBoth:
		return r.trimmed(e)
	}
	t := Tokens(e.Images) * r.PerImage
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
		return t + r.scale(ceilDiv(int64(e.Text), r.TextUnits)+ceilDiv(int64(e.JSON), r.JSONUnits))
	}
	base := ceilDiv(int64(e.Text), r.TextUnits)
	if e.JSON > 0 {
		base += ceilDiv(int64(e.JSON), max(r.JSONUnits, 2))
	}
	return t + r.scale(base)
}

func (r *Rate) result(units int64) Tokens { return r.scale(ceilDiv(units, r.ResultUnits)) }

// placeholder is the ceiling of what stands for a result: plain words of so many
// units, and a path of this size.
func (r *Rate) placeholder(plain, pathUnits, pathBase int64) Tokens {
	if !r.Classes {
		return r.result(plain + pathUnits)
	}
	return r.scale(ceilDiv(plain, plainUnits) + pathBase + 1)
}

// plainUnits is how many units of the words that compactd adds itself a token has
// at least.
const plainUnits = 3

// made is the ceiling of a message that compactd adds, whatever its form, with
// plain words of so many units.
func (r *Rate) synthetic(plain int64) Tokens { return r.syntheticWith(plain, 0) }

// madeOf is the ceiling of a message that compactd adds, with plain words and
// foreign text of so many units.
func (r *Rate) syntheticWith(plain, foreign int64) Tokens {
	t := r.PerMessage + r.PerTool
	if r.Classes {
		return t + r.scale(ceilDiv(plain, plainUnits)) + r.Ceiling(foreign)
	}
	return t + r.scale(ceilDiv(plain+foreign, min(r.TextUnits, r.ResultUnits)))
}

// Ceiling is the most that a text of so many UTF-16 code units can count, in
// whatever language or code it is.
func (r *Rate) Ceiling(units int64) Tokens {
	if r.Classes {
		return r.scale(units * densest)
	}
	return r.scale(ceilDiv(units, min(r.TextUnits, r.ResultUnits)))
}

const million = 1_000_000

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// share returns ppm parts per million of n, rounded down.
func (p PPM) share(n Tokens) Tokens { return Tokens(int64(n) * int64(p) / million) }
