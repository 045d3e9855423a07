package measure

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"compactd/internal/events"
)

// defaultWindow is the context window of an unknown model, in tokens.
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
	w.join(mustWindows(currentWindows), func(old, now Tokens) Tokens { return min(old, now) })
	return w
}

// Bounds of a window in an override, in tokens: beyond them it is a slip, such as
// 200 for 200,000.
const (
	minWindow Tokens = 1_000
	maxWindow Tokens = 100_000_000
)

// With returns the table with the windows of another in place of its own. Its
// error joins one for each bad window, each of which begins with the path
// windows.PROVIDER.MODEL and a space.
func (w Windows) With(over Windows) (Windows, error) {
	var errs []error
	for _, provider := range slices.Sorted(maps.Keys(over)) {
		for _, model := range slices.Sorted(maps.Keys(over[provider])) {
			if t := over[provider][model]; t < minWindow || t > maxWindow {
				errs = append(errs, fmt.Errorf("windows.%s.%s must be between %d and %d tokens, not %d", provider, model, minWindow, maxWindow, t))
			}
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	out := Windows{}
	out.join(w, nil)
	out.join(over, func(_, now Tokens) Tokens { return now })
	return out, nil
}

// join adds the windows of another table; choose decides about those that both have.
func (w Windows) join(other Windows, choose func(old, now Tokens) Tokens) {
	for _, name := range slices.Sorted(maps.Keys(other)) {
		provider := Provider(name)
		if w[provider] == nil {
			w[provider] = map[string]Tokens{}
		}
		for model, now := range other[name] {
			if old, ok := w[provider][model]; ok {
				now = choose(old, now)
			}
			w[provider][model] = now
		}
	}
}

func mustWindows(data []byte) Windows {
	var w Windows
	if err := events.UnmarshalStrict(data, &w); err != nil { //nolint:forbidigo // a table of this package, embedded
		panic(fmt.Sprintf("compaction: embedded table of windows: %v", err)) // a defect of the build
	}
	return w
}

// Window returns the context window of a model: its exact name, else the longest
// name in the table that begins it, else the provider's default, else 128,000.
// The provider may be spelled in any way.
func (w Windows) Window(provider, model string) Tokens {
	models := w[Provider(provider)]
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

// OutputReserve is what a model may answer: its explicit maximum, else 35 % of
// the window, at most 64,000 tokens.
func OutputReserve(window, maxOutput Tokens) Tokens {
	if maxOutput > 0 {
		return maxOutput
	}
	return min(64_000, Tokens(CeilDiv(int64(window)*35, 100)))
}
