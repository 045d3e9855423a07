package whatif

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// compare decides the example under objects set over the preset default, with summaries by a writer.
func compare(t *testing.T, writer string, objects ...string) []*Choice {
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
	out, err := Compare(t.Context(), examples(t, "example-rename-flag*")[0], sets, configs, Options{NoFacts: true, Writer: func(*events.Job) string { return writer }})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each choice states when it compacts and how far, in shares and in tokens; one with the result of an
// earlier one is folded into it.
func TestCompare(t *testing.T) {
	same := `{"threshold":0.8,"target":0.6}`
	got := compare(t, "", `{}`, `{"target":0.5}`, same, `{"enabled":false}`)
	if len(got) != 3 {
		t.Fatalf("got %d choices, want 3", len(got))
	}
	now, lower, never := got[0], got[1], got[2]
	if d := cmp.Diff([][]string{{same}}, now.Equal); d != "" {
		t.Error(d)
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

// Summaries cost what their writer charges: the embedded summarizer nothing, a model by its list price, and
// one without a price is named so.
func TestCompareWriters(t *testing.T) {
	cost := func(writer string) *Choice { return compare(t, writer, `{}`)[0] }
	embedded, dear, cheap, unknown := cost(""), cost("anthropic/claude-opus-4-1"), cost("anthropic/claude-haiku-4-5"), cost("own/model")
	if embedded.Summaries.Made == 0 || embedded.Costs.Summaries != 0 || embedded.Writer != "embedded" || embedded.Unpriced {
		t.Errorf("embedded: %d made by %s for %d", embedded.Summaries.Made, embedded.Writer, embedded.Costs.Summaries)
	}
	if dear.Costs.Summaries <= cheap.Costs.Summaries || cheap.Costs.Summaries <= 0 || dear.Costs.Input != cheap.Costs.Input || dear.Writer != "anthropic/claude-opus-4-1" {
		t.Errorf("summaries for %d and %d", dear.Costs.Summaries, cheap.Costs.Summaries)
	}
	if unknown.Costs.Summaries != 0 || !unknown.Unpriced {
		t.Errorf("a model without a price: %d, %v", unknown.Costs.Summaries, unknown.Unpriced)
	}
}
