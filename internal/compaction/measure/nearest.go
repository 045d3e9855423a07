package measure

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"compactd/internal/events/models"
)

// entryOf names a window of a table.
type entryOf struct{ provider, model string }

// known lists the models of a table in the order of their names, of all providers if none is named.
func (w Windows) known(provider string) iter.Seq[entryOf] {
	return func(yield func(entryOf) bool) {
		for _, p := range slices.Sorted(maps.Keys(w)) {
			if provider != "" && p != provider {
				continue
			}
			for _, m := range slices.Sorted(maps.Keys(w[p])) {
				if m != providerDefault && m != allOthers && !yield(entryOf{p, m}) {
					return
				}
			}
		}
	}
}

// Nearest is the model of the table with the most similar name, as provider/name: for a typing error, or a
// model of the same family. If no name is similar it is the provider, or "" if that is not similar either.
func (t Table) Nearest(provider, model string) string {
	name, maker := models.Canonical(model), models.Maker(model)
	at := t.windows.nearestProvider(provider)
	best := [3]int{max(2, len(name)/4) + 1}
	var out entryOf
	for k := range t.windows.known(at) {
		begins, whole := distances(name, models.Canonical(k.model))
		foreign := 1
		if k.provider == maker {
			foreign = 0
		}
		if d := [3]int{begins, foreign, whole}; name != "" && begins < len(name) && slices.Compare(d[:], best[:]) <= 0 {
			best, out = d, k
		}
	}
	if out.model == "" {
		return cmp.Or(at, maker)
	}
	return cmp.Or(out.provider, models.Maker(out.model)) + "/" + out.model
}

// nearestProvider is the provider of the table with the most similar name: at most two letters differ; "" is
// any.
func (w Windows) nearestProvider(provider string) (at string) {
	name, best := models.Provider(provider), 3
	for _, p := range slices.Sorted(maps.Keys(w)) {
		if _, d := distances(name, p); d < best && 2*d < len(name) {
			at, best = p, d
		}
	}
	return at
}

// Distance is the number of letters by which two names differ: added, missing, other, or swapped letters.
func Distance(name, other string) int {
	_, whole := distances(name, other)
	return whole
}

// distances are the numbers of letters by which a name differs from the most similar beginning of another
// name, and from the whole of it: added, missing, other, or swapped letters.
func distances(name, other string) (begins, whole int) {
	n, m := len(name), len(other)
	before, row := make([]int, m+1), make([]int, m+1) // for the letters of name so far
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= n; i++ {
		older := before
		before, row = row, make([]int, m+1)
		row[0] = i
		for j := 1; j <= m; j++ {
			cost := 1
			if name[i-1] == other[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && name[i-1] == other[j-2] && name[i-2] == other[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return slices.Min(row), row[m]
}
