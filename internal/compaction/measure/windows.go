package measure

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/models"
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

// Anywhere is, beside the providers, the table of models by the name that their maker has for
// them: those whose window is the same wherever they run.
const Anywhere = ""

// allOthers names, inside a provider's table, a default that was set over the tables of this
// package: what is known of models anywhere does not go before it.
const allOthers = ""

// DefaultWindows returns the table the reference documents, filled up from its
// newer release and with the models of models.json. Where they differ the smaller window wins: a
// window taken too large loses a session, one taken too small costs a compaction.
func DefaultWindows() Windows {
	w := tableOf(documentedWindows)
	smaller := func(old, now Tokens) Tokens { return min(old, now) }
	w.join(mustWindows(currentWindows), smaller)
	w.join(catalog.Windows(), smaller)
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
	for name, models := range over {
		if t, ok := models[providerDefault]; ok {
			out[Provider(name)][allOthers] = t
		}
	}
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
		panic(fmt.Sprintf("measure: embedded table of windows: %v", err)) // a defect of the build
	}
	return w
}

// Table finds the windows of models in a time that does not grow with their number. It is
// immutable.
type Table struct {
	windows Windows
	named   []named // in the order of names
}

// named is a window by the name that the maker of its model has for it.
type named struct {
	name   string
	window Tokens
}

// Table returns the windows in the form in which they are looked up.
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

// Window returns the context window of a model: that of its exact name, else of the longest
// name in the table that begins it, else the provider's default, else 128,000. A name is that
// of the provider, or where it is longer the one that the maker of the model has for it. The
// provider may be spelled in any way. A default gives way to a smaller window that the model's
// maker has for it.
func (t Table) Window(provider, model string) Tokens {
	window, _ := t.Lookup(provider, model)
	return window
}

// Lookup is Window, and reports whether the window is known: by a name, or a default that was
// set over the tables of this package. Any other default is a guess.
func (t Table) Lookup(provider, model string) (window Tokens, known bool) {
	at, anywhere := t.windows[Provider(provider)], t.windows[Anywhere]
	if window, ok := at[model]; ok && model != "" {
		return window, true
	}
	name := longest(at, model)
	window, set := at[allOthers]
	if made := longest(anywhere, models.Canonical(model)); !set && len(made) > len(name) {
		return anywhere[made], strings.ContainsAny(made, "0123456789-") // else it is that of a family
	}
	switch {
	case name != "":
		return at[name], true
	case set:
		return window, true
	}
	return t.smallest(at, model)
}

// smallest is the window of a model that the table of its provider does not have: the
// provider's default, or a smaller one that its maker has, or of a name that the model's begins.
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

// Largest is the largest window in the table: no model is known to take more.
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

// OutputReserve is what a model may answer: its explicit maximum, else 35 % of
// the window, at most 64,000 tokens.
func OutputReserve(window, maxOutput Tokens) Tokens {
	if maxOutput > 0 {
		return maxOutput
	}
	return min(64_000, Tokens(CeilDiv(int64(window)*35, 100)))
}
