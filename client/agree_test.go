package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
)

// An agent through the client, whatever it does and whatever it misses, holds the
// history that a worker holds at the same generation, and that history is valid for
// its provider (E4, E8).
func TestAgreesWithWorker(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	compactions := 0
	rapid.Check(t, func(t *rapid.T) {
		a := &agent{T: t, env: env, c: env.client(t), name: env.name()}
		defer func() { a.c.Close() }()
		a.s = env.open(t, a.c, a.name, small)
		t.Repeat(map[string]func(*rapid.T){
			"":           a.look,
			"exchange 1": a.exchange, // three times, as it is the usual turn
			"exchange 2": a.exchange,
			"exchange 3": a.exchange,
			"use tool":   a.useTool,
			"regenerate": a.regenerate,
			"miss":       a.miss,
			"reconnect":  a.reconnect,
			"move":       a.move,
			"move alone": a.moveAlone,
			"fork":       a.fork,
			"rewind":     a.rewind,
		})
		a.agree()
		compactions += int(history(t, a.s).Generation)
	})
	t.Logf("%d compactions", compactions)
	if compactions < 5 && !t.Failed() {
		t.Errorf("there were %d compactions: the test shows little", compactions)
	}
}

// agent is an agent with one session.
type agent struct {
	*rapid.T
	env   *testEnv
	c     *Client
	s     *Session
	name  string
	ends  []bool // by turn: no call is open after it
	calls int
}

func (a *agent) publish(t *rapid.T, from int64, ends bool, messages ...any) {
	t.Helper()
	if err := a.s.Publish(context.Background(), Turn{Messages: messages, ReplacesFrom: from}); err != nil {
		t.Fatal(err)
	}
	if from > 0 {
		a.ends = a.ends[:from-1]
	}
	a.ends = append(a.ends, ends)
}

// whole reports whether a turn may be followed by any other: no call is open.
func (a *agent) whole(turn int) bool { return turn == 0 || a.ends[turn-1] }

func (a *agent) size(t *rapid.T) int { return rapid.IntRange(50, 900).Draw(t, "size") }

func (a *agent) exchange(t *rapid.T) {
	if !a.whole(len(a.ends)) {
		return
	}
	a.publish(t, 0, true, user("question "+words(a.size(t)/4)), assistant("answer "+words(a.size(t))))
}

// useTool reads a file in two turns, as an agent does: the call, and its result.
func (a *agent) useTool(t *rapid.T) {
	if a.whole(len(a.ends)) {
		a.calls++
		a.publish(t, 0, false, user("read it"), call(fmt.Sprint("call", a.calls), rapid.SampledFrom([]string{"/a.go", "/b.go"}).Draw(t, "path")))
		return
	}
	a.publish(t, 0, true, result(fmt.Sprint("call", a.calls), "package "+words(a.size(t))), assistant("I see"))
}

func (a *agent) regenerate(t *rapid.T) {
	var places []int64
	for n := range a.ends {
		if a.whole(n) {
			places = append(places, int64(n+1))
		}
	}
	if len(places) == 0 {
		return
	}
	from := rapid.SampledFrom(places).Draw(t, "from")
	if rapid.Bool().Draw(t, "only retract") {
		a.publish(t, from, true)
		return
	}
	a.publish(t, from, true, user("again"), assistant("better "+words(a.size(t))))
}

// look is what an agent does before every call: it never waits.
func (a *agent) look(t *rapid.T) {
	h := history(t, a.s)
	if h.Turn != int64(len(a.ends)) {
		t.Fatalf("the history ends with turn %d of %d", h.Turn, len(a.ends))
	}
	raws := make([]codec.Raw, len(h.Messages))
	for i, m := range h.Messages {
		raws[i] = codec.Raw(m)
	}
	if v := validate.Messages(events.Format(h.Format), raws); len(v) > 0 {
		t.Fatalf("the history is not valid: %v", v)
	}
}

// miss lets the agent publish without its subscriptions, so that it misses outcomes.
func (a *agent) miss(t *rapid.T) {
	for _, sub := range a.s.subs {
		_ = sub.Unsubscribe()
	}
	for range rapid.IntRange(1, 3).Draw(t, "turns") {
		a.exchange(t)
	}
	a.s.subs = nil
	if err := a.s.subscribe(); err != nil {
		t.Fatal(err)
	}
}

func (a *agent) reconnect(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "rarely") > 0 { // it takes a while
		return
	}
	if err := a.c.nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
}

// move continues the session on another machine.
func (a *agent) move(t *rapid.T) {
	before := history(t, a.s)
	a.c.Close()
	a.c = a.env.client(t)
	a.s = a.env.open(t, a.c, a.name, Config{})
	if got := history(t, a.s); got.Turn != before.Turn || got.Generation < before.Generation {
		t.Fatalf("moved from turn %d, generation %d to turn %d, generation %d", before.Turn, before.Generation, got.Turn, got.Generation)
	}
}

// moveAlone does so while no worker runs.
func (a *agent) moveAlone(t *rapid.T) {
	if rapid.IntRange(0, 19).Draw(t, "rarely") > 0 { // a worker takes long to come back
		return
	}
	a.env.stop()
	a.c.Close()
	a.c = a.env.client(t)
	a.s = a.env.open(t, a.c, a.name, Config{})
	a.look(t)
	a.exchange(t)
	a.env.start(t)
}

func (a *agent) fork(t *rapid.T) {
	if len(a.ends) == 0 || !a.whole(len(a.ends)) || rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
		return // it begins with generation 0
	}
	before, branch := history(t, a.s), a.env.name()
	in := Sync{Config: small, Branch: branch, Wait: mostWait}
	for _, m := range before.Messages {
		in.Messages = append(in.Messages, m)
	}
	if _, err := a.c.Sync(context.Background(), a.name, in); err != nil {
		t.Fatal(err)
	}
	a.name += "/" + branch
	f := a.env.open(t, a.c, a.name, Config{})
	copied := history(t, f)
	if diff := cmp.Diff(payloads(before.Messages), payloads(copied.Messages)); diff != "" && history(t, a.s).Generation == before.Generation && copied.Generation == 0 {
		t.Fatalf("the fork begins with another history (-session +fork):\n%s", diff)
	}
	a.s.Close()
	a.s, a.ends = f, slices.Repeat([]bool{true}, int(copied.Turn))
}

func (a *agent) rewind(t *rapid.T) {
	if len(a.ends) == 0 {
		return
	}
	_, err := a.s.Undo(context.Background(), 1)
	if err != nil && !errors.Is(err, CodeNothingToDo) && !errors.Is(err, CodeUnknownGeneration) {
		t.Fatal(err)
	}
}

// agree compares the history with a worker's.
func (a *agent) agree() {
	if len(a.ends) == 0 {
		return
	}
	for {
		a.look(a.T)
		h := history(a, a.s)
		want := a.env.context(a, a.s, h.Generation)
		if again := history(a, a.s); again.Generation != h.Generation {
			continue // a compaction came in between
		}
		got := payloads(h.Messages)
		if diff := cmp.Diff(payloads(want.Messages), got); diff != "" {
			a.Fatalf("generation %d (-worker +client):\n%s", h.Generation, diff)
		}
		return
	}
}

// payloads are messages as strings, for differences that people can read.
func payloads[M ~[]byte](in []M) []string {
	out := make([]string, len(in))
	for i, m := range in {
		out[i] = string(m)
	}
	return out
}
