package align_test

import (
	"fmt"
	"slices"
	"testing"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/linear"
)

func calling(id int) codec.Raw {
	return codec.Raw(fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":"c%06d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, id))
}

func answering(id int) codec.Raw {
	return codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%06d","content":"1"}`, id))
}

// histories are those that cost the most where a comparison is not linear.
var histories = map[string]func(n int) []codec.Raw{
	"alike": func(n int) []codec.Raw {
		return slices.Repeat([]codec.Raw{codec.Raw(`{"role":"user","content":"a"}`)}, n)
	},
	"calls":               func(n int) []codec.Raw { return listOf(n, calling) },
	"calls, then results": func(n int) []codec.Raw { return append(listOf(n/2, calling), listOf(n/2, answering)...) },
	"calls, then results backwards": func(n int) []codec.Raw {
		return append(listOf(n/2, calling), listOf(n/2, func(i int) codec.Raw { return answering(n/2 - 1 - i) })...)
	},
	"calls of one id": func(n int) []codec.Raw {
		return append(listOf(n/2, func(int) codec.Raw { return calling(0) }), listOf(n/2, func(int) codec.Raw { return answering(0) })...)
	},
}

func listOf(n int, of func(int) codec.Raw) (out []codec.Raw) {
	for i := range n {
		out = append(out, of(i))
	}
	return out
}

// A comparison of a sync costs as much for each message in a long history as in a short one.
func TestLinear(t *testing.T) {
	const n, most = 1000, 2.5
	for name, of := range histories {
		var hs [2]*align.History
		var turns [2][]events.Link
		for i, n := range []int{n, 4 * n} {
			hs[i] = align.Read(events.OpenAI, of(n), 0)
			var l events.Link
			for k := range n {
				l.Digest = events.OpenAI.DigestOf(hs[i].From(k)[:1])
				l.Whole, l.End = l.Whole.With(l.Digest, 1), l.End+1
				turns[i] = append(turns[i], l)
			}
		}
		for op, run := range map[string]func(h *align.History, chain []events.Link){
			"match": func(h *align.History, chain []events.Link) { h.Match(chain) },
			"fits":  func(h *align.History, _ []events.Link) { h.Fits(0, nil) },
			"split": func(h *align.History, _ []events.Link) {
				if _, err := h.Split(0, 20_000); err != nil {
					t.Fatal(err)
				}
			},
			"find": func(h *align.History, _ []events.Link) {
				out := make([]align.Output, h.Len())
				for i := range out {
					out[i].Raw = h.At(h.Len() - 1 - i)
				}
				align.Find(h, 0, h.Len(), out)
			},
			"parts": func(h *align.History, _ []events.Link) {
				out := make([]align.Output, h.Len())
				for i := range out {
					out[i] = align.Output{Raw: h.At(i), From: i, To: i + 1 + i%3}
				}
				align.Parts(h.Len()+3, out)
			},
			"work": func(h *align.History, _ []events.Link) { h.HasWork(h.Messages) },
		} {
			r := linear.RatioOf(n, most, func(size int) linear.Cost {
				return linear.Of(1, func() { run(hs[size], turns[size]) })
			})
			if r.Worst() > most {
				t.Errorf("%s, %s: %v", name, op, r)
			}
		}
	}
}
