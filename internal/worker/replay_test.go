package worker_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
	"compactd/internal/worker/audit"
)

// replayWorld holds two sessions, decided under two configs, one after the other,
// with summaries, a rewind and a rejection. No worker runs any more.
func replayWorld(t *testing.T) *world {
	w := newWorld(t, t.TempDir())
	w.summarizer = extract.New()
	w.config = newConfig(t, compaction.DefaultPolicy())
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 20; n++ {
		w.publish(events.KindTurn, "s1", turn(n))
		if n == 10 {
			w.settle() // a summary comes in between
		}
	}
	w.publish(events.KindTurn, "s1", turn(1)[:20])
	w.publish(events.KindRewind, "s1", []byte(`{"v":1,"id":"r","steps":1}`))
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	p := withoutSummaries()
	p.Profile = "seed"
	w.config = newConfig(t, p)
	stop = w.run("b", worker.Listener{})
	for n := 1; n <= 20; n++ {
		w.publish(events.KindTurn, "s2", usageTurn(n))
		w.publish(events.KindTurn, "s1", turn(20+n))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) replay(s audit.Span) *audit.Replayed {
	w.t.Helper()
	r, err := audit.Replay(w.t.Context(), w.conn, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) state(stream string) topology.StreamState {
	w.t.Helper()
	s, err := topology.State(w.t.Context(), w.js, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// E6, P10: what was told follows from the log, each event under its own config:
// all of it, a session, a span. Nothing is written, and no consumer is left.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := replayWorld(t)
	log, outcomes, told := w.state(topology.LogStream), w.state(topology.OutcomesStream), 0
	for _, bodies := range w.stored() {
		told += len(bodies)
	}
	consumers := w.consumers()
	all := w.replay(audit.Span{})
	if want := (&audit.Replayed{
		Events: int(log.Last), Sessions: 2, Outcomes: told, Configs: 2, Differences: []audit.Difference{},
	}); !cmp.Equal(want, all) || !all.Equal() {
		t.Errorf("everything (-want +got):\n%s", cmp.Diff(want, all))
	}
	one := w.replay(audit.Span{Tenant: "default", Session: "s2"})
	if one.Sessions != 1 || one.Events != 20 || one.Configs != 1 || one.Outcomes == 0 || one.Outcomes >= told || !one.Equal() {
		t.Errorf("one session: %+v", one)
	}
	if none := w.replay(audit.Span{Tenant: "acme"}); none.Events != 0 || !none.Equal() {
		t.Errorf("no such tenant: %+v", none)
	}
	middle := compaction.Seq(log.Last / 2)
	early, late := w.replay(audit.Span{To: audit.Place{Seq: middle}}), w.replay(audit.Span{From: audit.Place{Seq: middle + 1}})
	if early.Events != int(middle) || early.Events+late.Events != all.Events || early.Outcomes+late.Outcomes != all.Outcomes || !early.Equal() || !late.Equal() {
		t.Errorf("two spans: %+v and %+v", early, late)
	}
	now := log.Created.UnixMilli()
	if r := w.replay(audit.Span{From: audit.Place{Time: now + 3_600_000}}); r.Events != 0 {
		t.Errorf("what is to come: %+v", r)
	}
	if r := w.replay(audit.Span{From: audit.Place{Time: now}, To: audit.Place{Time: now + 3_600_000}}); !cmp.Equal(r, all) {
		t.Errorf("the hour: %+v", r)
	}
	if diff := cmp.Diff([]topology.StreamState{log, outcomes}, []topology.StreamState{w.state(topology.LogStream), w.state(topology.OutcomesStream)}); diff != "" {
		t.Errorf("somebody wrote:\n%s", diff)
	}
	for _, name := range w.consumers() { // one of before may end meanwhile
		if !slices.Contains(consumers, name) {
			t.Errorf("consumer %s is left", name)
		}
	}
}

// consumers lists those of both streams by name.
func (w *world) consumers() (names []string) {
	w.t.Helper()
	for _, stream := range []string{topology.LogStream, topology.OutcomesStream} {
		s, err := w.js.Stream(w.t.Context(), stream)
		if err != nil {
			w.t.Fatal(err)
		}
		for name := range s.ConsumerNames(w.t.Context()).Name() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// rewrite puts other messages in place of those in OUTCOMES; nil drops one.
func (w *world) rewrite(messages []*nats.Msg, change func(i int, m *nats.Msg) [][]byte) {
	w.t.Helper()
	s, err := w.js.Stream(w.t.Context(), topology.OutcomesStream)
	if err != nil {
		w.t.Fatal(err)
	}
	c := s.CachedInfo().Config
	if err := w.js.DeleteStream(w.t.Context(), c.Name); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.js.CreateStream(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	for i, m := range messages {
		for _, data := range change(i, m) {
			if _, err := w.js.PublishMsg(w.t.Context(), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: data}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// outcomeMessages reads OUTCOMES, markers on their messages.
func (w *world) outcomeMessages() (out []*nats.Msg) {
	w.t.Helper()
	err := stream.ReadStream(w.t.Context(), w.js, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
		h := nats.Header{}
		if marker := m.Headers().Get(commit.HeaderMarker); marker != "" {
			h.Set(commit.HeaderMarker, marker)
		}
		out = append(out, &nats.Msg{Subject: m.Subject(), Header: h, Data: bytes.Clone(m.Data())})
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// Every change of what is stored is told, with its place: the first of a session.
func TestReplayDiffers(t *testing.T) {
	t.Parallel()
	w := replayWorld(t)
	messages := w.outcomeMessages()
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
		want                audit.Difference // Seq aside
	}{
		{"a number", ".compacted.default.s2", `"compacted":true`, edit(`"tokens_before":`, `"tokens_before":1`), audit.Difference{Session: "s2", Kind: "compacted", Path: "stages[0].tokens_before"}},
		{"a text", ".compacted.default.s1", `"compacted":true`, edit(`word 1 `, `Word 1 `), audit.Difference{Session: "s1", Kind: "compacted", Path: "messages[0].content"}},
		{"a budget", ".budget.default.s2", "", edit(`"level":"`, `"level":"x`), audit.Difference{Session: "s2", Kind: "budget", Path: "level"}},
		{"a job", ".job.", "", edit(`"hash":"`, `"hash":"0`), audit.Difference{Session: "s1", Kind: "job", Path: "hash"}},
		{"white space", ".budget.default.s2", "", edit(`,`, `, `), audit.Difference{Session: "s2", Kind: "budget"}},
		{"one too few", ".rejected.default.s1", "", drop, audit.Difference{Session: "s1", Kind: "rejected", Recorded: "-"}},
		{"one too many", ".budget.default.s2", "", func(d []byte) [][]byte { return [][]byte{d, d} }, audit.Difference{Session: "s2", Kind: "budget", Decided: "-"}},
		{"not JSON", ".budget.default.s2", "", edit(`{`, `(`), audit.Difference{Session: "s2", Kind: "budget"}},
		{"an event that is not there", ".budget.default.s2", "", edit(`"seq":`, `"seq":1000`), audit.Difference{Session: "s2", Kind: "budget"}},
	} {
		at := find(x.subject, x.text)
		w.rewrite(messages, func(i int, m *nats.Msg) [][]byte {
			if i != at {
				return [][]byte{m.Data}
			}
			return x.change(m.Data)
		})
		r := w.replay(audit.Span{})
		if r.Equal() || r.Differing != 1 || len(r.Differences) != 1 {
			t.Errorf("%s: %+v", x.name, r)
			continue
		}
		d := r.Differences[0]
		if d.Session != x.want.Session || d.Kind != x.want.Kind || d.Path != x.want.Path || d.Tenant != "default" || d.Recorded == d.Decided ||
			x.want.Recorded != "" && d.Recorded != x.want.Recorded || x.want.Decided != "" && d.Decided != x.want.Decided {
			t.Errorf("%s: %+v", x.name, d)
		}
		if other := w.replay(audit.Span{To: audit.Place{Seq: 1}}); !other.Equal() {
			t.Errorf("%s: a span before it differs: %+v", x.name, other)
		}
	}
	w.rewrite(messages, func(_ int, m *nats.Msg) [][]byte { return [][]byte{m.Data} })
	if r := w.replay(audit.Span{}); !r.Equal() {
		t.Errorf("unchanged: %+v", r)
	}
}

// Sessions that cannot be decided again are counted, and not compared: those whose
// beginning has left the log, and those whose config nobody can read any more,
// which is no success.
func TestReplayLeavesOut(t *testing.T) {
	t.Parallel()
	w := replayWorld(t)
	messages := w.outcomeMessages()
	w.rewrite(messages, func(_ int, m *nats.Msg) [][]byte {
		if m.Subject == events.Config(w.config.Hash()) {
			return nil
		}
		return [][]byte{m.Data}
	})
	r := w.replay(audit.Span{})
	if r.Equal() || r.Differing != 0 || len(r.Undecidable) != 1 || r.Sessions != 1 {
		t.Errorf("without the second config: %+v", r)
	}
	for why, n := range r.Undecidable {
		if n != 2 || !strings.Contains(why, w.config.Hash()) || !strings.Contains(why, commit.ErrNoConfig.Error()) {
			t.Errorf("%d sessions: %s", n, why)
		}
	}
	w.rewrite(messages, func(_ int, m *nats.Msg) [][]byte { return [][]byte{m.Data} })
	log, err := w.js.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Purge(t.Context(), jetstream.WithPurgeSequence(5)); err != nil {
		t.Fatal(err)
	}
	r = w.replay(audit.Span{})
	if !r.Equal() || r.Older != 1 || r.Sessions != 1 || r.Events != 20 {
		t.Errorf("without the first turns: %+v", r)
	}
	left := 0
	err = audit.Recordings(t.Context(), w.conn, audit.Span{}, nil, func(rec audit.Recording, why error) error {
		switch {
		case why != nil && rec.Address.Session == "s1" && len(rec.Events) == 0:
			left++
		case why != nil || rec.Address.Session != "s2" || len(rec.Events) != 20 || rec.Events[0].Config.Hash() != w.config.Hash():
			t.Errorf("%s: %d events, %v", rec.Address, len(rec.Events), why)
		}
		return nil
	})
	if err != nil || left != 1 {
		t.Errorf("%d sessions are left out: %v", left, err)
	}
}

// A session that was forgotten is erased from both streams, markers with it, and
// every other one can still be decided again, across a change of the config.
func TestReplayForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 20; n++ {
		w.publish(events.KindTurn, "s1", usageTurn(n))
		w.publish(events.KindTurn, "s2", usageTurn(n))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	p := withoutSummaries()
	p.Profile = "seed"
	w.config = newConfig(t, p)
	stop = w.run("b", worker.Listener{})
	forgotten := w.publish(events.KindForget, "s2", []byte(`{"v":1,"id":"f"}`))
	w.publish(events.KindTurn, "s2", usageTurn(1))
	for n := 21; n <= 40; n++ {
		w.publish(events.KindTurn, "s1", usageTurn(n))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.erase("s2", forgotten)
	if r := w.replay(audit.Span{}); !r.Equal() || r.Events != 42 || r.Sessions != 2 || r.Older != 0 || r.Configs != 2 {
		t.Errorf("%+v", r)
	}
}

// erase removes what both streams hold of a session before an event.
func (w *world) erase(session string, before uint64) {
	w.t.Helper()
	for name, filter := range map[string]string{topology.LogStream: "log.*.*.default." + session, topology.OutcomesStream: "out.*.*.default." + session} {
		s, err := w.js.Stream(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		err = stream.ReadStream(w.t.Context(), w.js, name, filter, 1, 0, func(m jetstream.Msg, seq uint64) error {
			if name == topology.OutcomesStream {
				var told struct {
					CausedBy events.Cause `json:"caused_by"`
				}
				if err := events.Unmarshal(m.Data(), &told); err != nil {
					return err
				}
				if told.CausedBy.Seq >= before {
					return nil
				}
			} else if seq >= before {
				return nil
			}
			return s.DeleteMsg(w.t.Context(), seq)
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}
