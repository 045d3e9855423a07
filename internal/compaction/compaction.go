package compaction

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
)

// What callers use of the packages below, under one import.

type (
	// Tokens counts tokens; see [measure.Tokens].
	Tokens = measure.Tokens
	// PPM is a share in parts per million; see [measure.PPM].
	PPM = measure.PPM
	// Seq is a sequence of the log; see [measure.Seq].
	Seq = measure.Seq
	// Entry is one call, one result or one run of words of a message; see [measure.Entry].
	Entry = measure.Entry
	// Profile estimates tokens from classes of characters; see [measure.Profile].
	Profile = measure.Profile
	// Rate turns sizes into tokens for a profile and a provider; see [measure.Rate].
	Rate = measure.Rate
	// Counter counts the tokens of a text; see [measure.Counter].
	Counter = measure.Counter
	// Windows are the windows of models; see [measure.Windows].
	Windows = measure.Windows
	// Money is an amount in billionths of a US dollar; see [measure.Money].
	Money = measure.Money
	// Prices are what a model charges for a token; see [measure.Prices].
	Prices = measure.Prices
	// PriceTable has the prices of models; see [measure.PriceTable].
	PriceTable = measure.PriceTable
)

// The texts of placeholders.
const (
	ClearText    = measure.ClearText
	ClearOldText = measure.ClearOldText
	AnswerText   = measure.AnswerText
	TruncateText = measure.TruncateText
	RecallHead   = measure.RecallHead
)

// Profiles are the ways to estimate tokens, by name.
var Profiles = measure.Profiles

// NewRate returns the rate of a provider under a profile.
func NewRate(p Profile, provider string) Rate { return measure.NewRate(p, provider) }

// RateOf is the rate of a model of a provider; see [measure.RateOf].
func RateOf(p Profile, provider, model string) Rate { return measure.RateOf(p, provider, model) }

// Measure returns the entries of one message, with estimates; at is its position.
func Measure(m events.Message, at Entry) []Entry { return measure.Measure(m, at) }

// Provider is the one name of a provider, whatever its spelling.
func Provider(name string) string { return measure.Provider(name) }

// DefaultWindows returns the table of context windows.
func DefaultWindows() Windows { return measure.DefaultWindows() }

// DefaultPrices returns the table of the prices of models.
func DefaultPrices() PriceTable { return measure.DefaultPrices() }

// ReadPrices reads a table of prices in the form of the embedded one.
func ReadPrices(data []byte) (PriceTable, error) { return measure.ReadPrices(data) }

// OutputReserve is what a model may answer.
func OutputReserve(window, maxOutput Tokens) Tokens { return measure.OutputReserve(window, maxOutput) }

// CustomOf returns what a profile sets beside its estimator.
func CustomOf(profile string) measure.Custom { return measure.CustomOf(profile) }

// Policy defines when and how far a session is compacted; see package policy.
type Policy = policy.Policy

// DefaultPolicy is the preset "default".
func DefaultPolicy() Policy { return policy.Default() }

// Preset returns the policy of a name, and whether there is one.
func Preset(name string) (Policy, bool) { return policy.Preset(name) }

// PresetNames lists the presets.
func PresetNames() []string { return policy.PresetNames() }

// PolicyFields lists the paths of the fields that a path covers.
func PolicyFields(path string) []string { return policy.Fields(path) }

// View is an effective history in entries, ready to be rendered.
type View = render.View

// Sourced is a message of a rendered history, and what it was made of; see [render.Sourced].
type Sourced = render.Sourced

// RenderSourced writes a view in the session's own dialect, and states what each message was
// made of.
func RenderSourced(v *View, texts render.Texts) ([]Sourced, error) {
	return render.WithSources(v, texts)
}

// Render writes a view in the session's own dialect; see package render.
func Render(v *View, texts render.Texts) ([]events.Raw, error) {
	messages, _, err := render.Render(v, texts)
	return messages, err
}

// RenderListed is Render that lists what the provider's rules of form changed.
func RenderListed(v *View, texts render.Texts) (messages []events.Raw, changes []events.Edit, err error) {
	return render.Render(v, texts)
}
