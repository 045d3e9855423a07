package compaction_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/ops/transcript"
)

var allDialects = flag.Bool("dialects", false, "translate all real sessions into every dialect, not three")

// moreSessions are those of the directory that COMPACTD_MORE_SESSIONS names, of any format that
// `worker replay` reads.
func moreSessions(t *testing.T) (out []transcript.Session) {
	dir := os.Getenv("COMPACTD_MORE_SESSIONS")
	if dir == "" {
		return nil
	}
	source, err := transcript.Open(transcript.Auto, dir)
	if err != nil {
		t.Fatal(err)
	}
	for s := range source.Sessions(func(err error) { t.Log(err) }) {
		out = append(out, s)
	}
	t.Logf("%d sessions of COMPACTD_MORE_SESSIONS", len(out))
	return out
}

// Real sessions in every dialect, at three windows, with summaries: each published history
// is valid for its provider. `make test-dialects` takes all sessions.
func TestDialects(t *testing.T) {
	all := realSessions(t)
	if !*allDialects {
		all = []transcript.Session{all[0], all[len(all)/2], all[len(all)-1]}
	}
	all = append(all, moreSessions(t)...)
	sessions, compactions, invalid := 0, 0, 0
	for _, f := range events.Formats() {
		for _, s := range all {
			in, err := s.As(f)
			if err != nil {
				t.Fatal(err)
			}
			sessions++
			for i, window := range []int64{8_000, 20_000, 200_000} {
				n, bad := playDialect(t, in, window, []string{"openai", "mistral", "anthropic"}[i])
				compactions += n
				invalid += len(bad)
				for _, v := range bad {
					t.Errorf("%s of %s at %d: %s", f, s.Name, window, v)
				}
			}
		}
	}
	if compactions == 0 {
		t.Error("nothing was compacted")
	}
	fmt.Printf("dialects %d sessions %d compactions %d invalid=%d\n", len(events.Formats()), sessions, compactions, invalid)
}

// playDialect publishes a session to an agent of that window and provider, which answers each other job with
// a summary, and checks what comes back.
func playDialect(t *testing.T, s transcript.Session, window int64, provider string) (compactions int, bad []string) {
	t.Helper()
	a := newAgent(t, defaultConfig(t))
	check := func(outs []compaction.Outcome) {
		for _, o := range outs {
			switch body := o.Body.(type) {
			case *events.Rejected:
				bad = append(bad, fmt.Sprintf("rejected: %s %s", body.Code, body.Message))
			case *events.Compacted:
				if o.View == nil {
					continue
				}
				compactions++
				raw, err := a.render(o.View)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range validate.Check(validate.Call{Format: string(s.Format), Demands: o.View.Demands, Messages: raw}) {
					bad = append(bad, fmt.Sprintf("through turn %d: %s", body.Through.Turn, v))
				}
			}
		}
	}
	for i, turn := range s.Turns {
		in := object{"turn": i + 1, "messages": turn.Messages, "generation": a.ledger.Generation()}
		if i == 0 {
			in["format"], in["model"] = s.Format, object{"provider": provider, "name": "m", "context_window": window, "max_output_tokens": window / 8}
		}
		outs := a.publish(in)
		check(outs)
		for _, o := range outs {
			if job, ok := o.Body.(*events.Job); ok && i%2 == 0 {
				outs, next := compaction.Decide(a.ledger, a.result(summary(job.ID, min(2000, job.MaxUnits))), a.config)
				next.Install(a.ledger)
				check(outs)
			}
		}
	}
	return compactions, bad
}
