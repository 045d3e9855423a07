package scenarios_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/redecide"
)

// withPolicies lets the next workers follow the policies of tenants, which are JSON here.
func withPolicies(env *workertest.Env) {
	env.Policies = func(texts map[string][]byte) (*compaction.Config, map[string]error, error) {
		tenants, wrong := map[string]policy.Policy{}, map[string]error{}
		for tenant, text := range texts {
			p, err := env.Config.Policy.Set(text)
			if err = cmp.Or(err, p.Validate()); err != nil {
				wrong[tenant] = err
				continue
			}
			tenants[tenant] = p
		}
		if len(tenants) == 0 {
			return env.Config, wrong, nil
		}
		next, err := env.Config.WithTenants(tenants)
		return next, wrong, err
	}
}

// setPolicy sets the policy of acme, and waits until each worker decides under it.
func setPolicy(env *workertest.Env, text string, workers ...*workertest.Running) {
	env.T.Helper()
	want, wrong, err := env.Policies(map[string][]byte{"acme": []byte(text)})
	if text == "" {
		want, wrong, err = env.Policies(nil)
	}
	if err != nil || len(wrong) > 0 {
		env.T.Fatal(err, wrong)
	}
	if want, err = want.WithRetention(int64(env.Streams.MaxAge / time.Second)); err != nil {
		env.T.Fatal(err)
	}
	in, err := codec.Marshal(events.PolicyRequest{V: events.Version, Tenant: "acme", Policy: text})
	if err != nil {
		env.T.Fatal(err)
	}
	var out events.PoliciesResponse
	if e := env.Request(events.SubjectPolicy, string(in), &out); e != nil || out.Policy != text {
		env.T.Fatalf("set %q: %v, %+v", text, e, out)
	}
	for _, w := range workers {
		if err := retry.Every(time.Millisecond).Until(env.T.Context(), func() (bool, error) { return w.Worker.Compaction().Hash() == want.Hash(), nil }); err != nil {
			env.T.Fatal(err)
		}
	}
}

// Operators set policies of tenants while two workers decide. Both follow; every outcome of the tenant names the
// config that was in force for its event, those of others go on under the same policy, and the log decided again
// gives the same bytes, also by workers that begin from the log alone (P4, E7).
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	withPolicies(env)
	workers := []*workertest.Running{env.StartReady("a", observe.Listener{}), env.StartReady("b", observe.Listener{})}
	texts := []string{`{"threshold":0.5,"target":0.3,"info":0.4}`, `{"threshold":0.3,"target":0.2,"info":0.25}`, "", `{"target":0.7}`}
	for i, text := range texts {
		for n := 5*i + 1; n <= 5*i+5; n++ {
			for s := range 6 {
				env.PublishFor("acme", events.KindTurn, fmt.Sprint("s", s), workertest.Turn(n))
				env.PublishFor("other", events.KindTurn, fmt.Sprint("s", s), workertest.Turn(n))
			}
			if n == 5*i+3 { // events before and behind are on their way
				setPolicy(env, text, workers...)
			}
		}
	}
	env.AwaitDecided()
	replayed := env.Replay(redecide.Span{})
	if !replayed.Equal() || replayed.Configs < len(texts) || replayed.Outcomes == 0 || replayed.Older > 0 {
		t.Fatalf("%+v", replayed)
	}
	t.Logf("%d events, %d outcomes, %d configs", replayed.Events, replayed.Outcomes, replayed.Configs)
	configs := map[string]bool{}
	for _, o := range slices.Concat(slices.Collect(maps.Values(env.OutcomesBySession()))...) {
		var b events.BudgetChanged
		if codec.Unmarshal([]byte(o.Data), &b) == nil && b.Config != "" && strings.Contains(o.Subject, ".acme.") {
			configs[b.Config] = true
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(configs)) { // which policy a hash was
		var out events.PoliciesResponse
		if e := env.Request(events.SubjectPolicies, fmt.Sprintf(`{"tenant":"acme","hash":%q}`, hash), &out); e != nil || !strings.Contains(out.Policy, `"target"`) {
			t.Errorf("config %s: %v, %+v", hash, e, out)
		}
	}
	if len(configs) < 3 {
		t.Errorf("outcomes of acme name the configs %v", configs)
	}
	before := env.Stored()
	for _, w := range workers {
		w.Stop()
	}
	env.Run("c", observe.Listener{Retrying: workertest.NoRetry(t)}) // from the log alone
	if diff := gocmp.Diff(before, env.Stored()); diff != "" {
		t.Errorf("outcomes changed (-before +after):\n%s", diff)
	}
}

// A wrong policy is refused with its code before it is stored, and one that only the worker's own policy makes
// wrong is left out by a worker that starts with it.
func TestWrongPolicy(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	withPolicies(env)
	w := env.StartReady("a", observe.Listener{})
	for _, text := range []string{`{"target":0.9}`, `{"targett":0.5}`, `[]`, `{`, strings.Repeat("#", events.MaxPolicyBytes+1)} {
		in, err := codec.Marshal(events.PolicyRequest{Tenant: "acme", Policy: text})
		if err != nil {
			t.Fatal(err)
		}
		e := env.Request(events.SubjectPolicy, string(in), &events.PoliciesResponse{})
		if e == nil || e.Code != events.CodeBadPolicy && e.Code != events.CodeTooLarge || e.Hint == "" {
			t.Errorf("%.20q: %+v", text, e)
		}
	}
	var out events.PoliciesResponse
	if e := env.Request(events.SubjectPolicies, `{"tenant":"acme"}`, &out); e != nil || len(out.Revisions) > 0 {
		t.Errorf("%v, %+v", e, out)
	}
	if e := env.Request(events.SubjectPolicies, `{"tenant":"acme","hash":"0123456789abcdef"}`, &out); e == nil || e.Code != events.CodeNotFound {
		t.Errorf("a hash of nothing: %+v", e)
	}
	setPolicy(env, `{"target":0.7}`, w)
	w.Stop()
	lay := env.Policies
	env.Policies = func(texts map[string][]byte) (*compaction.Config, map[string]error, error) { // of a worker with another threshold
		next, wrong, err := lay(nil)
		for tenant := range texts {
			wrong[tenant] = errors.New("target must be below threshold")
		}
		return next, wrong, err
	}
	reported := make(chan error, 8)
	env.StartReady("b", observe.Listener{Retrying: func(e observe.Retrying) { reported <- e.Err }})
	if err := <-reported; !strings.Contains(err.Error(), "acme") {
		t.Error(err)
	}
	if e := env.Request(events.SubjectPolicies, `{"tenant":"acme"}`, &out); e != nil || out.Problem == "" || out.Policy != `{"target":0.7}` {
		t.Errorf("%v, %+v", e, out)
	}
}
