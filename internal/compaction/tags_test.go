package compaction_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/reference"
	"compactd/internal/testkit/tags"
)

// B12: a running history of NeuroLink that hides messages behind its own summary
// and truncation notice is adopted as its effective history: the hidden ones are neither
// counted nor sent, and a result whose call is hidden gets a placeholder call.
func TestAdoptTaggedHistory(t *testing.T) {
	history := raws(
		object{"id": "m1", "role": "user", "content": "Fix the retry queue."},
		object{"id": "m2", "role": "assistant", "content": "I look at it.", "condenseParent": "c1"},
		object{"id": "m3", "role": "tool_call", "content": "", "tool": "bash", "toolCallId": "b1", "condenseParent": "c1"},
		object{"id": "m4", "role": "tool_result", "content": "exit 1", "tool": "bash", "toolCallId": "b1"},
		object{"id": "t", "role": "user", "content": "[cut]", "truncationId": "t1", "isTruncationMarker": true},
		object{"id": "m5", "role": "user", "content": "And then?", "truncationParent": "t1"},
		object{"id": "m6", "role": "assistant", "content": "Done.", "condenseParent": ""},
		object{"id": "m7", "role": "user", "content": "Thanks."},
	)
	adopt := func(messages []codec.Raw) *agent {
		a := newAgent(t, configOf(t, withoutSummaries()))
		a.publish(object{"turn": 1, "replaces_from": 1, "format": "neurolink", "messages": messages})
		return a
	}
	whole, effective := adopt(history), adopt(tags.Effective(history))
	if got, want := whole.ledger.Budget(), effective.ledger.Budget(); got != want {
		t.Errorf("budget %+v, want %+v", got, want)
	}
	rendered := func(a *agent) []codec.Raw {
		v := a.ledger.View()
		out, err := a.render(v)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := rendered(whole)
	if d := cmp.Diff(contents(t, rendered(effective)), contents(t, got), cmpopts.IgnoreFields(dialect.Part{}, "Source")); d != "" {
		t.Error(d)
	}
	if bad := validate.Messages(events.NeuroLink, got); len(bad) > 0 {
		t.Error(bad)
	}
	stats, err := whole.ledger.Stats(whole.config, events.Model{})
	if err != nil || stats.Messages != 5 {
		t.Errorf("%d messages, %v", stats.Messages, err)
	}
}

// contents are the texts and calls of messages, without their ids.
func contents(t *testing.T, messages []codec.Raw) [][]dialect.Part {
	msgs, err := events.NeuroLink.ReadAll(messages)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]dialect.Part
	for _, m := range msgs {
		out = append(out, m.Parts)
	}
	return out
}

// B12: in the neurolink form a truncation notice names its truncation; other dialects
// have no such names.
func TestMarkedMarker(t *testing.T) {
	for _, c := range []struct {
		format events.Format
		marked bool
	}{
		{events.NeuroLink, true},
		{events.OpenAI, false},
	} {
		a := newAgent(t, configOf(t, withoutSummaries()))
		r := measure.NewRate(measure.Profiles["default"], "openai")
		turn := filled(r, 95)
		turn["format"] = c.format
		a.publish(turn)
		v := a.ledger.View()
		history, err := a.render(v)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range history {
			if text, _ := reference.At(reference.Parsed(m), "content").(string); !strings.HasPrefix(text, measure.TruncateText) {
				continue
			}
			found++
			id, _ := reference.At(reference.Parsed(m), "truncationId").(string)
			if reference.At(reference.Parsed(m), "role") != "user" || (id != "") != c.marked || (reference.At(reference.Parsed(m), "isTruncationMarker") == true) != c.marked {
				t.Errorf("%s: %s", c.format, m)
			}
		}
		if found != 1 {
			t.Errorf("%s: %d notices", c.format, found)
		}
	}
}

// B12: in the neurolink form a summary names its condensation, the same one whenever it is
// rendered. Nothing is deleted: an older generation has the messages that it hides, and a rewind
// brings them back byte for byte. A history in which the agent tagged them with that name is
// read as the summary and what follows it.
func TestMarkedSummary(t *testing.T) {
	for _, c := range []struct {
		format events.Format
		marked bool
	}{
		{events.NeuroLink, true},
		{events.OpenAI, false},
	} {
		policy := withoutSummaries()
		policy.Summarize.Enabled, policy.Prune.Enabled, policy.Deduplicate.Enabled = true, false, false
		a := newAgent(t, configOf(t, policy))
		before := a.summarizeTalk(c.format)
		v := a.ledger.View()
		history, err := a.render(v)
		if err != nil {
			t.Fatal(err)
		}
		at0 := slices.IndexFunc(history, func(m codec.Raw) bool { return strings.Contains(string(m), "<condensed-summary>") })
		if at0 < 0 || len(history) >= len(before) {
			t.Fatalf("%s: %d messages of %d, no summary in\n%s", c.format, len(history), len(before), lines(history))
		}
		id, _ := reference.At(reference.Parsed(history[at0]), "condenseId").(string)
		if (id != "") != c.marked || (reference.At(reference.At(reference.Parsed(history[at0]), "metadata"), "isSummary") == true) != c.marked {
			t.Errorf("%s: %s", c.format, history[at0])
		}

		// Older generations, and a rewind.
		old, err := a.render(a.ledger.ViewAt(0))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(lines(before), lines(old)); d != "" {
			t.Errorf("%s: generation 0: %s", c.format, d)
		}
		generation := a.ledger.Generation()
		a.seq++
		outs, next := compaction.Decide(a.ledger, compaction.NewRewind(&events.Rewind{Generation: new(int64)}, a.seq), a.config)
		next.Install(a.ledger)
		if len(outs) == 0 || outs[0].View == nil {
			t.Fatalf("%s: the rewind emitted %+v", c.format, outs)
		}
		back, err := a.render(outs[0].View)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(lines(before), lines(back)); d != "" {
			t.Errorf("%s: rewound: %s", c.format, d)
		}
		again, err := a.render(a.ledger.ViewAt(generation))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(lines(history), lines(again)); d != "" {
			t.Errorf("%s: generation %d again: %s", c.format, generation, d)
		}
		if !c.marked {
			continue
		}

		// Tagged by the agent: the originals behind the name of the summary.
		tail := len(history) - at0 - 1
		stored := append(tags.Condensed.Hide(before[:len(before)-tail], at0, len(before), id), history[at0:]...)
		if d := cmp.Diff(lines(history), lines(tags.Effective(stored))); d != "" {
			t.Errorf("the effective history: %s", d)
		}
		adopted := newAgent(t, configOf(t, withoutSummaries()))
		adopted.publish(object{"turn": 1, "replaces_from": 1, "format": c.format, "messages": stored})
		v = adopted.ledger.View()
		if got, err := adopted.render(v); err != nil || lines(got) != lines(history) {
			t.Errorf("adopted: %v\n%s\nwant\n%s", err, lines(got), lines(history))
		}
		if d := cmp.Diff(lines(before[at0:len(before)-tail]), lines(tags.Condensed.Show(stored, id)[at0:len(before)-tail])); d != "" {
			t.Errorf("shown again: %s", d)
		}
	}
}

// summarizeTalk publishes a talk until a summary is in view, and returns all that was published.
func (a *agent) summarizeTalk(f events.Format) (published []codec.Raw) {
	add := func(turn object, list ...msg) []compaction.Outcome {
		ms := messages(f, list...)
		published = append(published, ms...)
		turn["messages"] = ms
		return a.publish(turn)
	}
	outs := add(object{
		"format": f, "model": object{"provider": "openai", "name": "m", "context_window": 20_000, "max_output_tokens": 1_000},
	}, round(0)...)
	for i := range 200 {
		for _, o := range outs {
			job, ok := o.Body.(*events.Job)
			if !ok {
				continue
			}
			r := a.result(summary(job.ID, 400))
			if _, next := compaction.Decide(a.ledger, r, a.config); next != nil {
				next.Install(a.ledger)
			}
		}
		if v := a.ledger.View(); slices.ContainsFunc(v.Entries, func(e measure.Entry) bool { return e.Kind == measure.KindSummary }) {
			return published
		}
		outs = add(object{}, round(i+1)...)
	}
	a.t.Fatal("no summary came into view")
	return nil
}
