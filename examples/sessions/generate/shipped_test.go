package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/transcript"
)

// folder is where the sessions are shipped, or those to look at instead.
func folder() string {
	if dir := os.Getenv("COMPACTD_EXAMPLES"); dir != "" {
		return dir
	}
	return ".."
}

func file(s scenario) string { return filepath.Join(folder(), s.name+".jsonl.gz") }

// maxShipped bounds all files together, in bytes.
const maxShipped = 1 << 20

// What is shipped is what the scenarios make: no file more or less, all small
// enough for a repository, and each with one session of its own name.
func TestFiles(t *testing.T) {
	var want []string
	var bytes int64
	for _, s := range scenarios {
		want = append(want, file(s))
		info, err := os.Stat(file(s))
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
		sessions, err := transcript.Read(file(s))
		if err != nil {
			t.Fatal(err)
		}
		if len(sessions) != 1 || sessions[0].Name != s.name || sessions[0].Format != events.Anthropic {
			t.Errorf("%s: holds %d sessions, the first %s in %s", s.name, len(sessions), sessions[0].Name, sessions[0].Format)
		}
	}
	got, err := filepath.Glob(filepath.Join(folder(), "*.jsonl*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-scenarios +folder):\n%s", diff)
	}
	if bytes > maxShipped {
		t.Errorf("all files have %d bytes, over %d", bytes, maxShipped)
	}
}

// estimate is what a session costs without any compaction, by the profile seed.
func estimate(t *testing.T, s transcript.Session) (sum compaction.Tokens) {
	t.Helper()
	rate := compaction.NewRate(compaction.Profiles["seed"], "anthropic")
	for _, tn := range s.Turns {
		msgs, err := s.Format.ReadAll(tn.Messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range msgs {
			for _, e := range compaction.Measure(m, compaction.Entry{}) {
				sum += rate.Entry(&e)
			}
		}
	}
	return sum
}

// compactions decides a session under a policy, with no summarizer beside it:
// summaries are off, or asked for and never made. Every compacted history must be
// valid for its provider.
func compactions(t *testing.T, s transcript.Session, p compaction.Policy) (out []*events.Compacted) {
	t.Helper()
	config, err := compaction.NewConfig(p, compaction.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	l := compaction.NewLedger(events.Address{Tenant: events.DefaultTenant, Session: s.Name})
	texts := map[compaction.Seq][]events.Message{}
	for i, tn := range s.Turns {
		seq := compaction.Seq(i + 1)
		turn, msgs, err := compaction.ReadTurn(l, tn.Payload, seq)
		if err != nil {
			t.Fatalf("turn %d: %v", i+1, err)
		}
		texts[seq] = msgs
		outs := compaction.Decide(l, turn, config)
		compaction.Apply(l, turn, outs, config)
		for _, o := range outs {
			c, ok := o.Body.(*events.Compacted)
			if !ok || o.View == nil {
				continue
			}
			out = append(out, c)
			raw, err := compaction.Render(o.View, func(s compaction.Seq) ([]events.Message, error) { return texts[s], nil })
			if err != nil {
				t.Fatal(err)
			}
			if v := events.Validate(s.Format, raw); len(v) > 0 {
				t.Errorf("%s, turn %d: the compacted history is not valid: %v", s.Name, i+1, v)
			}
		}
	}
	return out
}

// The examples show what they are there to show: small ones that outgrow a small
// window, long ones that cross the trigger of a large one more than once, and
// over the small ones all stages at work: deduplicate where prune is off, and
// truncate where summaries are.
func TestSizes(t *testing.T) {
	used := map[events.Stage]bool{}
	full := compaction.DefaultPolicy()
	withoutSummaries := full
	withoutSummaries.Summarize.Enabled = false
	withoutPrune := withoutSummaries
	withoutPrune.Prune.Enabled = false
	for _, s := range scenarios {
		sessions, err := transcript.Read(file(s))
		if err != nil {
			t.Fatal(err)
		}
		tokens, told := estimate(t, sessions[0]), compactions(t, sessions[0], withoutSummaries)
		t.Logf("%s: %d turns, %d tokens", s.name, len(sessions[0].Turns), tokens)
		for _, c := range slices.Concat(told, compactions(t, sessions[0], full), compactions(t, sessions[0], withoutPrune)) {
			t.Logf("    turn %d: %d -> %d by %v", c.Through.Turn, c.TokensBefore, c.TokensAfter, c.StagesUsed)
			for _, stage := range c.StagesUsed {
				used[stage] = used[stage] || s.window > 0
			}
		}
		leastTokens, leastTold := compaction.Tokens(s.window), 1
		if s.window == 0 {
			leastTokens, leastTold = 150_000, 2
		}
		if tokens < leastTokens || len(told) < leastTold {
			t.Errorf("%s: %d tokens and %d compactions, want at least %d and %d", s.name, tokens, len(told), leastTokens, leastTold)
		}
	}
	for _, stage := range []events.Stage{events.StagePrune, events.StageDeduplicate, events.StageTruncate} {
		if !used[stage] {
			t.Errorf("no small session is compacted by %s", stage)
		}
	}
}

// shippedLine is a line as it is in the file.
type shippedLine struct {
	Seq     int              `json:"seq"`
	TS      string           `json:"ts"`
	Role    string           `json:"role"`
	Content []map[string]any `json:"content"`
	Usage   *usage           `json:"usage"`
}

func lines(t *testing.T, s scenario) (out []shippedLine) {
	t.Helper()
	sc := bufio.NewScanner(bytes.NewReader(text(t, s)))
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var l shippedLine
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

func text(t *testing.T, s scenario) []byte {
	t.Helper()
	f, err := os.Open(file(s))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("%s: the gzip header holds %q and %v", s.name, z.Name, z.ModTime)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Numbers and times only grow, roles alternate, and the usage of a request is
// that of the one before with what was said since, within the model's window.
func TestLines(t *testing.T) {
	for _, s := range scenarios {
		var cached int
		var before shippedLine
		failures, parallel := 0, 0
		for i, l := range lines(t, s) {
			if l.Seq != i+1 || l.TS <= before.TS || l.Role == before.Role {
				t.Fatalf("%s: line %d is number %d at %s by %s", s.name, i+1, l.Seq, l.TS, l.Role)
			}
			if (l.Usage != nil) != (l.Role == "assistant") {
				t.Errorf("%s: line %d: usage of a %s is %v", s.name, i+1, l.Role, l.Usage)
			}
			if u := l.Usage; u != nil {
				if u.CacheRead != cached || u.CacheWrite <= 0 || u.Output <= 0 || u.Input+u.CacheRead+u.CacheWrite > 200_000 {
					t.Errorf("%s: line %d: usage %+v after %d cached tokens", s.name, i+1, *u, cached)
				}
				cached = u.CacheRead + u.CacheWrite
			}
			calls := 0
			for _, b := range l.Content {
				if b["is_error"] == true {
					failures++
				}
				if b["type"] == "tool_use" {
					calls++
				}
			}
			if calls > 1 {
				parallel++
			}
			before = l
		}
		if failures == 0 || parallel == 0 {
			t.Errorf("%s: %d failed calls, %d messages with more than one", s.name, failures, parallel)
		}
	}
}

// Nothing in a session tells on which machine it was made.
func TestNoTraceOfTheMachine(t *testing.T) {
	words := []string{"/tmp", "/work", "/root", "/home", "/Users"}
	for _, name := range []string{"HOME", "USER", "LOGNAME"} {
		words = append(words, os.Getenv(name))
	}
	if host, err := os.Hostname(); err == nil {
		words = append(words, host)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return len(strings.Trim(w, "/")) == 0 || w == "root" })
	for _, s := range scenarios {
		data := text(t, s)
		for _, w := range words {
			// A whole word, or the beginning of a path: internal/worker is not /work.
			re := regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(w) + `\b`)
			if at := re.FindIndex(data); at != nil {
				t.Errorf("%s: says %q: …%s…", s.name, w, data[max(0, at[0]-60):min(len(data), at[1]+60)])
			}
		}
	}
}

// script plays a scenario without a repository: calls end as they should and
// answer nothing.
type script struct{}

func (script) do(c call) (string, bool) { return "", c.fails }

// The shipped files are up to date with the scripts, as far as can be told
// without carrying them out: everything but the answers is the same.
func TestShippedFollowsTheScripts(t *testing.T) {
	for _, s := range scenarios {
		played, err := perform(s, script{})
		if err != nil {
			t.Fatal(err)
		}
		var want, got []shippedLine
		for _, l := range played {
			data, err := marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var w shippedLine
			if err := json.Unmarshal(data, &w); err != nil {
				t.Fatal(err)
			}
			want = append(want, withoutAnswers(w))
		}
		for _, l := range lines(t, s) {
			got = append(got, withoutAnswers(l))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not what its script says; run the generator again (-script +file):\n%.2000s", s.name, diff)
		}
	}
}

func withoutAnswers(l shippedLine) shippedLine {
	for _, b := range l.Content {
		delete(b, "content")
	}
	l.Usage = nil
	return l
}
