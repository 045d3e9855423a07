package whatif

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// record is the log of a worker with a config, to which an agent published a session: with its summaries, each by
// a model and a delay after its request. paid changes the turns.
func record(t *testing.T, s *Session, c *compaction.Config, model string, paid func(turn map[string]any)) *Session {
	t.Helper()
	out := &Session{Address: s.Address, Decided: true}
	for i := range s.Events {
		var turn map[string]any
		if err := codec.Unmarshal(s.Events[i].Data, &turn); err != nil {
			t.Fatal(err)
		}
		paid(turn)
		var err error
		if s.Events[i].Data, err = codec.Marshal(turn); err != nil {
			t.Fatal(err)
		}
	}
	w := newSimulation(s, c, Delay.Milliseconds())
	w.made, w.noFacts = 1<<20, true // beside those of a simulation of it
	w.emitted = func(e *Event, _ []compaction.Outcome) {
		was := *e
		if was.Config = c; e.Kind == events.KindSummary {
			was.Data = bytes.Replace(e.Data, []byte(`"model":"embedded"`), []byte(`"model":"`+model+`","usage":{"input_tokens":5000,"output_tokens":700}`), 1)
		}
		out.Events = append(out.Events, was)
	}
	if _, err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// compare decides a session under objects set over the preset default, with summaries by a writer.
func compare(t *testing.T, s *Session, writer string, objects ...string) []*Choice {
	t.Helper()
	now := preset(t, "default").Config
	var configs []*compaction.Config
	var sets [][]string
	for _, object := range objects {
		sets = append(sets, []string{object})
		p, err := now.Policy.Set([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		c, err := now.WithPolicy(p)
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, c)
	}
	out, err := Compare(t.Context(), s, sets, configs, Options{NoFacts: true, Writer: func(*events.Job) string { return writer }})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// asRecorded are the turns as they are.
func asRecorded(map[string]any) {}

// recorded is the example as a worker with the preset default decided it.
func recorded(t *testing.T, model string, paid func(map[string]any)) *Session {
	t.Helper()
	return record(t, examples(t, "example-rename-flag*")[0], preset(t, "default").Config, model, paid)
}

// The recorded run comes first, and the policy in force is folded into it, as is any with the same result. Each
// choice states when it compacts and how far, in shares and in tokens.
func TestCompare(t *testing.T) {
	same := `{"threshold":0.8,"target":0.6}`
	got := compare(t, recorded(t, "embedded", asRecorded), "", `{}`, `{"target":0.5}`, same, `{"enabled":false}`)
	if len(got) != 3 {
		t.Fatalf("got %d choices, want 3", len(got))
	}
	now, lower, never := got[0], got[1], got[2]
	if d := cmp.Diff([][]string{{`{}`}, {same}}, now.Equal); d != "" || !now.Recorded || len(now.Set) > 0 || lower.Recorded {
		t.Error(d, now.Set)
	}
	if now.Policy.Threshold != 800_000 || now.Policy.Target != 600_000 || now.Policy.TriggerMode != "ratio" || !now.Policy.Enabled {
		t.Errorf("now: %+v", now.Policy)
	}
	if lower.Policy.Target != 500_000 || lower.Target >= now.Target || lower.Trigger != now.Trigger || now.Trigger <= now.Target || now.Available <= now.Trigger {
		t.Errorf("tokens: %d of %d to %d, and %d to %d", now.Trigger, now.Available, now.Target, lower.Trigger, lower.Target)
	}
	if never.Policy.Enabled || never.Compactions != 0 || now.Compactions == 0 {
		t.Errorf("%d compactions now, %d when off", now.Compactions, never.Compactions)
	}
}

// Summaries cost what their writer charges: the one of those that were recorded, else the one that would write them.
// The embedded summarizer costs nothing, and a model without a price is named so.
func TestCompareWriters(t *testing.T) {
	cost := func(recordedBy, writer string) *Choice {
		return compare(t, recorded(t, recordedBy, asRecorded), writer, `{"enabled":false}`)[0]
	}
	embedded, dear, cheap, unknown := cost("embedded", "own/model"), cost("anthropic/claude-opus-4-1", ""), cost("anthropic/claude-haiku-4-5", ""), cost("own/model", "")
	if embedded.Summaries.Made == 0 || embedded.Costs.Summaries != 0 || embedded.Writer != "embedded" || embedded.Unpriced {
		t.Errorf("embedded: %d made by %s for %d", embedded.Summaries.Made, embedded.Writer, embedded.Costs.Summaries)
	}
	if dear.Costs.Summaries <= cheap.Costs.Summaries || cheap.Costs.Summaries <= 0 || dear.Costs.Input != cheap.Costs.Input || dear.Writer != "anthropic/claude-opus-4-1" {
		t.Errorf("summaries for %d and %d", dear.Costs.Summaries, cheap.Costs.Summaries)
	}
	if unknown.Costs.Summaries != 0 || !unknown.Unpriced {
		t.Errorf("a model without a price: %d, %v", unknown.Costs.Summaries, unknown.Unpriced)
	}
	none := record(t, examples(t, "example-rename-flag*")[0], preset(t, "neurolink").Config, "embedded", asRecorded)
	none.Events = slices.DeleteFunc(none.Events, func(e Event) bool { return e.Kind == events.KindSummary })
	if c := compare(t, none, "anthropic/claude-opus-4-1", `{}`); c[len(c)-1].Writer != "anthropic/claude-opus-4-1" || c[len(c)-1].Costs.Summaries <= 0 {
		t.Errorf("without a recorded summary: %+v", c[len(c)-1])
	}
}

// The recorded run costs as much as workers counted for it, by usage where turns have one, and the estimates of other
// policies are scaled alike. Where no call has a usage, that is stated.
func TestComparePaid(t *testing.T) {
	const model, off = "anthropic/claude-opus-4-1", `{"enabled":false}`
	twice := func(turn map[string]any) {
		if u, ok := turn["usage"].(map[string]any); ok {
			for name, n := range u {
				u[name] = 2 * n.(float64)
			}
		}
	}
	without := func(turn map[string]any) { delete(turn, "usage") }
	for _, x := range []struct {
		name     string
		paid     func(map[string]any)
		reported int64
	}{{"as it is", asRecorded, 22}, {"twice", twice, 22}, {"without usage", without, 0}} {
		s := recorded(t, model, x.paid)
		w := newSimulation(s, nil, 0)
		if _, err := w.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		bill, estimate := w.own.ledger.Describe(preset(t, "default").Config).Cost, w.sum.Costs
		got := compare(t, s, "", `{}`, off)
		if c := got[0].Costs; int64(c.Input) != bill.Input || int64(c.Summaries) != bill.Summaries || bill.Input == int64(estimate.Input) || c.Reported != x.reported || c.Reported+c.Estimated != 24 {
			t.Errorf("%s: %+v, and workers counted %+v", x.name, c, bill)
		}
		r := NewReport([]Policy{{Name: "off", Config: got[1].config}}, Options{NoFacts: true})
		if err := r.Add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		alone := r.Policies[0].Costs // by estimate
		if want := float64(alone.Input) * float64(bill.Input) / float64(estimate.Input); math.Abs(want-float64(got[1].Costs.Input)) > 1 {
			t.Errorf("%s: never compacted costs %d, want %f", x.name, got[1].Costs.Input, want)
		}
	}
}
