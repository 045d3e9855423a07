package quota_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/quota"
	"compactd/internal/summarize/summarizetest"
)

// fake takes some time for each answer, and states what it cost.
type fake struct {
	usage events.SummaryUsage
	takes time.Duration
	err   error
	calls int
}

func (*fake) Name() string         { return "fake/m" }
func (*fake) Limits() model.Limits { return model.Limits{} }
func (f *fake) Complete(context.Context, model.Request) (model.Reply, error) {
	f.calls++
	time.Sleep(f.takes)
	return model.Reply{Text: strings.Repeat("t", 400), Usage: f.usage}, f.err
}

// ask reports whether a call is let through.
func ask(t *testing.T, m model.Model, tenant string) bool {
	t.Helper()
	_, err := m.Complete(t.Context(), model.Request{Tenant: tenant, User: strings.Repeat("u", 4_000)})
	e, ok := errors.AsType[*model.Error](err)
	return !ok || e.Kind != model.OverQuota
}

// E7, hostile actors: a tenant has its calls and its tokens, gets them back with
// time, and takes none of another's.
func TestShares(t *testing.T) {
	const calls, tokens = "calls", "tokens"
	for _, c := range []struct {
		name   string
		limits quota.Limits
		model  fake
		// script: tenant letters ask one after the other, upper case must be refused;
		// + is one minute, * one hour.
		script string
	}{
		{"no bound", quota.Limits{}, fake{}, strings.Repeat("a", 200)},
		{calls, quota.Limits{CallsPerMinute: 3}, fake{}, "aaaAA bbbB + aaaA bb + aaaA bbbB * aaaA"},
		{"calls that fail count", quota.Limits{CallsPerMinute: 2}, fake{err: &model.Error{Kind: model.Unavailable}}, "aaA b + aaA"},
		{tokens, quota.Limits{TokensPerHour: 1_000}, fake{usage: events.SummaryUsage{Input: 300, Output: 100}}, "aaaA bbbB + A * aaaA"},
		{"more than a share at once is owed", quota.Limits{TokensPerHour: 1_000}, fake{usage: events.SummaryUsage{Input: 3_500}}, "aA * A * A * a A b"},
		{"what is not stated is estimated, 1,100", quota.Limits{TokensPerHour: 2_000}, fake{}, "aaA"},
		{"failures cost no tokens", quota.Limits{TokensPerHour: 1}, fake{err: &model.Error{Kind: model.Timeout}}, "aaaaaaaa"},
		{"the tighter one decides", quota.Limits{CallsPerMinute: 5, TokensPerHour: 1_000}, fake{usage: events.SummaryUsage{Input: 600}}, "aaA + A * aa"},
		{"no tenant has an account too", quota.Limits{CallsPerMinute: 1}, fake{}, "_-a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := quota.New(c.limits, summarizetest.InMemory()).Guard(&c.model)
				for i, r := range strings.ReplaceAll(c.script, " ", "") {
					switch r {
					case '+':
						time.Sleep(time.Minute)
					case '*':
						time.Sleep(time.Hour)
					case '_', '-':
						if got := ask(t, m, ""); got != (r == '_') {
							t.Errorf("step %d: let through: %v", i, got)
						}
					default:
						tenant := strings.ToLower(string(r))
						if got, want := ask(t, m, tenant), string(r) == tenant; got != want {
							t.Errorf("step %d of %s: tenant %s let through: %v", i, c.script, tenant, got)
						}
					}
				}
			})
		})
	}
}

// Whatever tenants do, and however slow the model is: in any stretch of time the
// model is called no more often than the burst and what the stretch gives back, and
// takes no more tokens than that and one call.
func TestNeverMore(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limits := quota.Limits{CallsPerMinute: rapid.IntRange(1, 20).Draw(r, "calls"), TokensPerHour: rapid.IntRange(1, 5_000).Draw(r, "tokens")}
		usage := int64(rapid.IntRange(1, 3_000).Draw(r, "usage"))
		pauses := rapid.SliceOfN(rapid.IntRange(0, 120), 1, 60).Draw(r, "pauses")
		var bad error
		synctest.Test(t, func(t *testing.T) {
			f := &fake{usage: events.SummaryUsage{Input: usage}, takes: time.Second}
			m := quota.New(limits, summarizetest.InMemory()).Guard(f)
			var at []time.Time
			for _, p := range pauses {
				time.Sleep(time.Duration(p) * time.Second)
				now, before := time.Now(), f.calls
				if ask(t, m, "a"); f.calls > before {
					at = append(at, now)
				}
			}
			bad = tooMany(at, limits, usage)
		})
		if bad != nil {
			r.Fatal(bad)
		}
	})
}

// tooMany finds a stretch with too many calls.
func tooMany(at []time.Time, l quota.Limits, usage int64) error {
	for i := range at {
		for k := i; k < len(at); k++ {
			n, took := k-i+1, at[k].Sub(at[i])
			if most := float64(l.CallsPerMinute)*(1+took.Minutes()) + 1e-6; float64(n) > most {
				return fmt.Errorf("%d calls in %s", n, took)
			}
			if most := float64(l.TokensPerHour)*(1+took.Hours()) + 1e-6; float64(int64(n-1)*usage) > most {
				return fmt.Errorf("%d calls of %d tokens in %s", n, usage, took)
			}
		}
	}
	return nil
}

// A tenant without a call left is refused at once, and the model does not receive it.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Minute}
		m := quota.New(quota.Limits{CallsPerMinute: 1, TokensPerHour: 1}, summarizetest.InMemory()).Guard(f)
		ask(t, m, "a")
		began := time.Now()
		_, err := m.Complete(t.Context(), model.Request{Tenant: "a"})
		if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != model.OverQuota || time.Since(began) != 0 || f.calls != 1 {
			t.Errorf("%v after %s, model called %d times", err, time.Since(began), f.calls)
		}
		if m.Name() != "fake/m" {
			t.Errorf("name %q", m.Name())
		}
	})
}
