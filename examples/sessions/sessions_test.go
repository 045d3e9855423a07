package sessions_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/examples/sessions"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/stored"
)

// example is what a session is there to show.
type example struct {
	name   string
	window measure.Tokens // of its model; 0 is 200,000
}

// examples in the order of their files.
var examples = []example{
	{"example-anthropic-dialect", 0},
	{"example-commit-review", 0},
	{"example-estimator-profile", 0},
	{"example-fix-validator", 16_000},
	{"example-rename-flag", 16_000},
}

func (e example) file() string { return e.name + ".jsonl.gz" }

func (e example) read(t *testing.T) transcript.Session {
	t.Helper()
	all, err := transcripttest.Read(e.file())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Name != e.name || all[0].Format != events.Anthropic {
		t.Fatalf("%s: %d sessions, the first %s in %s", e.name, len(all), all[0].Name, all[0].Format)
	}
	return all[0]
}

// maxShipped bounds all files together, in bytes.
const maxShipped = 1 << 20

// The directory, and what programs embed of it, hold these files alone, small enough for
// a repository, each with one session of its own name.
func TestFiles(t *testing.T) {
	var want []string
	var bytes int64
	for _, e := range examples {
		want = append(want, e.file())
		info, err := os.Stat(e.file())
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
		e.read(t)
	}
	for _, dir := range []fs.FS{os.DirFS("."), sessions.Files} {
		got, err := fs.Glob(dir, "*.jsonl*")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("files (-want +directory):\n%s", diff)
		}
	}
	if bytes > maxShipped {
		t.Errorf("all files have %d bytes, over %d", bytes, maxShipped)
	}
}

// estimate is what a session costs without any compaction, by the profile seed.
func estimate(t *testing.T, s transcript.Session) (sum measure.Tokens) {
	t.Helper()
	rate := measure.NewRate(measure.Profiles["seed"], "anthropic")
	for _, tn := range s.Turns {
		msgs, err := s.Format.ReadAll(tn.Messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range msgs {
			for _, e := range measure.Measure(m, measure.Entry{}) {
				sum += rate.Entry(&e)
			}
		}
	}
	return sum
}

// compactions decides a session under a policy without a summarizer: a summary that is
// requested never arrives. Every compacted history must be
// valid for its provider.
func compactions(t *testing.T, s transcript.Session, p policy.Policy) (out []*events.Compacted) {
	t.Helper()
	config, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	l := compaction.NewLedger(events.Address{Tenant: events.DefaultTenant, Session: s.Name})
	texts := map[measure.Seq][]dialect.Message{}
	for i, tn := range s.Turns {
		seq := measure.Seq(i + 1)
		turn, msgs, err := stored.ReadTurn(new(compaction.Config), l, tn.Payload, seq)
		if err != nil {
			t.Fatalf("turn %d: %v", i+1, err)
		}
		texts[seq] = msgs
		outs, next := compaction.Decide(l, turn, config)
		next.Install(l)
		for _, o := range outs {
			c, ok := o.Body.(*events.Compacted)
			if !ok || o.View == nil {
				continue
			}
			out = append(out, c)
			raw, _, err := render.Render(o.View, func(s measure.Seq) ([]dialect.Message, error) { return texts[s], nil })
			if err != nil {
				t.Fatal(err)
			}
			if v := validate.Messages(s.Format, raw); len(v) > 0 {
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
	full := policy.Default()
	withoutSummaries := full
	withoutSummaries.Summarize.Enabled = false
	withoutPrune := withoutSummaries
	withoutPrune.Prune.Enabled = false
	for _, e := range examples {
		s := e.read(t)
		tokens, plain := estimate(t, s), compactions(t, s, withoutSummaries)
		t.Logf("%s: %d turns, %d tokens", s.Name, len(s.Turns), tokens)
		for _, c := range slices.Concat(plain, compactions(t, s, full), compactions(t, s, withoutPrune)) {
			t.Logf("    turn %d: %d -> %d by %v", c.Through.Turn, c.TokensBefore, c.TokensAfter, c.StagesUsed)
			for _, stage := range c.StagesUsed {
				used[stage] = used[stage] || e.window > 0
			}
		}
		leastTokens, leastCompactions := e.window, 1
		if e.window == 0 {
			leastTokens, leastCompactions = 150_000, 2
		}
		if tokens < leastTokens || len(plain) < leastCompactions {
			t.Errorf("%s: %d tokens and %d compactions, want at least %d and %d", s.Name, tokens, len(plain), leastTokens, leastCompactions)
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

type usage struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
}

func lines(t *testing.T, e example) (out []shippedLine) {
	t.Helper()
	sc := bufio.NewScanner(bytes.NewReader(text(t, e)))
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

func text(t *testing.T, e example) []byte {
	t.Helper()
	f, err := os.Open(e.file())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("%s: the gzip header holds %q and %v", e.name, z.Name, z.ModTime)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Numbers and times only grow, roles alternate, and the usage of a request is
// that of the one before and what came since, within the model's window.
func TestLines(t *testing.T) {
	for _, e := range examples {
		var cached int
		var before shippedLine
		failures, parallel := 0, 0
		for i, l := range lines(t, e) {
			if l.Seq != i+1 || l.TS <= before.TS || l.Role == before.Role {
				t.Fatalf("%s: line %d is number %d at %s by %s", e.name, i+1, l.Seq, l.TS, l.Role)
			}
			if (l.Usage != nil) != (l.Role == "assistant") {
				t.Errorf("%s: line %d: usage of a %s is %v", e.name, i+1, l.Role, l.Usage)
			}
			if u := l.Usage; u != nil {
				if u.CacheRead != cached || u.CacheWrite <= 0 || u.Output <= 0 || u.Input+u.CacheRead+u.CacheWrite > 200_000 {
					t.Errorf("%s: line %d: usage %+v after %d cached tokens", e.name, i+1, *u, cached)
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
			t.Errorf("%s: %d failed calls, %d messages with more than one", e.name, failures, parallel)
		}
	}
}

// No session names the machine that it was recorded on.
func TestNoTraceOfTheMachine(t *testing.T) {
	words := []string{"/tmp", "/work", "/root", "/home", "/Users"}
	for _, name := range []string{"HOME", "USER", "LOGNAME"} {
		words = append(words, os.Getenv(name))
	}
	if host, err := os.Hostname(); err == nil {
		words = append(words, host)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return len(strings.Trim(w, "/")) == 0 || w == "root" })
	for _, e := range examples {
		data := text(t, e)
		for _, w := range words {
			// A whole word, or the beginning of a path: internal/worker is not /work.
			re := regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(w) + `\b`)
			if at := re.FindIndex(data); at != nil {
				t.Errorf("%s: contains %q: …%s…", e.name, w, data[max(0, at[0]-60):min(len(data), at[1]+60)])
			}
		}
	}
}
