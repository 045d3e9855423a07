package syncs_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A8: the window of a model that no table has is a guess. The sync that names the model reports it,
// the log once in a session, and stats whenever they are requested.
func TestUnknownModel(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	var noted atomic.Int64
	env.Run("a", observe.Listener{Noted: func(e observe.Noted) {
		if e.Note.Code == events.CodeUnknownModel {
			noted.Add(1)
		}
	}})
	for i, c := range []struct {
		fields, names string // of the request, and in the warning
		notes         int64
	}{
		{`"model":{"provider":"opnai","name":"gpt-99"}`, "openai/gpt-5.", 1},
		{`"model":{"name":"mistral-7b"}`, "mistral/open-mistral-7b", 1},
		{`"model":{"provider":"openai","modle":"gpt-5"}`, "names no model", 1},
		{`"modle":{"provider":"openai","name":"gpt-5"}`, "names no model", 0},
		{`"model":{"provider":"opnai","name":"gpt-99","context_window":400000}`, "", 0},
		{`"model":{"provider":"opnai","name":"gpt-99"},"policy":{"window_tokens":90000}`, "", 0},
		{`"model":{"provider":"openai","name":"gpt-5"}`, "", 0},
	} {
		t.Run(c.fields, func(t *testing.T) {
			a, before := &workertest.SyncAgent{T: t, Env: env, Session: fmt.Sprintf("s%d", i)}, noted.Load()
			for step := range 3 {
				a.Add("user", fmt.Sprintf("Question %d of the user.", step))
				var out events.SyncResponse
				messages, _ := codec.Marshal(a.History) // JSON already
				if err := codec.Unmarshal(a.Deliver(fmt.Appendf(nil, `{"session":%q,"wait_ms":8000,"messages":%s,%s}`, a.Session, messages, c.fields)).Data, &out); err != nil {
					t.Fatal(err)
				}
				wantUnknown(t, "sync", out.Warnings, c.names, c.names != "" && step == 0)
				wantUnknown(t, "stats", env.Stats(a.Session).Warnings, c.names, c.names != "")
			}
			if n := noted.Load() - before; n != c.notes {
				t.Errorf("the log has %d notes, want %d", n, c.notes)
			}
		})
	}
}

func wantUnknown(t *testing.T, by string, got []events.SyncWarning, names string, want bool) {
	t.Helper()
	if !want && len(got) > 0 || want && (len(got) != 1 || got[0].Code != events.CodeUnknownModel || !strings.Contains(got[0].Message, names)) {
		t.Errorf("%s: warnings %+v, want one %v with %q", by, got, want, names)
	}
}
