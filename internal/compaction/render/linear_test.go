package render_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/testkit/linear"
)

// cutResults is a view with n calls in two messages and their results by turns, all of them cut to lines.
func cutResults(t *testing.T, n int) (v *render.View, texts []dialect.Message) {
	var calls [2][]string
	var results []string
	text := strings.Repeat("line of a log that is long\\n", 20)
	for i := range n {
		calls[i%2] = append(calls[i%2], fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"grep","input":{"pattern":"something%d"}}`, i, i))
		results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"t%d","content":"%s"}`, i, text))
	}
	for _, content := range []string{
		`{"role":"user","content":"go"}`,
		`{"role":"assistant","content":[` + strings.Join(calls[0], ",") + `]}`,
		`{"role":"assistant","content":[` + strings.Join(calls[1], ",") + `]}`,
		`{"role":"user","content":[` + strings.Join(results, ",") + `]}`,
		`{"role":"assistant","content":"ok"}`,
	} {
		texts = append(texts, dialect.Message{Raw: codec.Raw(content)})
	}
	v = &render.View{Format: events.Anthropic}
	for i := range texts {
		m, err := v.Format.ReadAll([]codec.Raw{texts[i].Raw})
		if err != nil {
			t.Fatal(err)
		}
		v.Entries = append(v.Entries, measure.Measure(m[0], measure.Entry{Seq: 1, Turn: 1, Index: uint32(i)})...)
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; e.Kind == measure.KindResult {
			e.Set(&events.Edit{Op: events.OpTrim, Units: 292, Direction: "lines"})
		}
	}
	return v, texts
}

// A result that is cut to lines costs as much where its call is one of many.
func TestLinear(t *testing.T) {
	const n, most = 250, 2.5
	var run [2]func()
	for i, n := range []int{n, 4 * n} {
		v, texts := cutResults(t, n)
		run[i] = func() {
			out, _, err := render.Render(v, func(measure.Seq) ([]dialect.Message, error) { return texts, nil })
			if err != nil || len(out) == 0 {
				t.Fatal(err)
			}
		}
	}
	if r := linear.RatioOf(n, most, func(size int) linear.Cost { return linear.Of(1, run[size]) }); r.Worst() > most {
		t.Errorf("%v", r)
	}
}
