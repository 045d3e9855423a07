package whatif

import (
	"bytes"
	"cmp"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// ruler estimates what the next call of a session carries, in the same way for all
// policies: by the profile default and the default windows.
type ruler struct {
	windows measure.Table
	table   measure.PriceTable

	rate      measure.Rate
	available measure.Tokens // for a call: the window, less the room for an answer that the agent requests
	system    measure.Tokens
	tools     measure.Tokens
	history   measure.Tokens

	prices measure.Prices
	priced bool // the model has prices
	name   string
	fields [2]codec.Raw // system and tools, as they were sent last
}

func newRuler(prices measure.PriceTable) *ruler {
	r := &ruler{windows: measure.DefaultWindows().Table(), table: prices}
	r.model(&events.Model{})
	return r
}

// take notes what holds from a turn on, beside its messages, and reports whether it differs
// from what the call before had in front of its messages.
func (r *ruler) take(t *events.Turn) (changed bool) {
	if t.Model != nil {
		changed = t.Model.Name != r.name
		r.model(t.Model)
	}
	if t.System != nil {
		changed = r.differs(0, t.System) || changed
		r.system = r.field(t.System) + r.rate.PerMessage
	}
	if t.Tools != nil {
		changed = r.differs(1, t.Tools) || changed
		r.tools = r.field(t.Tools)
	}
	return changed
}

// differs keeps a field, and reports whether it has changed.
func (r *ruler) differs(i int, raw codec.Raw) bool {
	was := r.fields[i]
	r.fields[i] = raw
	return !bytes.Equal(was, raw)
}

func (r *ruler) model(m *events.Model) {
	window := cmp.Or(measure.Tokens(m.ContextWindow), r.windows.Window(m.Provider, m.Name))
	r.rate = measure.RateOf(measure.Profiles["default"], m.Provider, m.Name)
	r.available = window - measure.Tokens(m.MaxOutputTokens)
	r.name = m.Name
	r.prices, r.priced = r.table.Of(m.Name)
}

func (r *ruler) field(raw codec.Raw) measure.Tokens {
	if s, ok := codec.Text(raw); ok {
		return r.rate.Count(s)
	}
	return r.rate.Count(string(raw))
}

// of estimates some messages.
func (r *ruler) of(messages []dialect.Message) (t measure.Tokens) {
	for _, m := range messages {
		t += r.rate.Message(m)
	}
	return t
}

// call is the content of the next call.
func (r *ruler) call() measure.Tokens {
	return r.fixed() + r.history
}

// fixed is the part of a call beside its messages.
func (r *ruler) fixed() measure.Tokens {
	return r.system + r.tools + r.rate.PerConversation
}
