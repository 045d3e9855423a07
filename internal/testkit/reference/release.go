package reference

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// Release is how one release of the reference system behaves, as far as data say so
// (row A1): a profile with its customs.
type Release struct {
	Name, Profile string
	Table         measure.Table
	measure.Custom
}

func newRelease(name, profile string) *Release {
	c := measure.CustomOf(profile)
	return &Release{name, profile, c.Windows().Table(), c}
}

// The releases that have records, and the product as it comes.
var (
	Seed    = newRelease("v9.5.3", "seed")
	Current = newRelease("v9.80.2", "current")
	Default = newRelease("default", "default")
)

// Rate is the rate of a provider.
func (r *Release) Rate(provider string) measure.Rate {
	return measure.NewRate(measure.Profiles[r.Profile], provider)
}

// Available is the window of a model less its output reserve.
func (r *Release) Available(provider, model string, maxTokens measure.Tokens) measure.Tokens {
	window := r.Table.Window(provider, model)
	return window - measure.OutputReserve(window, maxTokens)
}

// Size is the length of a text in UTF-16 units.
func Size(text string) int64 { return int64(codec.Units(text)) }

// Read returns messages of a record as the product reads them.
func Read(messages []codec.Raw) []dialect.Message {
	out, err := events.NeuroLink.ReadAll(messages)
	if err != nil {
		panic(err)
	}
	return out
}

// Entries measures messages of a record, as one turn.
func Entries(messages []codec.Raw) (out []measure.Entry) {
	for i, m := range Read(messages) {
		out = append(out, measure.Measure(m, measure.Entry{Seq: 1, Turn: 1, Index: uint32(i)})...)
	}
	return out
}

// History estimates messages, framing included; without any there is no framing.
func History(messages []codec.Raw, r measure.Rate) (sum measure.Tokens) {
	if len(messages) == 0 {
		return 0
	}
	for _, e := range Entries(messages) {
		sum += r.Entry(&e)
	}
	return r.PerConversation + sum
}
