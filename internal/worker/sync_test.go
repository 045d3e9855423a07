package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"compactd/internal/align"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// syncAgent is an agent that holds a history of its own, and applies parts to it for each call.
type syncAgent struct {
	t       testing.TB
	env     *testEnv
	session string
	history []events.Raw
	last    events.SyncResponse
	sent    []events.Raw // with the last call
}

func (a *syncAgent) add(role, text string) {
	m, err := json.Marshal(map[string]any{"role": role, "content": text, "x_native": len(a.history)})
	if err != nil {
		a.t.Fatal(err)
	}
	a.history = append(a.history, m)
}

// call adds a tool call and its result of some size.
func (a *syncAgent) call(n, size int) {
	a.history = append(a.history,
		events.Raw(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"f%d.go\"}"}}]}`, n, n)),
		events.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, n, strings.Repeat(fmt.Sprintf("line %d of the file. ", n), size))))
}

// request sends a sync with more fields, of the messages from an index on.
func (a *syncAgent) request(from int, more string) (events.SyncResponse, *events.ServiceError) {
	a.t.Helper()
	messages, err := events.Marshal(a.history[from:])
	if err != nil {
		a.t.Fatal(err)
	}
	in := fmt.Sprintf(`{"session":%q,"model":{"provider":"openai","name":"gpt-4","context_window":4000,"max_output_tokens":500},"wait_ms":8000,"messages":%s%s}`, a.session, messages, more)
	var out events.SyncResponse
	reply := a.deliver([]byte(in))
	if reply.Header.Get("Nats-Service-Error-Code") != "" {
		bad := &events.ServiceError{}
		if err := events.Unmarshal(reply.Data, bad); err != nil {
			a.t.Fatal(err)
		}
		return out, bad
	}
	if err := events.Unmarshal(reply.Data, &out); err != nil {
		a.t.Fatal(err)
	}
	return out, nil
}

// deliver sends a request until a worker answers it: none may be there, or hold the partition.
func (a *syncAgent) deliver(in []byte) *nats.Msg {
	a.t.Helper()
	for end := time.Now().Add(waitLimit); ; time.Sleep(20 * time.Millisecond) {
		reply, err := a.env.conn.Request(events.SubjectSync, in, waitLimit)
		away := errors.Is(err, nats.ErrNoResponders) || err == nil && reply.Header.Get("Nats-Service-Error-Code") == string(events.CodeUnavailable)
		if err != nil && !away || time.Now().After(end) {
			a.t.Fatal(err)
		}
		if !away {
			return reply
		}
	}
}

// sync sends the history, checks the parts, and applies them.
func (a *syncAgent) sync(from int, more string) {
	a.t.Helper()
	out, bad := a.request(from, more)
	if bad != nil {
		a.t.Fatalf("sync: %+v", bad)
	}
	if out.Need != "" {
		a.sync(0, "")
		return
	}
	at := int64(0)
	for _, p := range out.Parts {
		var r events.SyncRange
		switch {
		case p.Keep != nil:
			r = *p.Keep
		case p.Drop != nil:
			r = *p.Drop
		case p.Edit != nil:
			r = events.SyncRange{*p.Edit, *p.Edit + 1}
		default:
			r = *p.StandsFor
		}
		if r[0] != at || r[1] < r[0] {
			a.t.Fatalf("range %v does not begin at %d: %+v", r, at, out.Parts)
		}
		at = r[1]
	}
	if at != int64(len(a.history)) {
		a.t.Fatalf("parts end at %d of %d messages", at, len(a.history))
	}
	a.last, a.sent = out, align.Apply(a.history, out.Parts)
}

// wantContext compares what is sent with what context gives.
func (a *syncAgent) wantContext() {
	a.t.Helper()
	want := a.env.contextOf(a.session)
	lead := align.Read(events.OpenAI, a.sent, 0).Lead
	if events.OpenAI.DigestOf(want) != events.OpenAI.DigestOf(a.sent[lead:]) {
		a.t.Fatalf("parts give %d messages, context %d:\n%s\n%s", len(a.sent)-lead, len(want), a.sent, want)
	}
}

func (env *testEnv) contextOf(session string) []events.Raw {
	env.t.Helper()
	var out []events.Raw
	for page := 1; ; page++ {
		reply, err := env.conn.Request("compactd.context", fmt.Appendf(nil, `{"session":%q,"page":%d}`, session, page), waitLimit)
		if err != nil {
			env.t.Fatal(err)
		}
		var c events.ContextResponse
		if err := events.Unmarshal(reply.Data, &c); err != nil {
			env.t.Fatal(err)
		}
		if out = append(out, c.Messages...); int64(page) >= c.Pages {
			return out
		}
	}
}

// Whatever becomes of the workers, and of answers: the session has each message of the
// history once. A worker stops in the midst of requests and another one goes on; each
// history is sent again, several times at once, as after an answer that was lost.
func TestSyncTakeOver(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	stop := env.run("a", observe.Listener{})
	var all []*syncAgent
	for i := range 4 {
		a := &syncAgent{t: t, env: env, session: fmt.Sprintf("s%d", i)}
		a.add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
		all = append(all, a)
	}
	for round := range 12 {
		var calls sync.WaitGroup
		for i, a := range all {
			a.call(round, 50+7*i)
			for range 3 {
				again := *a
				calls.Go(func() { again.sync(0, "") })
			}
		}
		if round%3 == 1 {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			stop = env.run(fmt.Sprintf("w%d", round), observe.Listener{})
		}
		calls.Wait()
		for _, a := range all {
			if got := env.lineage(a.session); events.OpenAI.DigestOf(got) != events.OpenAI.DigestOf(a.history) || env.turnsOf(a.session) != round+1 {
				t.Fatalf("round %d: the log has %d turns and %d messages of %d", round, env.turnsOf(a.session), len(got), len(a.history))
			}
		}
	}
	for _, a := range all {
		a.sync(0, "")
		a.wantContext()
		if a.last.Generation == 0 || a.last.Known != int64(len(a.history)) {
			t.Errorf("%+v", a.last)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// lineage lists the messages of the turns of a session that are not retracted.
func (env *testEnv) lineage(session string) []events.Raw {
	env.t.Helper()
	var turns [][]events.Raw
	for _, data := range env.logged(session, events.KindTurn) {
		turn, err := events.DecodeTurn(data)
		if err != nil {
			env.t.Fatal(err)
		}
		if turn.ReplacesFrom > 0 {
			turns = turns[:turn.ReplacesFrom-1]
		}
		turns = append(turns, turn.Messages)
	}
	return slices.Concat(turns...)
}

// turnsOf counts the turns of a session in the log, also those that were retracted.
func (env *testEnv) turnsOf(session string) int { return len(env.logged(session, events.KindTurn)) }

// logged lists the events of a kind of a session.
func (env *testEnv) logged(session string, k events.Kind) (out [][]byte) {
	env.t.Helper()
	a := events.Address{Tenant: "default", Session: session}
	subject := events.Logged(env.streams.Partitions.Of(a), k, a)
	err := stream.ReadSubject(env.t.Context(), env.conn, topology.LogStream, subject, 1, func(m stream.LogMessage) error {
		out = append(out, m.Data)
		return nil
	})
	if err != nil {
		env.t.Fatal(err)
	}
	return out
}

// An agent that sends its history before each call sends what fits, with its own messages
// where nothing changed them. It may have no memory of earlier answers, or send what is new
// behind a prefix, go back, or send the same again: the log has each message once, and what
// the parts give is what context gives.
func TestSync(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	stop := env.run("a", observe.Listener{})
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 7))
		a := &syncAgent{t: t, env: env, session: fmt.Sprintf("s%d", seed)}
		lead := 0
		if seed%2 == 1 {
			a.history = append(a.history, events.Raw(`{"role":"system","content":"Be careful."}`))
			lead = 1
		}
		a.add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
		for step := range 25 {
			dated := false
			switch rng.IntN(8) {
			case 0: // it restarts on another version of the last messages
				if n := len(a.history); n > lead+4 {
					a.history = slices.Clip(a.history[:n-1-rng.IntN(2)])
					a.add("user", fmt.Sprintf("another question at step %d, which is long enough to be one of its own", step))
				}
			case 1:
				if lead == 1 { // a date in the system's message
					dated = true
					a.history[0] = events.Raw(fmt.Sprintf(`{"role":"system","content":"Be careful at step %d."}`, step))
				}
			default:
				a.call(step, 20+rng.IntN(60))
			}
			switch from := int(a.last.Count); {
			case rng.IntN(2) == 0 && !dated && from > 0 && from <= len(a.history) && a.last.Hash != (events.Digest{}):
				if events.OpenAI.DigestOf(a.history[lead:from]) == events.OpenAI.DigestOf(env.lineage(a.session)) {
					a.sync(from, fmt.Sprintf(`,"prefix":{"count":%d,"hash":%q}`, from, a.last.Hash))
					break
				}
				fallthrough
			default:
				a.sync(0, "")
			}
			a.wantContext()
			if again := rng.IntN(3); again == 0 {
				first := a.last
				a.sync(0, "")
				if first.Through != a.last.Through {
					t.Fatalf("the same history again: %+v, then %+v", first.Through, a.last.Through)
				}
			}
			if d := env.lineage(a.session); events.OpenAI.DigestOf(d) != events.OpenAI.DigestOf(a.history[lead:]) {
				t.Fatalf("seed %d step %d: the log has %d messages of %d", seed, step, len(d), len(a.history)-lead)
			}
			if !a.last.Budget.WithinBudget {
				t.Fatalf("seed %d step %d: %+v", seed, step, a.last.Budget)
			}
		}
		if a.last.Generation == 0 {
			t.Errorf("seed %d: nothing was compacted: %+v", seed, a.last.Budget)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// Syncs of one session wait for each other without a processor: the one whose turn it is needs one.
func TestSyncsOfOneSession(t *testing.T) {
	env := newEnv(t, t.TempDir())
	stop := env.run("a", observe.Listener{})
	syncs := 16 * runtime.GOMAXPROCS(0)
	var all errgroup.Group
	for i := range syncs {
		all.Go(func() error {
			in := fmt.Sprintf(`{"session":"s","on_divergence":"replace","model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"user","content":"%d"}]}`, i)
			m, err := env.conn.Request(events.SubjectSync, []byte(in), waitLimit)
			if err == nil && m.Header.Get("Nats-Service-Error-Code") != "" {
				err = errors.New(string(m.Data))
			}
			return err
		})
	}
	if err := errors.Join(all.Wait(), stop()); err != nil {
		t.Error(err)
	}
}
