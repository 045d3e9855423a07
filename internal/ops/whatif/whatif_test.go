package whatif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/facts"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/stored"
)

func preset(t *testing.T, name string) Policy {
	t.Helper()
	p, ok := policy.Preset(name)
	if !ok {
		t.Fatalf("there is no preset %s", name)
	}
	c, err := compaction.NewConfig(p, measure.CustomOf(p.Profile).Windows())
	if err != nil {
		t.Fatal(err)
	}
	return Policy{Name: name, Config: c}
}

func examples(t *testing.T, glob string) (out []*Session) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "sessions", glob))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files %s: %v", len(files), glob, err)
	}
	for _, f := range files {
		all, err := transcripttest.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			out = append(out, FromTranscript(s))
		}
	}
	return out
}

// hash is that of a config: a new field of the policy changes it, and nothing else
// in the table.
var hash = regexp.MustCompile(`[0-9a-f]{16}`)

// E6: the table of policies on the examples stays as it is.
func TestExamples(t *testing.T) {
	datadriven.RunTest(t, "testdata/examples.txt", func(t *testing.T, d *datadriven.TestData) string {
		r := play(t, d)
		if r.Invalid() != 0 {
			t.Errorf("%d invalid histories", r.Invalid())
		}
		var text strings.Builder
		if err := r.Write(&text); err != nil {
			t.Fatal(err)
		}
		return hash.ReplaceAllString(text.String(), strings.Repeat("-", 16))
	})
}

// play reads sessions, policies and delay off a line of the script.
func play(t *testing.T, d *datadriven.TestData) *Report {
	t.Helper()
	var glob, delay string
	var policies []Policy
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "sessions":
			glob = a.Vals[0]
		case "delay":
			delay = a.Vals[0]
		case "policies":
			for _, n := range a.Vals {
				policies = append(policies, preset(t, n))
			}
		}
	}
	took, err := time.ParseDuration(delay)
	if err != nil {
		t.Fatal(err)
	}
	return report(t, examples(t, glob), policies, took)
}

func report(t *testing.T, sessions []*Session, policies []Policy, took time.Duration) *Report {
	t.Helper()
	r := NewReport(policies, Options{Delay: took})
	for _, s := range sessions {
		if err := r.Add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// The same sessions and policies give the same bytes.
func TestAgain(t *testing.T) {
	sessions := examples(t, "example-rename-flag*")
	var first []byte
	for range 2 {
		data, err := codec.Marshal(report(t, sessions, []Policy{preset(t, "neurolink"), preset(t, "default")}, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, data) {
			t.Fatalf("another run differs: %s", cmp.Diff(string(first), string(data)))
		}
		first = data
	}
}

// golden reads the log that is kept for the rules in force, with what was published.
func golden(t *testing.T) (sessions []*Session, published map[measure.Seq][]string, c *compaction.Config) {
	t.Helper()
	dir := filepath.Join("..", "..", "compaction", "testdata", "golden", fmt.Sprintf("rules-%d", compaction.RulesVersion))
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err = stored.ReadConfig(bytes.TrimSpace(text)); err != nil {
		t.Fatal(err)
	}
	known := map[events.Address]*Session{}
	for _, e := range lines[goldenEvent](t, dir, "log.jsonl") {
		a := events.Address{Tenant: e.Tenant, Session: e.Session}
		if known[a] == nil {
			known[a] = &Session{Address: a, Decided: true}
			sessions = append(sessions, known[a])
		}
		known[a].Events = append(known[a].Events, Event{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Data: []byte(e.Payload), Config: c})
	}
	published = map[measure.Seq][]string{}
	for _, o := range lines[goldenOutcome](t, dir, "outcomes.jsonl") {
		published[o.Seq] = append(published[o.Seq], string(o.Kind)+" "+string(o.Body))
	}
	return sessions, published, c
}

type goldenEvent struct {
	Seq     measure.Seq `json:"seq"`
	Time    int64       `json:"time"`
	Kind    events.Kind `json:"kind"`
	Tenant  string      `json:"tenant"`
	Session string      `json:"session"`
	Payload string      `json:"payload"`
}

type goldenOutcome struct {
	Seq  measure.Seq `json:"seq"`
	Kind events.Kind `json:"kind"`
	Body codec.Raw   `json:"body"`
}

func lines[T any](t *testing.T, dir, name string) (out []T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var v T
		if err := codec.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// E6: under the recorded config a recorded log gives the recorded outcomes, byte
// for byte, also where the config is named as a policy; another policy gives
// others, with histories as valid.
func TestRecordedConfig(t *testing.T) {
	sessions, want, c := golden(t)
	for _, policy := range []Policy{{Name: Recorded}, {Name: "the same", Config: c}} {
		got := map[measure.Seq][]string{}
		for _, s := range sessions {
			w := newSimulation(s, policy.Config, time.Minute.Milliseconds())
			w.emitted = func(e *Event, outs []compaction.Outcome) {
				for _, o := range outs {
					body, err := codec.Marshal(o.Body)
					if err != nil {
						t.Fatal(err)
					}
					got[e.Seq] = append(got[e.Seq], string(o.Kind)+" "+string(body))
				}
			}
			f, err := w.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.Diverged != 0 {
				t.Errorf("%s: %s differs", policy.Name, s.Address)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-recorded +decided):\n%s", policy.Name, diff)
		}
	}
	r := report(t, sessions, []Policy{{Name: Recorded}, preset(t, "claude")}, time.Minute)
	if then, other := r.Policies[0], r.Policies[1]; then.Diverged != 0 || other.Diverged == 0 || r.Invalid() != 0 || then.Calls != other.Calls {
		t.Errorf("recorded %+v\nother %+v", then.Figures, other.Figures)
	}
}

// Until a policy differs its events are as they were recorded; from there on what
// belongs to the recorded history alone is left out.
func TestAdapt(t *testing.T) {
	sessions, _, c := golden(t)
	w := newSimulation(sessions[0], c, 0)
	w.awaits["requested"] = true
	turn := func(generation int) string {
		return fmt.Sprintf(`{"turn":9,"generation":%d,"usage":{"input_tokens":7},"messages":[]}`, generation)
	}
	for _, x := range []struct {
		kind events.Kind
		data string
		want string // after the first difference, in generation 2
	}{
		{events.KindTurn, turn(2), turn(2)},
		{events.KindTurn, turn(3), `{"messages":[],"turn":9}`},
		{events.KindTurn, `{"turn":`, `{"turn":`},
		{events.KindSummary, `{"job":"requested","text":"t"}`, `{"job":"requested","text":"t"}`},
		{events.KindSummary, `{"job":"other","text":"t"}`, ""},
		{events.KindSummary, `{`, ""},
		{events.KindOverflow, `{}`, ""},
		{events.KindRewind, `{"generation":1}`, ""},
		{events.KindIdle, `{}`, ""},
		{events.KindCompact, `{}`, `{}`},
		{events.KindEnd, `{}`, `{}`},
	} {
		e := &Event{Kind: x.kind, Data: []byte(x.data)}
		for _, same := range []bool{true, false} {
			want := x.data
			if w.same, w.shared = same, 2; !same {
				want = x.want
			}
			got := ""
			if out, err := w.adapt(e); err != nil {
				t.Errorf("%s %s: %v", x.kind, x.data, err)
			} else if out != nil {
				got = string(out.Data)
			}
			if got != want {
				t.Errorf("%s %s, same %t: %q, not %q", x.kind, x.data, same, got, want)
			}
		}
	}
}

// A turn that is sent twice, comes too early or takes others back is one call, of
// what is then in view.
func TestCalls(t *testing.T) {
	s := &Session{Address: events.Address{Tenant: "default", Session: "s"}}
	text := strings.Repeat("word ", 1000)
	publish := func(number, from int) {
		id := len(s.Events) + 1
		replaces := ""
		if from > 0 {
			replaces = fmt.Sprintf(`,"replaces_from":%d`, from)
		}
		s.Events = append(s.Events, Event{Seq: measure.Seq(id), Time: int64(id), Kind: events.KindTurn, Data: fmt.Appendf(nil,
			`{"turn":%d,"format":"openai","messages":[{"role":"user","content":"%d %s"},{"role":"assistant","content":"yes"}]%s}`, number, number, text, replaces)})
	}
	publish(1, 0)
	publish(1, 0) // again
	publish(3, 0) // too early
	publish(2, 0) // and with it 3
	publish(2, 2) // takes 2 and 3 back
	w := newSimulation(s, preset(t, "default").Config, 0)
	f, err := w.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one := w.ruler.of(w.own.texts[1])
	fixed := w.ruler.rate.PerConversation
	if want := 6*one + 3*fixed; f.Calls != 3 || f.Sent != want || f.Peak != 2*one+fixed || // nothing was published of the retracted call
		f.Rejected != 1 {
		t.Errorf("%d calls with %d tokens, the most %d, %d rejected; want 3 with %d, the most %d, and the gap", f.Calls, f.Sent, f.Peak, f.Rejected, want, 2*one+fixed)
	}
	if len(w.turns) != 2 {
		t.Errorf("%d turns are remembered", len(w.turns))
	}
}

// counted counts how often a context is looked at.
type counted struct {
	context.Context
	looked int
}

func (c *counted) Err() error { c.looked++; return c.Context.Err() }

// The context is looked at for each fact: a session may have many, and each is looked for in a whole history.
func TestFactsYield(t *testing.T) {
	all := &facts.Facts{Users: []facts.Probe{{"a"}, {"b"}}, Paths: []facts.Probe{{"/c"}}}
	ctx := &counted{Context: t.Context()}
	f := newFigures()
	if err := f.kept(ctx, all, nil); err != nil || ctx.looked != 3 || f.Facts["user_messages"] != (facts.Share{All: 2}) {
		t.Errorf("looked at %d times, %v, %v", ctx.looked, err, f.Facts)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.kept(ended, all, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}
