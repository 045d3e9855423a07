package compaction_test

import (
	"fmt"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// A13: who writes a summary and how much stays out of it are fields of the policy, of the
// file, a tenant, a session and one call: the job of a compaction by hand contains what the
// nearest of them sets.
func TestWriterByPolicy(t *testing.T) {
	file, err := policy.Default().With(codec.Raw(`{"summarize":{"provider":"openai","model":"gpt-5","keep":0.5}}`))
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := file.With(codec.Raw(`{"summarize":{"model":"gpt-5-mini"}}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := compaction.NewConfig(file, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	if c, err = c.WithTenants(map[string]policy.Policy{"beta": tenant}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		tenant, session, call string
		provider, model       string
		to                    int64 // the last turn in the summary, of 20
	}{
		{"alpha", ``, ``, "openai", "gpt-5", 10},
		{"beta", ``, ``, "openai", "gpt-5-mini", 10},
		{"beta", `{"summarize":{"provider":"anthropic","model":""}}`, ``, "anthropic", "", 10},
		{"beta", `{"summarize":{"provider":"anthropic","model":""}}`, `{"summarize":{"provider":"embedded","keep":0.2}}`, "embedded", "", 16},
	} {
		p := newPlayer(t, c)
		at := events.Address{Tenant: x.tenant, Session: "s"}
		for i := range 20 {
			turn := `{"v":1,"format":"openai","model":{"provider":"openai","name":"gpt-4o"}`
			if i == 0 && x.session != "" {
				turn += `,"policy":` + x.session
			}
			role := "user"
			if i%2 == 1 {
				role = "assistant"
			}
			turn += fmt.Sprintf(`,"messages":[{"role":%q,"content":%q}]}`, role, prose(i, 5))
			p.decide(logged{Seq: measure.Seq(i + 1), Kind: events.KindTurn, Tenant: at.Tenant, Session: at.Session, Payload: turn})
		}
		call := `{"v":1}`
		if x.call != "" {
			call = `{"v":1,"policy":` + x.call + `}`
		}
		outs, _ := p.decide(logged{Seq: 21, Kind: events.KindCompact, Tenant: at.Tenant, Session: at.Session, Payload: call})
		if len(outs) != 1 {
			t.Fatalf("%+v: %d outcomes", x, len(outs))
		}
		job, ok := outs[0].Body.(*events.Job)
		if !ok || job.Provider != x.provider || job.Model != x.model || job.To.Turn != x.to {
			t.Errorf("%+v: %+v", x, outs[0].Body)
		}
	}
}
