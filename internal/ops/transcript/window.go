package transcript

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/models"
)

// Models for transcripts that name none.
const (
	claudePrefix  = "claude"
	fallbackModel = "gpt-4o"
)

// standardWindow is the window of Claude, in tokens, unless a larger one is requested.
const standardWindow = 200_000

var windows = sync.OnceValue(func() measure.Table { return measure.DefaultWindows().Table() })

// window returns the window of a model of the transcript, in tokens; 0 leaves it to the table of
// windows. A provider that the table does not list has the window of the maker. A call above the
// window in the table proves at least its own size. An agent that compacts itself and never made a
// call above the standard window of Claude had no larger one.
func (r *recording) window(m events.Model) int64 {
	use := r.largest(m.Name)
	known, ok := windows().Lookup(m.Provider, m.Name)
	own := int64(known)
	made, sold := windows().Lookup(models.Maker(m.Name), models.Canonical(m.Name))
	switch {
	case r.stated > 0:
		return r.stated
	case !ok && sold:
		return max(use, int64(made))
	case use > own:
		return use
	case own > standardWindow && use > 0 && use <= standardWindow && models.Maker(m.Name) == "anthropic" && r.compacts():
		return standardWindow
	}
	return 0
}

// largest is the largest prompt that the provider counted for a model, in tokens.
func (r *recording) largest(name string) (most int64) {
	at := r.model.Name
	for _, s := range r.steps {
		if validModel(s.model) {
			at = modelNamed(s.model).Name
		}
		if s.usage != nil && s.usage.sane() && at == name {
			most = max(most, s.usage.prompt())
		}
	}
	return most
}

// compacts reports whether the recorded agent compacted its history.
func (r *recording) compacts() bool {
	return slices.ContainsFunc(r.steps, func(s step) bool { return s.compaction })
}

// qualified is the name of a model with that of its provider, for makers that are not known by it.
func qualified(provider, name string) string {
	if provider == "" || provider == "anthropic" || name == "" {
		return name
	}
	return provider + "/" + name
}

// modelNamed reads names as they stand in transcripts: gpt-4o, claude-opus-4-1, or
// provider/model. One that no event may carry is as good as none.
func modelNamed(name string) events.Model {
	provider, rest, ok := strings.Cut(name, "/")
	switch {
	case !validModel(name):
		return events.Model{Provider: "openai", Name: fallbackModel}
	case ok && provider != "" && rest != "":
		return events.Model{Provider: provider, Name: rest}
	default:
		return events.Model{Provider: cmp.Or(models.Maker(name), "openai"), Name: name}
	}
}

// validModel reports whether an event may carry the name of a model or provider: the
// bounds are those of an id.
func validModel(name string) bool { return events.ValidEventID(name) }
