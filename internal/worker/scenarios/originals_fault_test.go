//go:build faults

package scenarios_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// P5: however often sessions were pruned, summarized and truncated, the history as it was
// published is returned byte for byte. So is the view of every generation, when the session
// is rewound to it. Both hold for a worker that has only the log.
func TestFaultOriginals(t *testing.T) {
	t.Parallel()
	const sessions, turns = 9, 30
	env := workertest.New(t, t.TempDir())
	env.Ledgers, env.Config, env.Summarizer = t.TempDir(), workertest.NewConfig(t, policy.Default()), extract.New()
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= turns; n++ {
		for s := range sessions {
			env.Publish(events.KindTurn, fmt.Sprintf("s%d", s), agentTurn(s+12, n))
		}
		jobsDone(env)
		env.AwaitDecided()
	}
	stop()
	if err := os.RemoveAll(env.Ledgers); err != nil {
		t.Fatal(err)
	}
	stop = env.Run("b", observe.Listener{})
	o := originals{Env: env}
	for s := range sessions {
		o.check(fmt.Sprintf("s%d", s), s+12, turns)
	}
	stop()
	figures.Print(t, "P5", "sessions", sessions, "messages", o.messages, "compactions", o.views, "generations", o.rewinds, "different", o.different)
	if o.rewinds < 2*sessions {
		t.Error("too few rewinds: the test shows little")
	}
}

// originals counts what was compared.
type originals struct {
	*workertest.Env
	messages, views, rewinds, different int
}

// check compares one session, whose turns are agentTurn(flavour, …).
func (o *originals) check(session string, flavour, turns int) {
	o.T.Helper()
	var published [][]codec.Raw // by turn
	for n := 1; n <= turns; n++ {
		turn, err := events.DecodeTurn(agentTurn(flavour, n))
		if err != nil {
			o.T.Fatal(err)
		}
		published = append(published, turn.Messages)
		o.messages += len(turn.Messages)
	}
	after := func(from int64) (out []codec.Raw) {
		for _, messages := range published[from:] {
			out = append(out, messages...)
		}
		return out
	}
	o.same(session+" as it was published", after(0), o.historyOf(session, `,"generation":0`))
	all := o.compacted(session)
	for i, c := range all {
		o.Publish(events.KindRewind, session, fmt.Appendf(nil, `{"id":"back-%s-%d","generation":%d}`, session, i, c.Generation))
		o.AwaitDecided()
		o.rewinds++
		want := append(append([]codec.Raw{}, c.Messages...), after(c.Through.Turn)...)
		o.same(fmt.Sprintf("%s rewound to %d", session, c.Generation), want, o.historyOf(session, ""))
	}
	o.Publish(events.KindRewind, session, fmt.Appendf(nil, `{"id":"back-%s","generation":0}`, session))
	o.AwaitDecided()
	o.rewinds++
	o.same(session+" rewound to 0", after(0), o.historyOf(session, ""))
}

// compacted lists the compactions that made a new generation.
func (o *originals) compacted(session string) (out []events.Compacted) {
	for _, c := range o.Compactions(session) {
		if c.Compacted {
			out = append(out, c)
		}
	}
	o.views += len(out)
	return out
}

func (o *originals) historyOf(session, more string) (out []codec.Raw) {
	o.T.Helper()
	for page, pages := int64(1), int64(1); page <= pages; page++ {
		var c events.ContextResponse
		if e := o.Request(events.SubjectContext, fmt.Sprintf(`{"session":%q,"page":%d%s}`, session, page, more), &c); e != nil {
			o.T.Fatalf("context of %s: %s %s", session, e.Code, e.Message)
		}
		out, pages = append(out, c.Messages...), c.Pages
	}
	return out
}

func (o *originals) same(what string, want, got []codec.Raw) {
	o.T.Helper()
	if hashOf(want) != hashOf(got) {
		o.different++
		o.T.Errorf("%s: %d messages differ from the %d published", what, len(got), len(want))
	}
}

func hashOf(messages []codec.Raw) [sha256.Size]byte {
	h := sha256.New()
	for _, m := range messages {
		fmt.Fprintf(h, "%d:", len(m))
		h.Write(m)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
