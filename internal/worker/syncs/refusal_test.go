package syncs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

func warned(a *workertest.SyncAgent, code events.Code) bool {
	return slices.ContainsFunc(a.Last.Warnings, func(w events.SyncWarning) bool { return w.Code == code })
}

// wantExceeded checks an answer that nothing makes fit.
func wantExceeded(a *workertest.SyncAgent, refused string) {
	a.T.Helper()
	b := a.Last.Budget
	if a.Last.Code != events.CodeBudgetExceeded || a.Last.Retry == nil || *a.Last.Retry || b.WithinBudget || b.Breakdown.SystemPrompt == 0 || a.Last.View == refused {
		a.T.Errorf("refused %q, answered with view %q, code %q, retry %v, budget %+v", refused, a.Last.View, a.Last.Code, a.Last.Retry, b)
	}
	wantWarning(a, events.CodeBudgetExceeded)
}

// A5, D5: a refusal that nothing solves is answered with a code, by what was tried and by what the
// call is made of, however often and by which way it is reported. The view that was refused is
// not given again.
func TestSyncUnsolvable(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	e := env.RunEdge()
	system := fmt.Sprintf(`,"system":%q`, strings.Repeat("You never give up before it works. ", 200))
	for i, failure := range []string{
		`"status":400,"error":"prompt is too long: 1900 tokens > 1000 maximum"`,
		`"status":400,"error":"prompt is too long: 1900 tokens > 1800 maximum"`,
		`"status":400,"error":"prompt is too long"`,
		`"status":400,"error":"Your input exceeds the context window of this model."`,
	} {
		a := &workertest.SyncAgent{T: t, Env: env, Session: fmt.Sprintf("unsolvable-%d", i)}
		a.Add("user", "Why does it fail?")
		a.Sync(0, system)
		if a.Last.Code != "" || a.Last.Retry != nil {
			t.Errorf("before the refusal: %+v", a.Last)
		}
		view := a.Last.View
		for range 2 {
			a.Sync(0, fmt.Sprintf(`%s,"refused":{"view":%q,%s}`, system, view, failure))
			wantExceeded(a, view)
			if len(a.Last.Stages) == 0 {
				t.Errorf("%s: no stages in %+v", failure, a.Last)
			}
		}
		a.Sync(0, fmt.Sprintf(`%s,"refused":{%s}`, system, failure)) // of the newest view
		wantExceeded(a, view)
		a.Add("user", "And now?") // what does not fit has a code without a refusal, too
		a.Sync(0, system)
		wantExceeded(a, view)
		if a.Last.View == "" {
			t.Error("a longer history has no view")
		}

		status, over := e.Post(a.Session, "overflow", fmt.Sprintf(`{"id":"over",%s}`, failure))
		c := over.Compaction
		if status != 200 || over.Code != events.CodeBudgetExceeded || over.Hint == "" || over.Retry == nil || *over.Retry || c == nil || c.Code != over.Code || len(c.Stages) == 0 ||
			c.Budget == nil || c.Budget.Breakdown.SystemPrompt == 0 || c.Budget.WithinBudget {
			t.Errorf("over HTTP: %d %+v %+v", status, over, c)
		}
	}
}

// An error about bytes teaches nothing of tokens. The oldest media go first; without any, and where
// nothing can be made shorter, the answer has the code for it.
func TestSyncTooManyBytes(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	const large = `"refused":{"status":413,"error":"request_too_large"}`
	a := &workertest.SyncAgent{T: t, Env: env, Session: "bytes"}
	a.History = append(a.History, codec.Raw(`{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`))
	a.Add("assistant", "A picture. "+strings.Repeat("It shows a bird. ", 40))
	a.Add("user", "And now?")
	a.Sync(0, "")
	a.Sync(0, ","+large)
	if b := a.Last.Budget; !a.Last.Changed || b.Breakdown.Correction != 0 || len(a.Sent) != 3 || string(a.Sent[1]) != string(a.History[1]) || a.Last.Code != "" {
		t.Errorf("with a picture: %+v, sent %s", a.Last, a.Sent)
	}
	a = &workertest.SyncAgent{T: t, Env: env, Session: "no-media"}
	a.Add("user", "Why does it fail?")
	a.Sync(0, "")
	a.Sync(0, ","+large)
	if a.Last.Code != events.CodeBudgetExceeded || a.Last.Retry == nil || *a.Last.Retry || len(a.Last.Stages) == 0 || a.Last.Budget.Breakdown.Correction != 0 {
		t.Errorf("without media: %+v", a.Last)
	}
}

// A5, A6: a usage counts for the view, and for the number of messages, that it was counted for.
func TestSyncUsageOfAnotherCall(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	usage := func(view string, count int) string {
		out := `,"usage":{"prompt_tokens":2100,"completion_tokens":10`
		if view != "" {
			out += fmt.Sprintf(`,"view":%q`, view)
		}
		if count > 0 {
			out += fmt.Sprintf(`,"count":%d`, count)
		}
		return out + "}"
	}
	begin := func(t *testing.T, session string, steps int) *workertest.SyncAgent {
		a := &workertest.SyncAgent{T: t, Env: env, Session: session}
		a.Work(steps)
		return a
	}
	check := func(t *testing.T, a *workertest.SyncAgent, counts bool) {
		t.Helper()
		if got := a.Last.Budget.Breakdown.Correction != 0; got != counts || warned(a, events.CodeUsageUnbound) == counts {
			t.Errorf("the correction is %d, the warnings are %+v", a.Last.Budget.Breakdown.Correction, a.Last.Warnings)
		}
	}
	for name, c := range map[string]struct {
		count  func(a *workertest.SyncAgent) int
		view   func(a *workertest.SyncAgent) string
		counts bool
	}{
		"of the history":       {func(a *workertest.SyncAgent) int { return int(a.Last.Count) }, func(a *workertest.SyncAgent) string { return a.Last.View }, true},
		"of what was sent":     {func(a *workertest.SyncAgent) int { return len(a.Sent) }, func(a *workertest.SyncAgent) string { return a.Last.View }, true},
		"without count":        {func(*workertest.SyncAgent) int { return 0 }, func(a *workertest.SyncAgent) string { return a.Last.View }, true},
		"of more messages":     {func(a *workertest.SyncAgent) int { return int(a.Last.Count) + 1 }, func(a *workertest.SyncAgent) string { return a.Last.View }, false},
		"of fewer messages":    {func(*workertest.SyncAgent) int { return 2 }, func(a *workertest.SyncAgent) string { return a.Last.View }, false},
		"without view":         {func(a *workertest.SyncAgent) int { return int(a.Last.Count) }, func(*workertest.SyncAgent) string { return "" }, false},
		"of an unknown view":   {func(a *workertest.SyncAgent) int { return int(a.Last.Count) }, func(*workertest.SyncAgent) string { return "0:0123456789abcdef" }, false},
		"of a view of a later": {func(a *workertest.SyncAgent) int { return int(a.Last.Count) }, func(a *workertest.SyncAgent) string { return "9" + a.Last.View }, false},
	} {
		for _, steps := range []int{3, 40} { // before and after compactions
			t.Run(fmt.Sprintf("%s/%d", name, steps), func(t *testing.T) {
				a := begin(t, fmt.Sprintf("usage-%x-%d", name, steps), steps)
				if steps == 40 && len(a.Sent) == len(a.History) {
					t.Fatal("nothing was taken out of view")
				}
				more := usage(c.view(a), c.count(a))
				a.Call(90, 1)
				a.Sync(0, more)
				check(t, a, c.counts)
			})
		}
	}
	t.Run("edited", func(t *testing.T) {
		a := begin(t, "usage-edited", 3)
		more := usage(a.Last.View, len(a.History))
		a.History = slices.Clone(a.History[:3])
		a.Add("user", "another way")
		a.Sync(0, more)
		check(t, a, false)
	})
	t.Run("of the parent", func(t *testing.T) {
		a := begin(t, "usage-parent", 3)
		more := usage(a.Last.View, len(a.History))
		a.History = nil
		a.Add("user", "You are a sub-agent. Look for the cause in the package retry, and in nothing else than that.")
		a.Sync(0, `,"branch":"research"`)
		a.Call(1, 5)
		a.Sync(0, `,"branch":"research"`+more)
		check(t, a, false)
	})
	t.Run("above the window", func(t *testing.T) { // A8, B2
		a := begin(t, "usage-above", 2)
		more := strings.Replace(usage(a.Last.View, len(a.History)), "2100", "9000", 1)
		a.Call(90, 1)
		a.Sync(0, more)
		if a.Last.Budget.ContextWindow != 9000 || a.Last.Budget.EstimatedInput < 5000 {
			t.Errorf("%+v", a.Last.Budget)
		}
		wantWarning(a, events.CodeWindowRaised)
		a.Sync(0, fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 8300 tokens > 8000 maximum"}`, a.Last.View))
		if a.Last.Budget.ContextWindow != 8000 {
			t.Errorf("%+v", a.Last.Budget)
		}
	})
}

// A refusal belongs to the history whose view was refused.
func TestSyncRefusalOfAnotherHistory(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	a := &workertest.SyncAgent{T: t, Env: env, Session: "parent"}
	a.Work(3)
	whole := a.History
	a.History = nil
	a.Add("user", "You are a sub-agent. Look for the cause in the package retry, and in nothing else than that.")
	a.Sync(0, `,"branch":"research"`)
	refused := fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`, a.Last.View)
	a.History = whole
	a.Sync(0, refused)
	wantWarning(a, events.CodeRefusedUnbound)
	if len(env.Logged(a.Session, events.KindOverflow)) != 0 || a.Last.Budget.ContextWindow != 4000 {
		t.Errorf("%+v", a.Last)
	}
}

// The first that a worker has of a conversation may be that its call was refused: the history is
// recorded, and the answer fits.
func TestSyncRefusalComesFirst(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	a := &workertest.SyncAgent{T: t, Env: env, Session: "first"}
	for i := range 8 {
		a.Call(i, 60)
	}
	a.Add("user", "Go on.")
	a.Sync(0, `,"refused":{"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`)
	if !a.Last.Changed || !a.Last.Recorded || a.Last.Budget.ContextWindow != 1200 || !a.Last.Budget.WithinBudget {
		t.Errorf("%+v", a.Last)
	}
	if n := len(env.Logged(a.Session, events.KindOverflow)); n != 1 {
		t.Errorf("%d overflows are in the log", n)
	}
}

// An agent that goes back to an earlier message calls with a model, instructions and a refusal of
// their own: the answer is for that call, and the session stays as it is.
func TestSyncShorter(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	begin := func(t *testing.T, name string) *workertest.SyncAgent {
		a := &workertest.SyncAgent{T: t, Env: env, Session: name}
		a.Work(1)
		for i := range 6 {
			a.Call(i, 60)
		}
		a.Sync(0, "")
		a.Add("assistant", "Done.")
		a.Add("user", "And now?")
		a.Sync(0, "")
		a.History = a.History[:len(a.History)-2]
		return a
	}
	for name, more := range map[string]string{
		"another prompt": fmt.Sprintf(`,"system":%q`, strings.Repeat("Be careful. ", 900)),
	} {
		t.Run(name, func(t *testing.T) {
			a := begin(t, strings.ReplaceAll(name, " ", "-"))
			turns := env.LoggedTurns(a.Session)
			out, bad := a.Request(0, more)
			if bad != nil || out.Recorded || !out.Changed || !out.Budget.WithinBudget || env.LoggedTurns(a.Session) != turns {
				t.Errorf("%+v %+v", out, bad)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		a := begin(t, "refused")
		out, bad := a.Request(0, "")
		if bad != nil || out.View == "" || !out.Recorded {
			t.Fatalf("%+v %+v", out, bad)
		}
		refused, bad := a.Request(0, fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: %d tokens > %d maximum"}`,
			out.View, out.Budget.EstimatedInput, out.Budget.EstimatedInput*7/10))
		if bad != nil || !refused.Changed || !refused.Budget.WithinBudget || refused.Budget.EstimatedInput > out.Budget.EstimatedInput*7/10 {
			t.Errorf("%+v %+v, before it %+v", refused, bad, out.Budget)
		}
	})
}
