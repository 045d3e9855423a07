package redecide_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/redecide"
)

// newReplayEnv returns an environment with two sessions, decided under two configs, one after the
// other, with summaries, a rewind and a rejection. No worker runs any more.
func newReplayEnv(t *testing.T) *workertest.Env {
	env := workertest.New(t, t.TempDir())
	env.Summarizer = extract.New()
	env.Config = workertest.NewConfig(t, policy.Default())
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 20; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
		if n == 10 {
			env.AwaitDecided() // a summary arrives before the other turns
		}
	}
	env.Publish(events.KindTurn, "s1", workertest.Turn(1)[:20])
	env.Publish(events.KindRewind, "s1", []byte(`{"v":1,"id":"r","steps":1}`))
	env.AwaitDecided()
	stop()
	p := workertest.WithoutSummaries()
	p.Profile = "seed"
	env.Config = workertest.NewConfig(t, p)
	stop = env.Run("b", observe.Listener{})
	for n := 1; n <= 20; n++ {
		env.Publish(events.KindTurn, "s2", workertest.UsageTurn(n))
		env.Publish(events.KindTurn, "s1", workertest.Turn(20+n))
	}
	env.AwaitDecided()
	stop()
	return env
}

// E6, P10: the published outcomes follow from the log, each event under its own config: all of
// them, those of a session, those of a span. A replay writes nothing and leaves no consumer.
func TestReplay(t *testing.T) {
	t.Parallel()
	env := newReplayEnv(t)
	log, outcomes, stored := env.State(topology.LogStream), env.State(topology.OutcomesStream), 0
	for _, payloads := range env.Stored() {
		stored += len(payloads)
	}
	consumers := consumerNames(env)
	all := env.Replay(redecide.Span{})
	if want := (&redecide.Replayed{
		Events: int(log.Last), Sessions: 2, Outcomes: stored, Configs: 2, Differences: []redecide.Difference{},
	}); !cmp.Equal(want, all) || !all.Equal() {
		t.Errorf("everything (-want +got):\n%s", cmp.Diff(want, all))
	}
	one := env.Replay(redecide.Span{Tenant: "default", Session: "s2"})
	if one.Sessions != 1 || one.Events != 20 || one.Configs != 1 || one.Outcomes == 0 || one.Outcomes >= stored || !one.Equal() {
		t.Errorf("one session: %+v", one)
	}
	if none := env.Replay(redecide.Span{Tenant: "acme"}); none.Events != 0 || !none.Equal() {
		t.Errorf("no such tenant: %+v", none)
	}
	middle := measure.Seq(log.Last / 2)
	early, late := env.Replay(redecide.Span{To: redecide.Place{Seq: middle}}), env.Replay(redecide.Span{From: redecide.Place{Seq: middle + 1}})
	if early.Events != int(middle) || early.Events+late.Events != all.Events || early.Outcomes+late.Outcomes != all.Outcomes || !early.Equal() || !late.Equal() {
		t.Errorf("two spans: %+v and %+v", early, late)
	}
	now := log.Created.UnixMilli()
	if r := env.Replay(redecide.Span{From: redecide.Place{Time: now + 3_600_000}}); r.Events != 0 {
		t.Errorf("a span in the future: %+v", r)
	}
	if r := env.Replay(redecide.Span{From: redecide.Place{Time: now}, To: redecide.Place{Time: now + 3_600_000}}); !cmp.Equal(r, all) {
		t.Errorf("the hour: %+v", r)
	}
	if diff := cmp.Diff([]topology.StreamState{log, outcomes}, []topology.StreamState{env.State(topology.LogStream), env.State(topology.OutcomesStream)}); diff != "" {
		t.Errorf("the replay wrote:\n%s", diff)
	}
	for _, name := range consumerNames(env) { // a consumer from before may end meanwhile
		if !slices.Contains(consumers, name) {
			t.Errorf("consumer %s is left", name)
		}
	}
}

// consumerNames lists the consumers of both streams.
func consumerNames(env *workertest.Env) (names []string) {
	env.T.Helper()
	for _, stream := range []string{topology.LogStream, topology.OutcomesStream} {
		s, err := env.JS.Stream(env.T.Context(), stream)
		if err != nil {
			env.T.Fatal(err)
		}
		for name := range s.ConsumerNames(env.T.Context()).Name() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// rewrite replaces the messages of OUTCOMES by those that change returns.
func rewrite(env *workertest.Env, messages []*nats.Msg, change func(i int, m *nats.Msg) [][]byte) {
	env.T.Helper()
	var all []*nats.Msg
	for i, m := range messages {
		for _, data := range change(i, m) {
			all = append(all, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: data})
		}
	}
	if err := brokertest.Recommit(env.T.Context(), env.JS, commit.HeaderMarker, all); err != nil {
		env.T.Fatal(err)
	}
}

// outcomeMessages reads OUTCOMES, with the markers in the headers.
func outcomeMessages(env *workertest.Env) (out []*nats.Msg) {
	env.T.Helper()
	err := stream.ReadStream(env.T.Context(), env.JS, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
		h := nats.Header{}
		if marker := m.Headers().Get(commit.HeaderMarker); marker != "" {
			h.Set(commit.HeaderMarker, marker)
		}
		out = append(out, &nats.Msg{Subject: m.Subject(), Header: h, Data: bytes.Clone(m.Data())})
		return nil
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return out
}

// Every change of a stored outcome is reported, with its path; of a session only the first.
func TestReplayDiffers(t *testing.T) {
	t.Parallel()
	env := newReplayEnv(t)
	messages := outcomeMessages(env)
	find := func(subject, text string) int {
		for i, m := range messages {
			if strings.HasPrefix(m.Subject, "out.") && strings.Contains(m.Subject, subject) && strings.Contains(string(m.Data), text) {
				return i
			}
		}
		t.Fatalf("no outcome %s with %s", subject, text)
		return 0
	}
	edit := func(old, to string) func([]byte) [][]byte {
		return func(data []byte) [][]byte { return [][]byte{bytes.Replace(data, []byte(old), []byte(to), 1)} }
	}
	drop := func([]byte) [][]byte { return nil }
	for _, x := range []struct {
		name, subject, text string
		change              func([]byte) [][]byte
		want                redecide.Difference // Seq aside
	}{
		{"a number", ".compacted.default.s2", `"compacted":true`, edit(`"tokens_before":`, `"tokens_before":1`), redecide.Difference{Session: "s2", Kind: "compacted", Path: "stages[0].tokens_before"}},
		{"a text", ".compacted.default.s1", `"compacted":true`, edit(`word 1 `, `Word 1 `), redecide.Difference{Session: "s1", Kind: "compacted", Path: "messages[0].content"}},
		{"a budget", ".budget.default.s2", "", edit(`"level":"`, `"level":"x`), redecide.Difference{Session: "s2", Kind: "budget", Path: "level"}},
		{"a job", ".job.", "", edit(`"hash":"`, `"hash":"0`), redecide.Difference{Session: "s1", Kind: "job", Path: "hash"}},
		{"white space", ".budget.default.s2", "", edit(`,`, `, `), redecide.Difference{Session: "s2", Kind: "budget"}},
		{"one too few", ".rejected.default.s1", "", drop, redecide.Difference{Session: "s1", Kind: "rejected", Recorded: "-"}},
		{"one too many", ".budget.default.s2", "", func(d []byte) [][]byte { return [][]byte{d, d} }, redecide.Difference{Session: "s2", Kind: "budget", Decided: "-"}},
		{"not JSON", ".budget.default.s2", "", edit(`{`, `(`), redecide.Difference{Session: "s2", Kind: "budget"}},
		{"an event that is not there", ".budget.default.s2", "", edit(`"seq":`, `"seq":1000`), redecide.Difference{Session: "s2", Kind: "budget"}},
	} {
		at := find(x.subject, x.text)
		rewrite(env, messages, func(i int, m *nats.Msg) [][]byte {
			if i != at {
				return [][]byte{m.Data}
			}
			return x.change(m.Data)
		})
		r := env.Replay(redecide.Span{})
		if r.Equal() || r.Differing != 1 || len(r.Differences) != 1 {
			t.Errorf("%s: %+v", x.name, r)
			continue
		}
		d := r.Differences[0]
		if d.Session != x.want.Session || d.Kind != x.want.Kind || d.Path != x.want.Path || d.Tenant != "default" || d.Recorded == d.Decided ||
			x.want.Recorded != "" && d.Recorded != x.want.Recorded || x.want.Decided != "" && d.Decided != x.want.Decided {
			t.Errorf("%s: %+v", x.name, d)
		}
		if other := env.Replay(redecide.Span{To: redecide.Place{Seq: 1}}); !other.Equal() {
			t.Errorf("%s: a span before it differs: %+v", x.name, other)
		}
	}
	rewrite(env, messages, func(_ int, m *nats.Msg) [][]byte { return [][]byte{m.Data} })
	if r := env.Replay(redecide.Span{}); !r.Equal() {
		t.Errorf("unchanged: %+v", r)
	}
}

// Sessions that cannot be decided again are counted and not compared: those whose first turns
// have left the log, and those whose config is gone. The latter make a replay fail.
func TestReplayLeavesOut(t *testing.T) {
	t.Parallel()
	env := newReplayEnv(t)
	messages := outcomeMessages(env)
	rewrite(env, messages, func(_ int, m *nats.Msg) [][]byte {
		if m.Subject == events.Config(env.Config.Hash()) {
			return nil
		}
		return [][]byte{m.Data}
	})
	r := env.Replay(redecide.Span{})
	if r.Equal() || r.Differing != 0 || len(r.Undecidable) != 1 || r.Sessions != 1 {
		t.Errorf("without the second config: %+v", r)
	}
	for why, n := range r.Undecidable {
		if n != 2 || !strings.Contains(why, env.Config.Hash()) || !strings.Contains(why, commit.ErrNoConfig.Error()) {
			t.Errorf("%d sessions: %s", n, why)
		}
	}
	rewrite(env, messages, func(_ int, m *nats.Msg) [][]byte { return [][]byte{m.Data} })
	log, err := env.JS.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Purge(t.Context(), jetstream.WithPurgeSequence(5)); err != nil {
		t.Fatal(err)
	}
	r = env.Replay(redecide.Span{})
	if !r.Equal() || r.Older != 1 || r.Sessions != 1 || r.Events != 20 {
		t.Errorf("without the first turns: %+v", r)
	}
	left := 0
	err = redecide.Recordings(t.Context(), env.Conn, redecide.Span{}, nil, func(rec redecide.Recording, why error) error {
		switch {
		case why != nil && rec.Address.Session == "s1" && len(rec.Events) == 0:
			left++
		case why != nil || rec.Address.Session != "s2" || len(rec.Events) != 20 || rec.Events[0].Config.Hash() != env.Config.Hash():
			t.Errorf("%s: %d events, %v", rec.Address, len(rec.Events), why)
		}
		return nil
	})
	if err != nil || left != 1 {
		t.Errorf("%d sessions are left out: %v", left, err)
	}
}

// When a session is erased from both streams, with the markers of its messages, every other
// session can still be decided again, across a change of the config.
func TestReplayErased(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 20; n++ {
		env.Publish(events.KindTurn, "s1", workertest.UsageTurn(n))
		env.Publish(events.KindTurn, "s2", workertest.UsageTurn(n))
	}
	env.AwaitDecided()
	stop()
	p := workertest.WithoutSummaries()
	p.Profile = "seed"
	env.Config = workertest.NewConfig(t, p)
	stop = env.Run("b", observe.Listener{})
	erased := env.Publish(events.KindForget, "s2", []byte(`{"v":1,"id":"f"}`))
	env.Publish(events.KindTurn, "s2", workertest.UsageTurn(1))
	for n := 21; n <= 40; n++ {
		env.Publish(events.KindTurn, "s1", workertest.UsageTurn(n))
	}
	env.AwaitDecided()
	stop()
	eraseFromStreams(env, "s2", erased)
	if r := env.Replay(redecide.Span{}); !r.Equal() || r.Events != 42 || r.Sessions != 2 || r.Older != 0 || r.Configs != 2 {
		t.Errorf("%+v", r)
	}
}

// eraseFromStreams removes the messages of a session before an event from both streams.
func eraseFromStreams(env *workertest.Env, session string, before uint64) {
	env.T.Helper()
	for name, filter := range map[string]string{topology.LogStream: "log.*.*.default." + session, topology.OutcomesStream: "out.*.*.default." + session} {
		s, err := env.JS.Stream(env.T.Context(), name)
		if err != nil {
			env.T.Fatal(err)
		}
		err = stream.ReadStream(env.T.Context(), env.JS, name, filter, 1, 0, func(m jetstream.Msg, seq uint64) error {
			if name == topology.OutcomesStream {
				var body struct {
					CausedBy events.Cause `json:"caused_by"`
				}
				if err := codec.Unmarshal(m.Data(), &body); err != nil {
					return err
				}
				if body.CausedBy.Seq >= before {
					return nil
				}
			} else if seq >= before {
				return nil
			}
			return s.DeleteMsg(env.T.Context(), seq)
		})
		if err != nil {
			env.T.Fatal(err)
		}
	}
}
