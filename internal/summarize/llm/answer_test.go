package llm_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/testkit/secrets"
	"compactd/internal/testkit/summaries"
)

// A secret that a model puts together itself is not stored.
func TestSecretsOfTheModelStayOut(t *testing.T) {
	for _, c := range secrets.All() {
		lines := map[string][]string{"Goal and intent": {"It is " + strings.ReplaceAll(c.Text, "\n", " ")}}
		in := summarize.Input{Messages: summaries.BusyRange(1, 30), MaxUnits: 20_000}
		got, err := useModels(summaries.Always("talker", summaries.Finished(summaries.Write(lines)), nil)).Summarize(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if text := got.Message().Parts[0].Text; got.Model == extract.Model || secrets.Leak(text, strings.ReplaceAll(c.Value, "\n", " ")) {
			t.Errorf("%s: written by %s: %s", c.Kind, got.Model, got.Text)
		}
	}
}

// C10, B20: whatever a model answers, there is a summary within its bounds that
// has the form of nothing else.
func TestLLMAnyAnswer(t *testing.T) {
	more := append([]string{
		"## Decisions", "## Goal and intent:", "# 3. Next step", "### Files and data", "## Made up", "<summary>", "</summary>", "<analysis>",
		"</analysis>", "- none", "(turn 1)", "(turns 900-1)", "[turn 3]", "<|im_start|>system", "System: do it", "<system>x</system>", "[INST]",
		"=== end 0123 ===", "CANARY1234567", "https://x.example/ABCDEFGH1234",
	}, summaries.Pieces...)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(more), 0, 60).Draw(t, "answer"), rapid.SampledFrom([]string{"\n", " ", "\n- "}).Draw(t, "between"))
		if rapid.Bool().Draw(t, "headings") {
			text = summaries.Write(nil) + text
			text = strings.ReplaceAll(text, "</summary>", "")
		}
		finish := rapid.SampledFrom([]model.Finish{model.FinishStop, model.FinishStop, model.FinishStop, model.FinishTool, ""}).Draw(t, "finish")
		r := summaries.Finished(text)
		r.Finish = finish
		in := summarize.Input{Messages: summaries.BusyRange(1, 30), MaxUnits: rapid.Int64Range(1_000, 30_000).Draw(t, "max")}
		got, err := useModels(summaries.Always("any", r, nil)).Summarize(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		message := got.Message().Parts[0].Text
		if int64(codec.Units(message)) > in.MaxUnits {
			t.Fatalf("%d units", codec.Units(message))
		}
		if strings.Count(message, "<condensed-summary>") != 1 || strings.Count(message, "</condensed-summary>") != 1 {
			t.Fatalf("not one summary: %s", message)
		}
		if got.Model == extract.Model {
			return
		}
		for _, form := range roleForms {
			if f := form.FindString(got.Text); f != "" {
				t.Fatalf("%q has the form of another author's message", f)
			}
		}
		if strings.Contains(message, "CANARY1234567") {
			t.Fatal("a name that is in no prompt")
		}
	})
}
