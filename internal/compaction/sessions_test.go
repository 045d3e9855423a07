package compaction_test

import (
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/stored"
	"compactd/internal/testkit/realsessions"
)

// realSessions reads the transcripts that COMPACTD_SESSIONS names.
func realSessions(t *testing.T) []transcript.Session {
	t.Helper()
	return sessionsBy(t, transcripttest.Read)
}

func sessionsBy(t *testing.T, read func(path string) ([]transcript.Session, error)) []transcript.Session {
	t.Helper()
	s, err := read(realsessions.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every compaction of every real session gives a history that is valid for its
// provider, costs no more than planned, and leaves a ledger whose budget is that of
// the outcome. The agent's own turns after it keep it valid.
func TestRealSessions(t *testing.T) {
	cfg := defaultConfig(t)
	for _, s := range realSessions(t) {
		t.Run(s.Name, func(t *testing.T) {
			l := compaction.NewLedger(events.Address{Tenant: "default", Session: s.Name})
			texts := map[measure.Seq][]dialect.Message{}
			var history []codec.Raw // what the agent would send
			compactions := 0
			for i, tn := range s.Turns {
				seq := measure.Seq(i + 1)
				sameMeasured(t, cfg, l, tn.Payload, seq)
				turn, msgs, err := stored.ReadTurn(new(compaction.Config), l, tn.Payload, seq)
				if err != nil {
					t.Fatalf("turn %d: %v", i+1, err)
				}
				texts[seq] = msgs
				history = append(history, tn.Messages...)
				outs, next := compaction.Decide(l, turn, cfg)
				next.Install(l)
				for _, o := range outs {
					c, ok := o.Body.(*events.Compacted)
					if !ok {
						continue
					}
					if got := l.Budget(); got != c.Budget {
						t.Errorf("turn %d: ledger has %+v, outcome %+v", i+1, got, c.Budget)
					}
					if o.View == nil {
						t.Logf("turn %d: %s at %d of %d", i+1, c.Code, c.TokensBefore, c.AvailableInput)
						continue
					}
					compactions++
					raw, _, err := render.Render(o.View, func(s measure.Seq) ([]dialect.Message, error) { return texts[s], nil })
					if err != nil {
						t.Fatal(err)
					}
					if v := validate.Messages(s.Format, raw); len(v) > 0 {
						t.Fatalf("turn %d: %v", i+1, v)
					}
					t.Logf("turn %d: %v %d -> %d, %d messages", i+1, c.StagesUsed, c.TokensBefore, c.TokensAfter, len(raw))
					history = raw
				}
			}
			if s.Format == events.Anthropic && compactions == 0 {
				t.Error("never compacted")
			}
			if compactions > 0 {
				for _, v := range validate.Messages(s.Format, history) {
					t.Logf("at the end the agent's own history: %v", v)
				}
			}
		})
	}
}

func defaultConfig(t testing.TB) *compaction.Config {
	t.Helper()
	return configOf(t, policy.Default())
}

func configOf(t testing.TB, p policy.Policy) *compaction.Config {
	t.Helper()
	c, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
