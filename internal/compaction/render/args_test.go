package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
)

// Arguments that are cut are valid JSON of the same kind, within the ceiling of their
// entry, and say where the whole is.
func TestCutArgs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var value any = rapid.StringMatching(`[a-z"\\\n é漢😀]{0,40}`).Draw(t, "text")
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				value = []any{value, 12.5, nil, strings.Repeat("b\t", rapid.IntRange(0, 900).Draw(t, "n"))}
			case 1:
				value = map[string]any{"path": "/a/b.go", "content": value, "more": strings.Repeat("語", rapid.IntRange(0, 900).Draw(t, "n"))}
			case 2:
				value = map[string]any{"values": make([]int, rapid.IntRange(0, 900).Draw(t, "n")), "x": value}
			default:
				value = map[string]any{strings.Repeat("k", rapid.IntRange(1, 900).Draw(t, "n")): value}
			}
		}
		data, err := codec.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		args := codec.Raw(data)
		units, base := measure.WeighJSON(args)
		e := measure.Entry{Kind: measure.KindCall, Turn: 3, Index: 4, JSON: uint32(units), Base: uint32(base)}
		e = e.TrimTo(rapid.Int64Range(256, max(units, 256)).Draw(t, "ceiling"))
		got := cutArgs(&e, args, fmt.Sprintf(measure.TrimTail, e.Turn, e.Index))
		if err := codec.Check(got); err != nil || !json.Valid(got) {
			t.Fatalf("%s: %v", got, err)
		}
		if n, _ := measure.WeighJSON(got); n > int64(e.Ceiling) {
			t.Errorf("%d units, at most %d: %s", n, e.Ceiling, got)
		}
		if isText := args.Kind() == '"'; isText != (got.Kind() == '"') {
			t.Errorf("%.40s became %.40s", args, got)
		}
		if !strings.Contains(string(got), "the whole is kept as turn 3, message 4") && units > int64(e.Ceiling) {
			t.Errorf("no notice in %s", got)
		}
	})
}

// The longest strings come down to one size; what is short stays.
func TestCutArgsKeepsWhatIsShort(t *testing.T) {
	args := codec.Raw(`{"path":"/src/a.go","content":"` + strings.Repeat("line\\n", 2000) + `","mode":420}`)
	units, base := measure.WeighJSON(args)
	e := measure.Entry{Kind: measure.KindCall, Turn: 1, JSON: uint32(units), Base: uint32(base)}
	e = e.TrimTo(1000)
	got := string(cutArgs(&e, args, fmt.Sprintf(measure.TrimTail, e.Turn, e.Index)))
	if !strings.HasPrefix(got, `{"path":"/src/a.go","content":"line\n`) || !strings.HasSuffix(got, `message 0]","mode":420}`) || len(got) < 700 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
