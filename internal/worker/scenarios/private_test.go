package scenarios_test

import (
	"context"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// The content of a private tenant is summarized without a model, is not recalled, and its placeholders name no place to
// recall it from; no session lifts that.
func TestPrivateTenant(t *testing.T) {
	t.Parallel()
	writers := make(chan summarize.Writer, 64)
	env := workertest.Summarizing(t, workertest.SummarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		writers <- in.Writer
		return extract.New().Summarize(ctx, in)
	}))
	p := compaction.DefaultPolicy()
	p.Limits.Private, p.Recall, p.RecallNotice = true, "tool", true
	if p.NamesPlaces() || p.NamesHashes() {
		t.Error("placeholders name places")
	}
	if over, ignored, err := p.Over(events.Raw(`{"limits":{"private":false}}`)); err != nil || !over.Limits.Private || len(ignored) != 1 {
		t.Errorf("a session gets %+v, ignored %v, %v", over.Limits, ignored, err)
	}
	env.Config = workertest.NewConfig(t, p)
	stop := env.Run("a", observe.Listener{})
	env.Fill("s", events.LaneBackground)
	if w := workertest.Next(t, writers, "summary"); w != summarize.NoModel || w.Allows("anthropic/claude-haiku-4-5") {
		t.Errorf("the summary may be written by %+v", w)
	}
	for _, in := range []string{`{"session":"s","turn":1}`, `{"session":"s","text":"word"}`} {
		e := env.Request(events.SubjectRecall, in, &events.SearchResponse{})
		if e == nil || e.Code != events.CodeForbidden || !strings.Contains(e.Hint, "limits.private") {
			t.Errorf("%s: %+v", in, e)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
