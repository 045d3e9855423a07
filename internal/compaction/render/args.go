package render

import (
	"slices"
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
)

// leastString is the size in UTF-16 units below which no string of arguments is cut, without its notice.
const leastString = 64

// cutArgs returns arguments of a call within the size of a trimmed entry: the longest strings of the JSON are
// cut to one size. If other values make the arguments long, one member stays, with the head of their text.
// tail is the notice after a cut string. The result does not depend on the spelling of the JSON.
func cutArgs(e *measure.Entry, args codec.Raw, tail string) codec.Raw {
	args = codec.Shortest(args)
	kept, notice := e.Kept()
	_, base := measure.WeighJSON(args)
	most := base*kept/max(int64(e.JSON), 1) + measure.CeilDiv(notice, measure.PlainUnits)
	return codec.Raw(fitWeight(measure.WeighJSON, kept+notice, most, func(room int64) string {
		return string(argsWithin(args, room, tail))
	}))
}

// argsWithin returns arguments of at most room units.
func argsWithin(args codec.Raw, room int64, tail string) codec.Raw {
	if args.Kind() == '"' { // not JSON, or the text of a custom tool
		text, _ := codec.Text(args)
		return quoteWithin(text, room, tail)
	}
	longest := longestWithin(args, room, tail)
	if longest < leastString {
		const head, end = `{"arguments":`, `}`
		return slices.Concat(codec.Raw(head), quoteWithin(string(args), room-measure.UnitsOf(head+end), tail), codec.Raw(end))
	}
	return codec.MapStrings(args, func(quoted codec.Raw) codec.Raw { return cutString(quoted, longest, tail) })
}

// longestWithin returns the largest size of a string such that all arguments have at most room units; less
// than leastString if that is not enough.
func longestWithin(args codec.Raw, room int64, tail string) int64 {
	var sizes []int64
	total, _ := measure.WeighJSON(args)
	codec.MapStrings(args, func(quoted codec.Raw) codec.Raw {
		n, _ := measure.WeighJSON(quoted)
		sizes = append(sizes, n)
		return quoted
	})
	notice := quotedUnits(tail)
	after := func(longest int64) int64 {
		sum := total
		for _, n := range sizes {
			sum -= max(n-longest-notice, 0)
		}
		return sum
	}
	return int64(sort.Search(int(max(room, leastString)), func(n int) bool { return after(int64(n)) > room })) - 1
}

// cutString cuts a JSON string that is longer than longest units with the notice.
func cutString(quoted codec.Raw, longest int64, tail string) codec.Raw {
	room := longest + quotedUnits(tail)
	if n, _ := measure.WeighJSON(quoted); n <= room {
		return quoted
	}
	text, _ := codec.Text(quoted)
	return quoteWithin(text, room, tail)
}

// quoteWithin returns the head of a text followed by the notice, as a JSON string of at most room units; or
// the notice alone.
func quoteWithin(text string, room int64, tail string) codec.Raw {
	for n := max(room-quotedUnits(tail), 0); ; {
		head, _ := measure.CutUnits(text, n)
		quoted := codec.Quote(head + tail)
		units, _ := measure.WeighJSON(quoted)
		if units <= room || n == 0 {
			return quoted
		}
		n = min(n*max(room, 0)/units, n-1)
	}
}

// quotedUnits is the size of a text in JSON, without the quotes.
func quotedUnits(text string) int64 {
	units, _ := measure.WeighJSON(codec.Quote(text))
	return units - 2
}
