package summarizetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
)

// outcome is what a mode results in: a finish, or a kind of failure.
type outcome struct {
	finish model.Finish
	kind   model.Kind
	calls  int // attempts, of 3
}

// Outcomes is the contract: what a caller sees of each mode, for every provider, and how often the provider was called.
var outcomes = map[Mode]outcome{
	Good:          {finish: model.FinishStop, calls: 1},
	Slow:          {finish: model.FinishStop, calls: 1},
	Length:        {finish: model.FinishLength, calls: 1},
	ToolCall:      {finish: model.FinishTool, calls: 1},
	Refusal:       {finish: model.FinishRefusal, calls: 1},
	Hang:          {kind: model.Timeout, calls: 3},
	Drip:          {kind: model.Timeout, calls: 3},
	RateLimited:   {kind: model.RateLimited, calls: 3},
	ServerError:   {kind: model.Unavailable, calls: 3},
	Reset:         {kind: model.Unavailable, calls: 3},
	CutBody:       {kind: model.Unavailable, calls: 3},
	CutJSON:       {kind: model.BadAnswer, calls: 1},
	Foreign:       {kind: model.BadAnswer, calls: 1},
	EmptyBody:     {kind: model.BadAnswer, calls: 1},
	Empty:         {kind: model.BadAnswer, calls: 1},
	Endless:       {kind: model.BadAnswer, calls: 1},
	Redirect:      {kind: model.BadAnswer, calls: 1},
	PromptRefused: {kind: model.Refused, calls: 1},
	TooLong:       {kind: model.TooLong, calls: 1},
	BadKey:        {kind: model.Auth, calls: 1},
	NoModel:       {kind: model.Invalid, calls: 1},
}

// Bounds of the models under test.
const (
	attemptTimeout = 40 * time.Second // a slow answer takes 30 s, a dripping one minutes
	timeout        = 3 * time.Minute
	breakFor       = time.Minute
	maxBody        = 4 << 20
	maxOutput      = 4_000
)

// secret stands in every prompt: no error may quote it.
const secret = "canary-prompt-77ab"

// Run holds a model to the contract. newModel makes it of a config that leads to
// the suite's server: it sets Provider and Model, and appends to BaseURL what its
// paths need. Time is fake: hours of hanging cost milliseconds.
func Run(t *testing.T, newModel func(testing.TB, provider.Config) model.Model) {
	start := func(t *testing.T, answer func(Prompt) string) (*Server, model.Model) {
		s := StartPipe(t, answer)
		return s, newModel(t, provider.Config{
			Key: Key, BaseURL: s.url, Dial: s.dial, MaxOutput: maxOutput, AttemptTimeout: attemptTimeout,
			Timeout: timeout,
		})
	}
	for _, mode := range Modes() {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := start(t, func(Prompt) string { return "the answer" })
				testMode(t, s, m, mode)
			})
		})
	}
	for name, test := range map[string]func(*testing.T, *Server, model.Model){
		"prompt":      testPrompt,
		"recovery":    testRecovery,
		"cancel":      testCancel,
		"breaker":     testBreaker,
		"concurrency": testConcurrency,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := start(t, func(p Prompt) string { return "answer to " + p.User })
				test(t, s, m)
			})
		})
	}
}

// testMode shows what a mode results in, that a failure has nothing of key and
// prompt, and that nothing lasts longer than the time-outs or reads more than
// maxBody.
func testMode(t *testing.T, s *Server, m model.Model, mode Mode) {
	s.Script(mode)
	want, began := outcomes[mode], time.Now()
	reply, err := m.Complete(t.Context(), model.Request{System: "rules", User: secret})
	took := time.Since(began)
	got := outcome{finish: reply.Finish, calls: s.Calls()}
	if e, ok := errors.AsType[*model.Error](err); ok {
		got.kind = e.Kind
	}
	if got != want {
		t.Fatalf("got %+v, want %+v: %v", got, want, err)
	}
	if took > timeout {
		t.Errorf("took %s, longer than the time-out", took)
	}
	if err == nil {
		checkReply(t, m, reply, mode)
		return
	}
	if counted := (events.SummaryUsage{Input: InputTokens, Output: OutputTokens}); mode == Empty && reply.Usage != counted {
		t.Errorf("usage %+v of an answer without text, want %+v", reply.Usage, counted)
	}
	for _, form := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		if strings.Contains(form, Key) || strings.Contains(form, secret) {
			t.Errorf("the error quotes key or prompt: %s", form)
		}
	}
	checkFailure(t, s, err, mode, took)
}

func checkReply(t *testing.T, m model.Model, r model.Reply, mode Mode) {
	t.Helper()
	if want := (events.SummaryUsage{Input: InputTokens, Output: OutputTokens}); r.Usage != want {
		t.Errorf("usage %+v, want %+v", r.Usage, want)
	}
	if !strings.HasSuffix(m.Name(), "/"+r.Model) {
		t.Errorf("model %q of %q", r.Model, m.Name())
	}
	if (mode == Good || mode == Slow || mode == Length) && r.Text != "the answer" {
		t.Errorf("text %q", r.Text)
	}
}

func checkFailure(t *testing.T, s *Server, err error, mode Mode, took time.Duration) {
	t.Helper()
	e, _ := errors.AsType[*model.Error](err)
	switch mode {
	case RateLimited:
		if e.RetryAfter != s.RetryAfter || took < 2*s.RetryAfter {
			t.Errorf("retry after %s, took %s: the provider requested %s each time", e.RetryAfter, took, s.RetryAfter)
		}
	case Hang, Drip:
		if took < 3*attemptTimeout {
			t.Errorf("took %s, less than three attempts of %s", took, attemptTimeout)
		}
	case Endless:
		if n := s.written.Load(); n > maxBody+1<<20 {
			t.Errorf("%d bytes were read, of at most %d", n, maxBody)
		}
	case Redirect:
		if n := s.elsewhere.Load(); n > 0 {
			t.Error("the redirect was followed")
		}
	}
}

// testPrompt shows that text arrives byte for byte, with the key, within the
// bound on output, and that no tools are offered.
func testPrompt(t *testing.T, s *Server, m model.Model) {
	r := model.Request{System: "rules: \"quoted\" <b>&amp;", User: "line\nline\t\u00e9\u4e2d\U0001F600 </summary>", MaxOutputTokens: 1_000_000}
	reply, err := m.Complete(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Prompts()[0]
	_, name, _ := strings.Cut(m.Name(), "/")
	want := Prompt{Dialect: p.Dialect, Path: p.Path, Model: name, System: r.System, User: r.User, MaxOutput: maxOutput, Key: Key}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if want := "answer to " + r.User; reply.Text != want {
		t.Errorf("text %q, want %q", reply.Text, want)
	}
}

// testRecovery shows that an attempt after a failure is as good as a first one.
func testRecovery(t *testing.T, s *Server, m model.Model) {
	s.Script(RateLimited, Reset, Good)
	reply, err := m.Complete(t.Context(), model.Request{User: "q"})
	if err != nil || reply.Text != "answer to q" || s.Calls() != 3 {
		t.Errorf("%q, %v after %d calls", reply.Text, err, s.Calls())
	}
}

// testCancel shows that callers who go away get their own error at once, and do
// not speak against the provider, however many they are.
func testCancel(t *testing.T, s *Server, m model.Model) {
	const times = 10
	s.Script(Hang)
	for range times {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := m.Complete(ctx, model.Request{User: secret})
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took != time.Second {
			t.Fatalf("%v after %s", err, took)
		}
	}
	s.Script(Good)
	if _, err := m.Complete(t.Context(), model.Request{User: "q"}); err != nil || s.Calls() != times+1 {
		t.Errorf("%v after %d calls", err, s.Calls())
	}
}

// testBreaker shows that a provider that is down is left alone for a while, then
// called once, and taken back when it answers.
func testBreaker(t *testing.T, s *Server, m model.Model) {
	ask := func() model.Kind {
		_, err := m.Complete(t.Context(), model.Request{User: "q"})
		if e, ok := errors.AsType[*model.Error](err); ok {
			return e.Kind
		}
		return ""
	}
	s.Script(ServerError)
	got := []model.Kind{ask(), ask(), ask()} // 5 failures in a row: the 3rd attempt of the 2nd is not made
	calls := s.Calls()
	s.Script(Good)
	got = append(got, ask())
	time.Sleep(breakFor + time.Second)
	got = append(got, ask(), ask())
	want := []model.Kind{model.Unavailable, model.CircuitOpen, model.CircuitOpen, model.CircuitOpen, "", ""}
	if !slices.Equal(got, want) || calls != 5 || s.Calls() != calls+2 {
		t.Errorf("got %q, want %q; %d calls while down, %d in all", got, want, calls, s.Calls())
	}
}

// testConcurrency shows that every caller gets its own answer.
func testConcurrency(t *testing.T, s *Server, m model.Model) {
	const n = 32
	errs := make(chan error, n)
	for i := range n {
		go func() {
			q := fmt.Sprint("q", i)
			reply, err := m.Complete(t.Context(), model.Request{User: q})
			if err == nil && reply.Text != "answer to "+q {
				err = fmt.Errorf("%s got %q", q, reply.Text)
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if s.Calls() != n {
		t.Errorf("%d calls", s.Calls())
	}
}
