//go:build faults

package scenarios_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

const (
	outageSessions = 12
	outageTurns    = 40 // of 1,000 tokens, in a window of 16,000
)

// outage counts what happened to sessions while a model failed in one way.
type outage struct {
	mu        sync.Mutex // guards the fields below
	compacted map[string]int
	summaries int
	truncated int
	over      int // compactions after which the next call would not fit
}

func (o *outage) see(c observe.Compacted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := c.Body; b.Compacted {
		o.compacted[c.Address.Session]++
		for _, s := range b.StagesUsed {
			switch s {
			case events.StageSummarize:
				o.summaries++
			case events.StageTruncate:
				o.truncated++
			}
		}
	}
	if !c.Body.Budget.WithinBudget {
		o.over++
	}
}

// endless are the modes in which a call takes longer than the test.
var endless = []summarizetest.Mode{summarizetest.Slow, summarizetest.Hang, summarizetest.Drip}

// Whatever a model does, every session that outgrows its window is compacted and fits at its
// end (P8). Where the model fails at once, the embedded summarizer makes the summaries.
func TestFaultOutages(t *testing.T) {
	t.Parallel()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "model\tsessions\tcompacted\tfit at the end\tcompactions\twith a summary\ttruncated\tstill over\tmodel calls")
	modes, blocked, over, compactions := 0, 0, 0, 0
	for _, mode := range summarizetest.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			s := summarizetest.Start(t, nil)
			s.Script(mode)
			c := s.Config(summarizetest.OpenAI)
			c.Attempts = 1 // retries would only make the test longer
			m, err := provider.New(c)
			if err != nil {
				t.Fatal(err)
			}
			o := &outage{compacted: map[string]int{}}
			env := workertest.New(t, t.TempDir())
			env.Config = workertest.NewConfig(t, policy.Default())
			env.Summarizer = llm.New(m)
			stop := env.Run("a", observe.Listener{Compacted: o.see})
			for n := 1; n <= outageTurns; n++ {
				for k := range outageSessions {
					env.Publish(events.KindTurn, fmt.Sprintf("s%d", k), workertest.Turn(n))
				}
				env.AwaitDecided()
				if !slices.Contains(endless, mode) {
					jobsDone(env)
					env.AwaitDecided()
				}
			}
			fit := fitting(env)
			stop()
			all := 0
			for _, n := range o.compacted {
				all += n
			}
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n",
				mode, outageSessions, len(o.compacted), fit, all, o.summaries, o.truncated, o.over, s.Calls())
			modes, blocked = modes+1, blocked+outageSessions-min(fit, len(o.compacted))
			over, compactions = over+o.over, compactions+all
			if len(o.compacted) < outageSessions || fit < outageSessions || o.over > 0 {
				t.Errorf("of %d sessions %d were compacted and %d fit; %d compactions did not get under the limit", outageSessions, len(o.compacted), fit, o.over)
			}
			if o.summaries == 0 && !slices.Contains(endless, mode) {
				t.Error("no summary was made")
			}
			if s.Calls() == 0 {
				t.Error("the model was never called")
			}
		})
	}
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
	figures.Print(t, "P8", "modes", modes, "sessions", modes*outageSessions, "compactions", compactions, "blocked", blocked, "over", over)
}

// fitting counts the sessions whose next call fits.
func fitting(env *workertest.Env) (n int) {
	for k := range outageSessions {
		var s events.StatsResponse
		if e := env.Request(events.SubjectStats, fmt.Sprintf(`{"session":"s%d"}`, k), &s); e != nil {
			env.T.Fatalf("stats: %s", e.Message)
		}
		if s.Known && s.Budget.WithinBudget {
			n++
		}
	}
	return n
}
