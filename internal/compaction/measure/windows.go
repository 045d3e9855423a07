package measure

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/models"
)

// defaultWindow is the context window of an unknown model, in tokens.
const defaultWindow Tokens = 128_000

// providerDefault is the name of a provider's default in its table.
const providerDefault = "_default"

// Windows is a table of context windows: provider, model, tokens.
type Windows map[string]map[string]Tokens

//go:embed windows/documented.json
var documentedWindows []byte

//go:embed windows/current.json
var currentWindows []byte

// Anywhere is the key of a table beside the providers: models by their makers' names, with a window that is
// the same on any provider.
const Anywhere = ""

// allOthers is the name of a default that overrides this package's tables, including Anywhere.
const allOthers = ""

// DefaultWindows returns the documented table of the reference, completed from its newer release and
// models.json. If they differ the smaller window wins: a window that is too large loses a session, one that
// is too small costs a compaction.
func DefaultWindows() Windows {
	w := tableOf(documentedWindows)
	smaller := func(old, now Tokens) Tokens { return min(old, now) }
	w.join(mustWindows(currentWindows), smaller)
	w.join(catalog.Windows(), smaller)
	return w
}

// Bounds of a window in an override, in tokens: a value beyond them is a mistake, such as 200 for 200,000.
const (
	minWindow Tokens = 1_000
	maxWindow Tokens = 100_000_000
)

// With returns the table with the windows of another added, which replace its own. Its error joins one for
// each bad window, which begins with the path windows.PROVIDER.MODEL and a space.
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
	for name, tokens := range over {
		if t, ok := tokens[providerDefault]; ok {
			out[models.Provider(name)][allOthers] = t
		}
	}
	return out, nil
}

// join adds the windows of another table; choose decides between two windows of one model.
func (w Windows) join(other Windows, choose func(old, now Tokens) Tokens) {
	for _, name := range slices.Sorted(maps.Keys(other)) {
		provider := models.Provider(name)
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
	if err := codec.UnmarshalStrict(data, &w); err != nil { //nolint:forbidigo // a table of this package, embedded
		panic(fmt.Sprintf("measure: embedded table of windows: %v", err)) // a defect of the build
	}
	return w
}

// Table looks up the windows of models in a time that does not grow with their number. It is immutable.
type Table struct {
	windows Windows
	named   []named // in the order of names
}

// named is a window under the maker's name of its model.
type named struct {
	name   string
	window Tokens
}

// Table returns the windows in the form for lookups.
func (w Windows) Table() Table {
	t := Table{windows: w}
	for k := range w.known("") {
		t.named = append(t.named, named{models.Canonical(k.model), w[k.provider][k.model]})
	}
	slices.SortFunc(t.named, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.window, b.window))
	})
	return t
}

// Window returns the context window of a model: by its exact name, else by the longest name in the table that
// begins it, else the provider's default, else 128,000. Names are the provider's, or the maker's if that
// matches more of the name. The provider may have any spelling. A default gives way to a smaller window under
// the maker's name.
func (t Table) Window(provider, model string) Tokens {
	window, _ := t.Lookup(provider, model)
	return window
}

// Lookup is Window, and reports whether the window is known: by a name, or by a default that overrides the
// tables of this package. Any other default is a guess.
func (t Table) Lookup(provider, model string) (window Tokens, known bool) {
	at, anywhere := t.windows[models.Provider(provider)], t.windows[Anywhere]
	if window, ok := at[model]; ok && model != "" {
		return window, true
	}
	name := longest(at, model)
	window, set := at[allOthers]
	if made := longest(anywhere, models.Canonical(model)); !set && len(made) > len(name) {
		return anywhere[made], strings.ContainsAny(made, "0123456789-") // else it is a family's
	}
	switch {
	case name != "":
		return at[name], true
	case set:
		return window, true
	}
	return t.smallest(at, model)
}

// smallest is the window of a model that is not in its provider's table: the provider's default, or a smaller
// window of its maker, or of a name that begins with the model's.
func (t Table) smallest(at map[string]Tokens, model string) (window Tokens, known bool) {
	window, ok := at[providerDefault]
	if !ok {
		window = defaultWindow
	}
	name, made := models.Canonical(model), t.windows[models.Maker(model)]
	if t.windows[Anywhere] == nil || name == "" { // a table of the reference
		return window, false
	}
	if own := longest(made, name); own != "" && made[own] <= window {
		return made[own], true
	}
	first, _ := slices.BinarySearchFunc(t.named, name, func(n named, name string) int { return cmp.Compare(n.name, name) })
	for _, n := range t.named[first:] {
		if !strings.HasPrefix(n.name, name) {
			break
		}
		window = min(window, n.window)
	}
	return min(window, cmp.Or(made[providerDefault], window)), false
}

// Largest is the largest window in the table, an upper bound for every known model.
func (w Windows) Largest() (most Tokens) {
	for _, provider := range slices.Sorted(maps.Keys(w)) {
		for _, model := range slices.Sorted(maps.Keys(w[provider])) {
			most = max(most, w[provider][model])
		}
	}
	return most
}

// longest is the longest name in a provider's table that begins a model's, "" for none.
func longest[T any](table map[string]T, model string) string {
	for n := len(model); n > 0; n-- {
		if _, ok := table[model[:n]]; ok && model[:n] != providerDefault {
			return model[:n]
		}
	}
	return ""
}

// OutputReserve is the room for an answer: the model's explicit maximum, else 35 % of the window, at most
// 64,000 tokens.
func OutputReserve(window, maxOutput Tokens) Tokens {
	if maxOutput > 0 {
		return maxOutput
	}
	return min(64_000, Tokens(CeilDiv(int64(window)*35, 100)))
}
