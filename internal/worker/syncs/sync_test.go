package syncs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// An agent that sends its history before each call sends what fits, with its own messages
// where nothing changed them. It may have no memory of earlier answers, or send what is new
// behind a prefix, go back, or send the same again: the log has each message once, and what
// the parts give is what context gives.
func TestSync(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	env.Run("a", observe.Listener{})
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 7))
		a := &workertest.SyncAgent{T: t, Env: env, Session: fmt.Sprintf("s%d", seed)}
		lead := 0
		if seed%2 == 1 {
			a.History = append(a.History, codec.Raw(`{"role":"system","content":"Be careful."}`))
			lead = 1
		}
		a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
		for step := range 25 {
			dated := false
			switch rng.IntN(8) {
			case 0: // it restarts on another version of the last messages
				if n := len(a.History); n > lead+4 {
					a.History = slices.Clip(a.History[:n-1-rng.IntN(2)])
					a.Add("user", fmt.Sprintf("another question at step %d, which is long enough to be one of its own", step))
				}
			case 1:
				if lead == 1 { // a date in the system's message
					dated = true
					a.History[0] = codec.Raw(fmt.Sprintf(`{"role":"system","content":"Be careful at step %d."}`, step))
				}
			default:
				a.Call(step, 20+rng.IntN(60))
			}
			switch from := int(a.Last.Count); {
			case rng.IntN(2) == 0 && !dated && from > 0 && from <= len(a.History) && a.Last.Hash != (events.Digest{}):
				if events.OpenAI.DigestOf(a.History[lead:from]) == events.OpenAI.DigestOf(env.Lineage(a.Session)) {
					a.Sync(from, fmt.Sprintf(`,"prefix":{"count":%d,"hash":%q}`, from, a.Last.Hash))
					break
				}
				fallthrough
			default:
				a.Sync(0, "")
			}
			a.WantContext()
			if again := rng.IntN(3); again == 0 {
				first := a.Last
				a.Sync(0, "")
				if first.Through != a.Last.Through {
					t.Fatalf("the same history again: %+v, then %+v", first.Through, a.Last.Through)
				}
			}
			if d := env.Lineage(a.Session); events.OpenAI.DigestOf(d) != events.OpenAI.DigestOf(a.History[lead:]) {
				t.Fatalf("seed %d step %d: the log has %d messages of %d", seed, step, len(d), len(a.History)-lead)
			}
			if !a.Last.Budget.WithinBudget {
				t.Fatalf("seed %d step %d: %+v", seed, step, a.Last.Budget)
			}
		}
		if a.Last.Generation == 0 {
			t.Errorf("seed %d: nothing was compacted: %+v", seed, a.Last.Budget)
		}
	}
}

// Syncs of one session wait for each other without a processor: the one whose turn it is needs one.
func TestSyncsOfOneSession(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	syncs := 16 * runtime.GOMAXPROCS(0)
	var all errgroup.Group
	for i := range syncs {
		all.Go(func() error {
			in := fmt.Sprintf(`{"session":"s","on_divergence":"replace","model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"user","content":"%d"}]}`, i)
			m, err := env.Conn.Request(events.SubjectSync, []byte(in), workertest.WaitLimit)
			if err == nil && m.Header.Get("Nats-Service-Error-Code") != "" {
				err = errors.New(string(m.Data))
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

// Syncs that wait for nothing are late. The next one of the session adds to the history, changes its end, or goes back, and
// brings other instructions: the session has the last history, each message once, also where no further sync comes.
func TestSyncsThatAreLate(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	late := 0
	for s := range 150 {
		rng := rand.New(rand.NewPCG(uint64(s), 11))
		name := fmt.Sprintf("s%d", s)
		var history []codec.Raw
		stored := 0 // an end that changed more than once is held back
		add := func(n int) {
			role := []string{"user", "assistant"}[len(history)%2]
			history = append(history, codec.Raw(fmt.Sprintf(`{"role":%q,"content":"message %d.%d of %s"}`, role, n, len(history), name)))
		}
		for n := range 5 {
			if back := rng.IntN(4); n > 0 && back < 3 && rng.IntN(2) == 0 {
				history = slices.Clip(history[:max(1, len(history)-back)])
			}
			for range 1 + rng.IntN(4) {
				add(n)
			}
			messages, err := codec.Marshal(history)
			if err != nil {
				t.Fatal(err)
			}
			in := fmt.Appendf(nil, `{"session":%q,"model":{"provider":"openai","name":"gpt-4o"},"system":"Be careful %d.","wait_ms":0,"messages":%s}`, name, rng.IntN(2), messages)
			out := syncUntilStored(env, in)
			stored = int(out.Count)
			if slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == events.CodeLate }) {
				late++
			}
		}
		env.AwaitDecided()
		got := env.ContextMessages(name)
		if !workertest.BeginsWith(got, history[:stored]) || stored == len(history) && len(got) > stored {
			t.Errorf("%s has %d messages, %d of %d are stored: %s, not %s", name, len(got), stored, len(history), got, history)
		}
	}
	if late == 0 {
		t.Error("no sync was late")
	}
}

// syncUntilStored sends a history until the answer states that it is stored.
func syncUntilStored(env *workertest.Env, in []byte) (out events.SyncResponse) {
	env.T.Helper()
	for end := time.Now().Add(workertest.WaitLimit); ; {
		m, err := env.Conn.Request(events.SubjectSync, in, workertest.WaitLimit)
		if err != nil || m.Header.Get("Nats-Service-Error-Code") != "" {
			env.T.Fatalf("%v: %s", err, m.Data)
		}
		if err := codec.Unmarshal(m.Data, &out); err != nil {
			env.T.Fatal(err)
		}
		if out.Recorded {
			return out
		}
		if time.Now().After(end) {
			env.T.Fatalf("not stored: %s", m.Data)
		}
	}
}
