package compaction_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/stored"
)

// Every preset is a policy that validates, and none is another (A1, A11).
func TestPresets(t *testing.T) {
	want := []string{"claude", "default", "neurolink"}
	if d := gocmp.Diff(want, policy.PresetNames()); d != "" {
		t.Error(d)
	}
	hashes := map[string]string{}
	for _, name := range want {
		p, ok := policy.Preset(name)
		if !ok {
			t.Fatalf("%s is no preset", name)
		}
		c := configOf(t, p)
		if other, ok := hashes[c.Hash()]; ok {
			t.Errorf("%s is %s", name, other)
		}
		hashes[c.Hash()] = name
	}
	if _, ok := policy.Preset("cloud"); ok {
		t.Error("cloud is a preset")
	}
}

// A tenant has its own policy, and a session's goes before it (A13): its fields
// are set over its tenant's, not over the worker's.
func TestTenants(t *testing.T) {
	own, err := policy.Default().With(codec.Raw(`{"threshold":0.5,"target":0.3,"info":0.4}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := configOf(t, policy.Default()).WithTenants(map[string]policy.Policy{"acme": own})
	if err != nil {
		t.Fatal(err)
	}
	session := func(tenant, policy string) *compaction.Ledger {
		l := compaction.NewLedger(events.Address{Tenant: tenant, Session: "s"})
		data := `{"turn":1,"model":{"provider":"openai","context_window":10000,"max_output_tokens":2000},"messages":[{"role":"user","content":"hi"}]`
		turn, _, err := stored.ReadTurn(new(compaction.Config), l, []byte(data+`,"policy":`+policy+`}`), 1)
		if err != nil {
			t.Fatal(err)
		}
		outs, next := compaction.Decide(l, turn, c)
		for _, o := range outs {
			if r, ok := o.Body.(*events.Rejected); ok {
				t.Fatalf("%s %s: %s", tenant, policy, r.Message)
			}
		}
		next.Install(l)
		return l
	}
	for _, x := range []struct {
		tenant, policy  string
		trigger, target measure.PPM
	}{
		{"default", `{}`, 800_000, 600_000},
		{"acme", `{}`, 500_000, 300_000},
		{"acme", `{"threshold":0.45}`, 450_000, 300_000}, // the worker's target would not fit
		{"default", `{"threshold":0.9}`, 900_000, 600_000},
	} {
		if p := session(x.tenant, x.policy).Policy(); p.Threshold != x.trigger || p.Target != x.target {
			t.Errorf("%s %s: trigger %d, target %d; want %d, %d", x.tenant, x.policy, p.Threshold, p.Target, x.trigger, x.target)
		}
	}
}

// The policy of a tenant is in the name of the config, comes back with its text,
// and is refused with the tenant's name when it does not validate.
func TestTenantsAreInTheHash(t *testing.T) {
	plain := configOf(t, policy.Default())
	own := policy.Default()
	own.ThresholdCap = 500_000
	with, err := plain.WithTenants(map[string]policy.Policy{"acme": own, "beta": policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	if with.Hash() == plain.Hash() {
		t.Error("the hash leaves tenants out")
	}
	again, err := stored.ReadConfig(with.Text())
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != with.Hash() || again.For("acme").ThresholdCap != 500_000 || again.For("other").ThresholdCap != 1_000_000 {
		t.Errorf("read back: %s with caps %d and %d", again.Hash(), again.For("acme").ThresholdCap, again.For("other").ThresholdCap)
	}
	own.Target = own.Threshold
	_, err = plain.WithTenants(map[string]policy.Policy{"acme": own})
	if err == nil || !strings.Contains(err.Error(), "tenant acme: target must be below threshold") {
		t.Errorf("got %v", err)
	}
}
