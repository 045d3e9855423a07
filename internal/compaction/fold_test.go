package compaction_test

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// A session with more messages in view than its policy allows has the oldest of them hidden, whatever they
// cost; none is refused, and a rewind shows as many again.
func TestFold(t *testing.T) {
	const most = 2 * events.MaxTurnMessages
	p := policy.Default()
	p.MaxEntries = most
	for _, enabled := range []bool{true, false} {
		p.Enabled = enabled
		for _, f := range events.Formats() {
			a := newAgent(t, configOf(t, p))
			folds := 0
			for i := range 6 {
				turn := object{"format": f, "messages": messages(f, slices.Repeat([]msg{user(0), assistant(0)}, events.MaxTurnMessages/2)...)}
				if i == 0 {
					turn["model"] = object{"context_window": 1 << 30}
				}
				for _, o := range a.publish(turn) {
					c, ok := o.Body.(*events.Compacted)
					if !ok || c.Reason != events.ReasonEntries || len(o.View.Entries) > most/2+1 {
						t.Fatalf("%s: %+v", f, o.Body)
					}
					folds++
				}
				if n := len(a.ledger.Visible()); n > most {
					t.Errorf("%s: %d entries in view after turn %d", f, n, i+1)
				}
			}
			outs := a.do(a.request(events.KindRewind, `{"v":1,"generation":0}`))
			if c, ok := outs[0].Body.(*events.Compacted); !ok || c.RewoundTo == nil || len(a.ledger.Visible()) > most || len(a.ledger.Visible()) < most/2 || folds < 2 {
				t.Errorf("%s: %d folds, then rewound to %d entries: %+v", f, folds, len(a.ledger.Visible()), outs[0].Body)
			}
			if n := len(a.ledger.TurnSeqs()); n != 6 {
				t.Errorf("%s: %d turns can be recalled", f, n)
			}
		}
	}
}

// Calls that are open cannot be hidden: the session goes on above its bound, and is not planned with
// each turn.
func TestFoldOpenCalls(t *testing.T) {
	p := policy.Default()
	p.MaxEntries = 2 * events.MaxTurnMessages
	a := newAgent(t, configOf(t, p))
	model := object{"context_window": 1 << 30}
	id, emitted := 0, 0
	for i := range 40 {
		n := 500
		if i < 4 {
			n = events.MaxTurnMessages
		}
		list := make([]msg, n)
		for k := range list {
			list[k] = calling(id)
			id++
		}
		if i == 0 {
			list[0] = user(0)
		}
		for _, o := range a.publish(object{"format": events.Anthropic, "messages": messages(events.Anthropic, list...), "model": model}) {
			if _, ok := o.Body.(*events.Rejected); ok {
				t.Fatalf("%+v", o.Body)
			}
			emitted++
		}
	}
	if emitted > 2 {
		t.Errorf("%d outcomes", emitted)
	}
	a.publish(object{"messages": messages(events.Anthropic, user(0))})
	a.publish(object{"messages": messages(events.Anthropic, user(0))})
	for range 4 {
		a.publish(object{"messages": messages(events.Anthropic, slices.Repeat([]msg{user(0), assistant(0)}, 500)...)})
	}
	if n := len(a.ledger.Visible()); n > 2*events.MaxTurnMessages {
		t.Errorf("%d entries in view once no call is open", n)
	}
}

// A compaction that is due goes before a fold, which follows with the next turn: the history fits its
// window after the turn that goes beyond both.
func TestFoldFollowsCompaction(t *testing.T) {
	p := policy.Default()
	p.MaxEntries = 2 * events.MaxTurnMessages
	a := newAgent(t, configOf(t, p))
	model := object{"context_window": 200_000, "max_output_tokens": 64_000}
	for range 2 {
		a.publish(object{"messages": messages(events.OpenAI, slices.Repeat([]msg{user(0), assistant(0)}, events.MaxTurnMessages/2-50)...), "model": model})
	}
	text := strings.Repeat("word ", 50)
	outs := a.publish(object{"messages": messages(events.OpenAI, slices.Repeat([]msg{{role: dialect.RoleUser, text: text}, {role: dialect.RoleAssistant, text: text}}, events.MaxTurnMessages/2)...)})
	if b := a.ledger.Budget(); !slices.ContainsFunc(outs, isCompaction) || !b.WithinBudget {
		t.Errorf("%d of %d tokens after the turn", b.EstimatedInput, b.AvailableInput)
	}
	a.publish(object{"messages": messages(events.OpenAI, user(0), assistant(0))})
	if n := len(a.ledger.Visible()); n > 2*events.MaxTurnMessages {
		t.Errorf("%d entries in view after the next turn", n)
	}
}

func isCompaction(o compaction.Outcome) bool {
	c, ok := o.Body.(*events.Compacted)
	return ok && c.Reason != events.ReasonEntries
}

// Rewinds and compactions by hand in a loop are refused once they took the work of an hour, by the time
// of the log, and what is recorded gives the same.
func TestTooMuchWork(t *testing.T) {
	a := newAgent(t, defaultConfig(t))
	for range 4 {
		a.publish(object{"messages": messages(events.OpenAI, slices.Repeat([]msg{user(0), assistant(0)}, events.MaxTurnMessages/2)...), "model": object{"context_window": 1 << 30}})
	}
	taken := func(at int64) (n int) {
		for n = 0; n < 1000; n++ {
			r := a.request(events.KindRewind, `{"v":1,"generation":0}`).(*compaction.Request)
			r.Time = at
			again := a.ledger.Fork()
			outs := a.do(r)
			compaction.Apply(again, r, outs, a.config)
			if !again.Dump().Equal(a.ledger.Dump()) {
				t.Fatal("what is recorded gives another ledger")
			}
			if slices.ContainsFunc(outs, isRefused(events.CodeTooMuchWork)) {
				return n
			}
		}
		return n
	}
	const hour = 3_600_000
	first, again, half, later := taken(hour), taken(hour), taken(hour+hour/2), taken(10*hour)
	if first != 244 || again != 0 || half < 121 || half > 123 || later != first {
		t.Errorf("%d requests, then %d, after half an hour %d, after hours %d", first, again, half, later)
	}
}
