package compaction_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// worked publishes turns with a result each until the input is at or above so many tokens, and
// returns the jobs that were emitted meanwhile.
func worked(t *testing.T, a *agent, model object, atLeast int64) (jobs int) {
	t.Helper()
	for i := range 2000 {
		m := round(i)
		m[2].results[0].text = strings.Repeat("a line of words\n", 600)
		turn := object{"messages": messages(events.Anthropic, m...)}
		if i == 0 {
			turn["model"] = model
		}
		a.now += 5_000
		for _, o := range a.publish(turn) {
			if o.Kind == events.KindJob {
				jobs++
			}
		}
		if a.ledger.Budget().EstimatedInput >= atLeast {
			return jobs
		}
	}
	t.Fatal("the history does not grow")
	return 0
}

// C12: once the provider has dropped its cache, a session above its target is cleared down to it,
// before its next call writes all of it into the cache again; a session below it stays as it is.
func TestColdCacheIsCleared(t *testing.T) {
	for _, x := range []struct {
		name    string
		input   int64
		pause   int64 // in seconds
		change  func(*policy.Policy)
		due, is bool // a session.idle is due; it clears
	}{
		{"cold and above the target", 72_000, 301, nil, true, true},
		{"warm", 72_000, 299, nil, false, false},
		{"below the target", 40_000, 10_000, nil, false, false},
		{"caches do not count", 72_000, 10_000, func(p *policy.Policy) { p.Cache.Seconds = 0 }, false, false},
		{"by minutes", 72_000, 301, func(p *policy.Policy) { p.Prune.Micro.Enabled = true }, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := withoutSummaries()
			if x.change != nil {
				x.change(&p)
			}
			a := newAgent(t, configOf(t, p))
			worked(t, a, object{"provider": "anthropic", "name": "my-model", "context_window": 100_000, "max_output_tokens": 1000}, x.input)
			a.now += x.pause * 1000
			if due := a.ledger.Idle(a.now, a.config); due != x.due {
				t.Fatalf("an idle event is due: %t, want %t", due, x.due)
			}
			a.seq++
			r := compaction.NewIdle(&events.Idle{Header: events.Header{V: 1, ID: "idle"}, Since: uint64(a.ledger.LastTurnSeq())}, a.seq)
			r.Time = a.now
			outs, next := compaction.Decide(a.ledger, r, a.config)
			next.Install(a.ledger)
			if cleared := len(outs) > 0; cleared != x.is {
				t.Fatalf("%d outcomes", len(outs))
			}
			if !x.is {
				return
			}
			b := outs[0].Body.(*events.Compacted)
			if b.Reason != events.ReasonIdle || b.TokensAfter > b.TargetTokens || b.Cache == nil || !b.Cache.Cold {
				t.Errorf("%s: %d tokens for a target of %d, cache %+v", b.Reason, b.TokensAfter, b.TargetTokens, b.Cache)
			}
			if a.ledger.Idle(a.now+10_000_000, a.config) {
				t.Error("the same pause is due again")
			}
		})
	}
}

// C12: where a longer call costs more for each token, a session is compacted before its calls are
// that long.
func TestTriggerBelowDearCalls(t *testing.T) {
	for _, x := range []struct {
		model   string
		seconds int64
		trigger int64
	}{
		{"gpt-5.5", 300, 272_000},
		{"gpt-5.5", 0, 737_600},
		{"my-model", 300, 792_000},
	} {
		p := withoutSummaries()
		p.Cache.Seconds = x.seconds
		a := newAgent(t, configOf(t, p))
		a.publish(object{
			"model":    object{"provider": "openai", "name": x.model, "context_window": 1_000_000, "max_output_tokens": 10_000},
			"messages": messages(events.OpenAI, msg{role: dialect.RoleUser, text: "hello"}),
		})
		b := a.ledger.Budget()
		if b.TriggerTokens != x.trigger || b.TargetTokens >= b.TriggerTokens || b.LimitTokens != b.AvailableInput || b.AvailableInput < 900_000 {
			t.Errorf("%s, %d seconds: trigger %d, target %d, available %d, limit %d", x.model, x.seconds, b.TriggerTokens, b.TargetTokens, b.AvailableInput, b.LimitTokens)
		}
	}
}
