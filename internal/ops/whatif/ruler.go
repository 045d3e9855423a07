package whatif

import (
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// ruler estimates what the next call of a session carries, in the same way for all
// policies: by the profile default and the default windows.
type ruler struct {
	windows compaction.Windows

	rate      compaction.Rate
	available compaction.Tokens // what a call may carry: the window, less an answer that the agent requests room for
	system    compaction.Tokens
	tools     compaction.Tokens
	history   compaction.Tokens
}

func newRuler() *ruler {
	r := &ruler{windows: compaction.DefaultWindows()}
	r.model(&events.Model{})
	return r
}

// take notes what holds from a turn on, beside its messages.
func (r *ruler) take(t *events.Turn) {
	if t.Model != nil {
		r.model(t.Model)
	}
	if t.System != nil {
		r.system = r.field(t.System) + r.rate.PerMessage
	}
	if t.Tools != nil {
		r.tools = r.field(t.Tools)
	}
}

func (r *ruler) model(m *events.Model) {
	window := compaction.Tokens(m.ContextWindow)
	if window == 0 {
		window = r.windows.Window(m.Provider, m.Name)
	}
	r.rate = compaction.RateOf(compaction.Profiles["default"], m.Provider, m.Name)
	r.available = window - compaction.Tokens(m.MaxOutputTokens)
}

func (r *ruler) field(raw events.Raw) compaction.Tokens {
	if s, ok := events.Text(raw); ok {
		return r.rate.Count(s)
	}
	return r.rate.Count(string(raw))
}

// of estimates some messages.
func (r *ruler) of(messages []events.Message) (t compaction.Tokens) {
	for _, m := range messages {
		for _, e := range compaction.Measure(m, compaction.Entry{}) {
			t += r.rate.Entry(&e)
		}
	}
	return t
}

// call is what the next call carries.
func (r *ruler) call() compaction.Tokens {
	return r.system + r.tools + r.history + r.rate.PerConversation
}
