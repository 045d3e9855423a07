package stage

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// A draft keeps what follows from its entries instead of working it out again.
// Whatever the stages do to it (B2, B3, B9, B11), it returns what the slow and plain
// ways below return.
func TestDraftAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(events.Formats()).Draw(t, "format")
		profile := rapid.SampledFrom(slices.Sorted(maps.Keys(measure.Profiles))).Draw(t, "profile")
		d := NewDraft(drawEntries(t, f), f, measure.NewRate(measure.Profiles[profile], "anthropic"))
		agrees(t, d)
		for range rapid.IntRange(1, 4).Draw(t, "stages") {
			before, was := slices.Clone(d.entries), d.savepoint()
			for range rapid.IntRange(1, 3).Draw(t, "steps") { // the last stage hides messages, then cuts contents
				drawStage(t, d)
				agrees(t, d)
			}
			if rapid.Bool().Draw(t, "undo") {
				d.rollback(was)
				same(t, "undone", before, d.entries)
				agrees(t, d)
			}
		}
		d.Repair()
		keeps(t, d)
	})
}

// drawEntries makes a history of anything: long exchanges, ids that come twice or
// never, results of no call, reads and their placeholders.
func drawEntries(t *rapid.T, f events.Format) []measure.Entry {
	var out []measure.Entry
	number := func(low, high int, label string) int { return rapid.IntRange(low, high).Draw(t, label) }
	ids := rapid.SampledFrom([]int{0, 3, 60}).Draw(t, "ids") // 0: of a dialect without
	for m := range number(1, 30, "messages") {
		e := measure.Entry{Seq: measure.Seq(m + 1), Turn: uint32(m + 1), Parts: 1, Flags: measure.FlagFirst, Role: measure.Role(number(1, 3, "role"))}
		if m == 0 && f != events.Anthropic && rapid.Bool().Draw(t, "system") {
			e.Role = measure.RoleSystem
		}
		for p := range number(1, 1+12*number(0, 3, "long"), "parts") {
			e.Part, e.Kind, e.Text = uint32(p), measure.Kind(number(0, 2, "kind")), uint32(number(0, 400, "text"))
			e.Call, e.Tool, e.Path, e.Variant, e.Op = 0, 0, 0, 0, measure.OpNone
			switch e.Kind {
			case measure.KindWords:
				if e.Text == 0 {
					e.Flags |= measure.FlagEmpty
				}
			case measure.KindResult:
				e.Flags |= measure.FlagRead
				e.Path, e.Variant = dialect.Key(number(1, 3, "path")), dialect.Key(number(0, 2, "variant"))
				e.Op = measure.Op(max(number(-4, 2, "op"), 0))
				fallthrough
			default:
				e.Call, e.Tool = dialect.Key(number(0, ids, "id")), dialect.Key(number(0, 2, "tool"))
			}
			out = append(out, e)
			e.Flags = 0
		}
	}
	return out
}

// drawStage runs a stage.
func drawStage(t *rapid.T, d *Draft) {
	tokens := measure.Tokens(rapid.IntRange(0, 3000).Draw(t, "tokens"))
	switch rapid.IntRange(0, 4).Draw(t, "stage") {
	case 0:
		d.Prune(tokens, 0, nil)
	case 1:
		d.Deduplicate(1)
	case 2:
		d.Truncate(tokens, 500_000)
	case 3:
		to := rapid.SampledFrom(d.entries).Draw(t, "to")
		d.condense(&Summary{Seq: 1000, To: to.End(), Units: 100}, nil)
	case 4:
		d.Trim(tokens, tokens)
	}
}

// agrees compares a draft with the oracle.
func agrees(t *rapid.T, d *Draft) {
	t.Helper()
	keeps(t, d)
	same(t, "counterparts", slowPairs(d), d.pairing().Other)
	c := NewDraft(slices.Clone(d.entries), d.format, d.rate)
	c.Repair()
	same(t, "tokens of what would be repaired", slowTokens(c), d.Repaired())
	same(t, "later reads", slowReads(d.entries), maps.Collect(d.rereads()))
}

// keeps checks the sums of a draft, which hold for a repaired one too.
func keeps(t *rapid.T, d *Draft) {
	t.Helper()
	same(t, "tokens", slowTokens(d), d.tokens)
	pointers := 0
	for _, e := range d.entries {
		if e.Op == measure.OpDeduplicate {
			pointers++
		}
	}
	same(t, "placeholders", pointers, d.pointers)
}

func same(t *rapid.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s: %s", what, diff)
	}
}

// slowTokens adds up all entries.
func slowTokens(d *Draft) (sum measure.Tokens) {
	for i := range d.entries {
		sum += d.rate.Entry(&d.entries[i])
	}
	return sum
}

// slowPairs looks for the call of each result from the beginning of its exchange.
func slowPairs(d *Draft) []int32 {
	exchange := exchanges(d.entries, d.format)
	out := slices.Repeat([]int32{-1}, len(d.entries))
	for i, e := range d.entries {
		if e.Kind != measure.KindResult || e.Flags.Has(measure.FlagEmpty) {
			continue
		}
		call := -1
		for _, fits := range []func(measure.Entry) bool{
			func(c measure.Entry) bool {
				return e.Call != 0 && c.Call == e.Call || e.Call == 0 && e.Tool != 0 && c.Tool == e.Tool
			},
			func(c measure.Entry) bool { return e.Call == 0 || c.Call == 0 },
		} {
			for k := exchange[i]; k < i && call < 0; k++ {
				if c := d.entries[k]; c.Kind == measure.KindCall && out[k] < 0 && fits(c) {
					call = k
				}
			}
		}
		if k := i - 1; call < 0 && d.format == events.NeuroLink && e.Call == 0 { // adjacency
			for k >= 0 && d.entries[k].Flags.Has(measure.FlagEmpty) {
				k--
			}
			switch {
			case k < 0 || d.entries[k].Kind != measure.KindCall && d.entries[k].Kind != measure.KindResult:
			case out[k] < 0 || d.entries[out[k]].Kind != measure.KindCall:
				out[i] = int32(k)
			default:
				call = int(out[k])
			}
		}
		if call >= 0 {
			out[i], out[call] = int32(call), int32(i)
		}
	}
	return out
}

// slowReads looks for the latest read behind each read and placeholder.
func slowReads(entries []measure.Entry) map[int]int {
	out := map[int]int{}
	for i, e := range entries {
		if !e.Tried() && e.Op != measure.OpDeduplicate {
			continue
		}
		out[i] = -1
		for k := i + 1; k < len(entries); k++ {
			if r := entries[k]; r.Reads() && r.Path == e.Path && (r.Variant == 0 || r.Variant == e.Variant) {
				out[i] = k
			}
		}
	}
	return out
}
