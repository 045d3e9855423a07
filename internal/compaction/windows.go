package compaction

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"compactd/internal/events"
)

// defaultWindow is the context window of a model nobody knows, in tokens.
const defaultWindow Tokens = 128_000

// providerDefault names, inside a provider's table, the window of its other
// models.
const providerDefault = "_default"

// Windows is a table of context windows: provider, model, tokens.
type Windows map[string]map[string]Tokens

//go:embed windows/documented.json
var documentedWindows []byte

//go:embed windows/current.json
var currentWindows []byte

// DefaultWindows returns the table the reference documents, filled up from its
// newer release. Where the two differ the smaller window wins: a window taken
// too large loses a session, one taken too small costs a compaction.
func DefaultWindows() Windows {
	w := mustWindows(documentedWindows)
	for provider, models := range mustWindows(currentWindows) {
		if w[provider] == nil {
			w[provider] = map[string]Tokens{}
		}
		for model, tokens := range models {
			if old, ok := w[provider][model]; !ok || tokens < old {
				w[provider][model] = tokens
			}
		}
	}
	return w
}

func mustWindows(data []byte) Windows {
	var w Windows
	if err := events.UnmarshalStrict(data, &w); err != nil {
		panic(fmt.Sprintf("compaction: embedded table of windows: %v", err)) // a defect of the build
	}
	return w
}

// Window returns the context window of a model: its exact name, else the longest
// name in the table that begins it, else the provider's default, else 128,000.
// Names of providers compare without case.
func (w Windows) Window(provider, model string) Tokens {
	models := w[strings.ToLower(provider)]
	if t, ok := models[model]; ok {
		return t
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(models)) {
		if name != providerDefault && strings.HasPrefix(model, name) && len(name) > len(best) {
			best = name
		}
	}
	if best == "" {
		best = providerDefault
	}
	if t, ok := models[best]; ok {
		return t
	}
	return defaultWindow
}

// windowOf is the window that a model says it has, else that of the table.
func (c *Config) windowOf(m *events.Model) Tokens {
	if m.ContextWindow > 0 {
		return Tokens(m.ContextWindow)
	}
	return c.Windows.Window(m.Provider, m.Name)
}

// OutputReserve is what a model may answer: its explicit maximum, else 35 % of
// the window, at most 64,000 tokens.
func OutputReserve(window, maxOutput Tokens) Tokens {
	if maxOutput > 0 {
		return maxOutput
	}
	return min(64_000, Tokens(ceilDiv(int64(window)*35, 100)))
}
