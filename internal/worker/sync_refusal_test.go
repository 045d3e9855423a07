package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

func (a *syncAgent) warned(code events.Code) bool {
	return slices.ContainsFunc(a.last.Warnings, func(w events.SyncWarning) bool { return w.Code == code })
}

// wantExceeded checks an answer that nothing makes fit.
func (a *syncAgent) wantExceeded(refused string) {
	a.t.Helper()
	b := a.last.Budget
	if a.last.Code != events.CodeBudgetExceeded || a.last.Retry == nil || *a.last.Retry || b.WithinBudget || b.Breakdown.SystemPrompt == 0 || a.last.View == refused {
		a.t.Errorf("refused %q, answered with view %q, code %q, retry %v, budget %+v", refused, a.last.View, a.last.Code, a.last.Retry, b)
	}
	a.wantWarning(events.CodeBudgetExceeded)
}

// A5, D5: a refusal that nothing solves is answered with a code, by what was tried and by what the
// call is made of, however often and by which way it is reported. The view that was refused is
// not given again.
func TestSyncUnsolvable(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	_, e := env.runEdge()
	system := fmt.Sprintf(`,"system":%q`, strings.Repeat("You never give up before it works. ", 200))
	for i, failure := range []string{
		`"status":400,"error":"prompt is too long: 1900 tokens > 1000 maximum"`,
		`"status":400,"error":"prompt is too long: 1900 tokens > 1800 maximum"`,
		`"status":400,"error":"prompt is too long"`,
		`"status":400,"error":"Your input exceeds the context window of this model."`,
	} {
		a := &syncAgent{t: t, env: env, session: fmt.Sprintf("unsolvable-%d", i)}
		a.add("user", "Why does it fail?")
		a.sync(0, system)
		if a.last.Code != "" || a.last.Retry != nil {
			t.Errorf("before the refusal: %+v", a.last)
		}
		view := a.last.View
		for range 2 {
			a.sync(0, fmt.Sprintf(`%s,"refused":{"view":%q,%s}`, system, view, failure))
			a.wantExceeded(view)
			if len(a.last.Stages) == 0 {
				t.Errorf("%s: no stages in %+v", failure, a.last)
			}
		}
		a.sync(0, fmt.Sprintf(`%s,"refused":{%s}`, system, failure)) // of the newest view
		a.wantExceeded(view)
		a.add("user", "And now?") // what does not fit has a code without a refusal, too
		a.sync(0, system)
		a.wantExceeded(view)
		if a.last.View == "" {
			t.Error("a longer history has no view")
		}

		status, over := e.post(a.session, "overflow", fmt.Sprintf(`{"id":"over",%s}`, failure))
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
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	const large = `"refused":{"status":413,"error":"request_too_large"}`
	a := &syncAgent{t: t, env: env, session: "bytes"}
	a.history = append(a.history, events.Raw(`{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`))
	a.add("assistant", "A picture. "+strings.Repeat("It shows a bird. ", 40))
	a.add("user", "And now?")
	a.sync(0, "")
	a.sync(0, ","+large)
	if b := a.last.Budget; !a.last.Changed || b.Breakdown.Correction != 0 || len(a.sent) != 3 || string(a.sent[1]) != string(a.history[1]) || a.last.Code != "" {
		t.Errorf("with a picture: %+v, sent %s", a.last, a.sent)
	}
	a = &syncAgent{t: t, env: env, session: "no-media"}
	a.add("user", "Why does it fail?")
	a.sync(0, "")
	a.sync(0, ","+large)
	if a.last.Code != events.CodeBudgetExceeded || a.last.Retry == nil || *a.last.Retry || len(a.last.Stages) == 0 || a.last.Budget.Breakdown.Correction != 0 {
		t.Errorf("without media: %+v", a.last)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A5, A6: a usage counts for the view, and for the number of messages, that it was counted for.
func TestSyncUsageOfAnotherCall(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
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
	begin := func(t *testing.T, session string, steps int) *syncAgent {
		a := &syncAgent{t: t, env: env, session: session}
		a.grow(steps)
		return a
	}
	check := func(t *testing.T, a *syncAgent, counts bool) {
		t.Helper()
		if got := a.last.Budget.Breakdown.Correction != 0; got != counts || a.warned(events.CodeUsageUnbound) == counts {
			t.Errorf("the correction is %d, the warnings are %+v", a.last.Budget.Breakdown.Correction, a.last.Warnings)
		}
	}
	for name, c := range map[string]struct {
		count  func(a *syncAgent) int
		view   func(a *syncAgent) string
		counts bool
	}{
		"of the history":       {func(a *syncAgent) int { return int(a.last.Count) }, func(a *syncAgent) string { return a.last.View }, true},
		"of what was sent":     {func(a *syncAgent) int { return len(a.sent) }, func(a *syncAgent) string { return a.last.View }, true},
		"without count":        {func(*syncAgent) int { return 0 }, func(a *syncAgent) string { return a.last.View }, true},
		"of more messages":     {func(a *syncAgent) int { return int(a.last.Count) + 1 }, func(a *syncAgent) string { return a.last.View }, false},
		"of fewer messages":    {func(*syncAgent) int { return 2 }, func(a *syncAgent) string { return a.last.View }, false},
		"without view":         {func(a *syncAgent) int { return int(a.last.Count) }, func(*syncAgent) string { return "" }, false},
		"of an unknown view":   {func(a *syncAgent) int { return int(a.last.Count) }, func(*syncAgent) string { return "0:0123456789abcdef" }, false},
		"of a view of a later": {func(a *syncAgent) int { return int(a.last.Count) }, func(a *syncAgent) string { return "9" + a.last.View }, false},
	} {
		for _, steps := range []int{3, 40} { // before and after compactions
			t.Run(fmt.Sprintf("%s/%d", name, steps), func(t *testing.T) {
				a := begin(t, fmt.Sprintf("usage-%x-%d", name, steps), steps)
				if steps == 40 && len(a.sent) == len(a.history) {
					t.Fatal("nothing was taken out of view")
				}
				more := usage(c.view(a), c.count(a))
				a.call(90, 1)
				a.sync(0, more)
				check(t, a, c.counts)
			})
		}
	}
	t.Run("edited", func(t *testing.T) {
		a := begin(t, "usage-edited", 3)
		more := usage(a.last.View, len(a.history))
		a.history = slices.Clone(a.history[:3])
		a.add("user", "another way")
		a.sync(0, more)
		check(t, a, false)
	})
	t.Run("of the parent", func(t *testing.T) {
		a := begin(t, "usage-parent", 3)
		more := usage(a.last.View, len(a.history))
		a.history = nil
		a.add("user", "You are a sub-agent. Look for the cause in the package retry, and in nothing else than that.")
		a.sync(0, `,"branch":"research"`)
		a.call(1, 5)
		a.sync(0, `,"branch":"research"`+more)
		check(t, a, false)
	})
	t.Run("above the window", func(t *testing.T) { // A8, B2
		a := begin(t, "usage-above", 2)
		more := strings.Replace(usage(a.last.View, len(a.history)), "2100", "9000", 1)
		a.call(90, 1)
		a.sync(0, more)
		if a.last.Budget.ContextWindow != 9000 || a.last.Budget.EstimatedInput < 5000 {
			t.Errorf("%+v", a.last.Budget)
		}
		a.wantWarning(events.CodeWindowRaised)
		a.sync(0, fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 8300 tokens > 8000 maximum"}`, a.last.View))
		if a.last.Budget.ContextWindow != 8000 {
			t.Errorf("%+v", a.last.Budget)
		}
	})
}

// A refusal belongs to the history whose view was refused.
func TestSyncRefusalOfAnotherHistory(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	a := &syncAgent{t: t, env: env, session: "parent"}
	a.grow(3)
	whole := a.history
	a.history = nil
	a.add("user", "You are a sub-agent. Look for the cause in the package retry, and in nothing else than that.")
	a.sync(0, `,"branch":"research"`)
	refused := fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`, a.last.View)
	a.history = whole
	a.sync(0, refused)
	a.wantWarning(events.CodeRefusedUnbound)
	if len(env.logged(a.session, events.KindOverflow)) != 0 || a.last.Budget.ContextWindow != 4000 {
		t.Errorf("%+v", a.last)
	}
}

// The first that a worker has of a conversation may be that its call was refused: the history is
// recorded, and the answer fits.
func TestSyncRefusalComesFirst(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	a := &syncAgent{t: t, env: env, session: "first"}
	for i := range 8 {
		a.call(i, 60)
	}
	a.add("user", "Go on.")
	a.sync(0, `,"refused":{"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`)
	if !a.last.Changed || !a.last.Recorded || a.last.Budget.ContextWindow != 1200 || !a.last.Budget.WithinBudget {
		t.Errorf("%+v", a.last)
	}
	if n := len(env.logged(a.session, events.KindOverflow)); n != 1 {
		t.Errorf("%d overflows are in the log", n)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// An agent that goes back to an earlier message calls with a model, instructions and a refusal of
// their own: the answer is for that call, and the session stays as it is.
func TestSyncShorter(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	begin := func(t *testing.T, name string) *syncAgent {
		a := &syncAgent{t: t, env: env, session: name}
		a.grow(1)
		for i := range 6 {
			a.call(i, 60)
		}
		a.sync(0, "")
		a.add("assistant", "Done.")
		a.add("user", "And now?")
		a.sync(0, "")
		a.history = a.history[:len(a.history)-2]
		return a
	}
	for name, more := range map[string]string{
		"another prompt": fmt.Sprintf(`,"system":%q`, strings.Repeat("Be careful. ", 900)),
	} {
		t.Run(name, func(t *testing.T) {
			a := begin(t, strings.ReplaceAll(name, " ", "-"))
			turns := env.turnsOf(a.session)
			out, bad := a.request(0, more)
			if bad != nil || out.Recorded || !out.Changed || !out.Budget.WithinBudget || env.turnsOf(a.session) != turns {
				t.Errorf("%+v %+v", out, bad)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		a := begin(t, "refused")
		out, bad := a.request(0, "")
		if bad != nil || out.View == "" || !out.Recorded {
			t.Fatalf("%+v %+v", out, bad)
		}
		refused, bad := a.request(0, fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: %d tokens > %d maximum"}`,
			out.View, out.Budget.EstimatedInput, out.Budget.EstimatedInput*7/10))
		if bad != nil || !refused.Changed || !refused.Budget.WithinBudget || refused.Budget.EstimatedInput > out.Budget.EstimatedInput*7/10 {
			t.Errorf("%+v %+v, before it %+v", refused, bad, out.Budget)
		}
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
