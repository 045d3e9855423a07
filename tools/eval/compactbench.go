package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/tools/needs"
)

// The templates of CompactBench (github.com/compactbench/compactbench, Apache-2.0, read on
// 2026-11-23) hide what must be kept among turns about other things, and check answers for
// strings. It has a model answer questions; here the history is searched itself, so that no
// model's memory or luck counts. Items about what an answer must not have are no question to a
// history: they are left out, and counted. Names and distractors are ours, and distractors are
// as long as turns of agents are: a dozen words need no compaction.

// benchTemplate is a file of CompactBench, as far as it is used.
type benchTemplate struct {
	Key        string `yaml:"key"`
	Family     string `yaml:"family"`
	Difficulty struct {
		Distractors map[string]int `yaml:"distractor_turns"`
	} `yaml:"difficulty_policy"`
	Variables []struct {
		Name      string `yaml:"name"`
		Generator string `yaml:"generator"`
	} `yaml:"variables"`
	Transcript struct {
		Turns []struct {
			Role     string `yaml:"role"`
			Template string `yaml:"template"`
		} `yaml:"turns"`
	} `yaml:"transcript"`
	Items []struct {
		Expected struct {
			Check  string   `yaml:"check"`
			Value  string   `yaml:"value"`
			Values []string `yaml:"values"`
		} `yaml:"expected"`
	} `yaml:"evaluation_items"`
}

const (
	benchSeeds  = 5 // cases of a template
	benchCycles = 3 // compactions of a case, with distractors before each
)

// readBenchTemplates reads the public templates of a checkout.
func readBenchTemplates(dir string) ([]benchTemplate, error) {
	files, err := filepath.Glob(filepath.Join(dir, "benchmarks", "public", "*", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no templates in benchmarks/public", dir)
	}
	out := make([]benchTemplate, len(files))
	for i, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var file struct {
			Template benchTemplate `yaml:"template"`
		}
		if err := yaml.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out[i] = file.Template
	}
	return out, nil
}

// evalCompactBench prints which of the strings that CompactBench looks for are in a history after
// the first and the last of some compactions that condense all they can, with a model that writes
// nothing of use; and which are in the newest messages of the same size.
func evalCompactBench(ctx context.Context, dir string, p printer) (err error) {
	if dir == "" {
		p.note("compactbench: set COMPACTBENCH to a checkout of github.com/compactbench/compactbench")
		return nil
	}
	templates, err := readBenchTemplates(dir)
	if err != nil {
		return err
	}
	ws, stop, err := writers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	tokens, err := newSizes()
	if err != nil {
		return err
	}
	left := 0
	families := map[string]*[2]benchShares{} // after the first and the last compaction
	for _, t := range templates {
		if families[t.Family] == nil {
			families[t.Family] = &[2]benchShares{}
		}
		for seed := range benchSeeds {
			c, err := newBenchCase(&t, uint64(seed))
			if err != nil {
				return fmt.Errorf("%s: %w", t.Key, err)
			}
			left += c.left
			if err := c.run(ctx, ws[len(ws)-1].summarizer, tokens, families[t.Family]); err != nil {
				return fmt.Errorf("%s: %w", t.Key, err)
			}
		}
	}
	names := slices.Sorted(maps.Keys(families))
	for i, cycle := range []int{1, benchCycles} {
		var all benchShares
		for _, name := range names {
			s := families[name][i]
			all.kept, all.cut = all.kept.Plus(s.kept), all.cut.Plus(s.cut)
			p.line(fmt.Sprintf("compactbench/%s/%d", name, cycle), s.kept.Ratio(), goal{}, fmt.Sprintf("%s; cut to the same size %s", s.kept, s.cut))
		}
		p.line(fmt.Sprintf("compactbench/%d", cycle), all.kept.Ratio(), goal{}, all.kept.String())
		p.line(fmt.Sprintf("compactbench_cut/%d", cycle), all.cut.Ratio(), goal{}, all.cut.String())
	}
	p.note("compactbench: %d templates, %d cases each; %d items need an answer of a model and are left out", len(templates), benchSeeds, left)
	return nil
}

// benchShares are what a history has, and the newest messages of the same size.
type benchShares struct{ kept, cut facts.Share }

// benchCase is a template with its values.
type benchCase struct {
	recording *recording
	compact   []int    // after these numbers of turns
	want      []string // normalized
	left      int      // items that are left out
}

var benchReference = regexp.MustCompile(`\{\{\s*([\w.]+)\s*\}\}`)

// newBenchCase fills a template. The same seed gives the same case.
func newBenchCase(t *benchTemplate, seed uint64) (*benchCase, error) {
	h := fnv.New64a()
	h.Write([]byte(t.Key))
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	values, err := benchValues(t, rng)
	if err != nil {
		return nil, err
	}
	fill := func(s string) string {
		return benchReference.ReplaceAllStringFunc(s, func(ref string) string { return values[benchReference.FindStringSubmatch(ref)[1]] })
	}
	c := &benchCase{recording: &recording{name: t.Key, format: events.OpenAI}}
	for _, i := range t.Items {
		switch i.Expected.Check {
		case "contains_normalized", "exact":
			c.want = append(c.want, normalized(fill(i.Expected.Value)))
		case "set_match":
			for _, v := range i.Expected.Values {
				c.want = append(c.want, normalized(fill(v)))
			}
		case "forbidden_absent":
			c.left++
		default:
			return nil, fmt.Errorf("unknown check %q", i.Expected.Check)
		}
	}
	distractors := 0
	for _, n := range t.Difficulty.Distractors {
		distractors = max(distractors, n)
	}
	distract := func() error {
		for i := range distractors {
			if err := c.turn([]string{"user", "assistant"}[i%2], benchDistractor(rng)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, turn := range t.Transcript.Turns {
		if turn.Role == "distractor_block" {
			err = distract()
		} else {
			err = c.turn(turn.Role, fill(turn.Template))
		}
		if err != nil {
			return nil, err
		}
	}
	for range benchCycles {
		if err := distract(); err != nil {
			return nil, err
		}
		c.compact = append(c.compact, len(c.recording.turns))
	}
	return c, nil
}

// turn adds a turn.
func (c *benchCase) turn(role, text string) error {
	n := len(c.recording.turns) + 1
	payload, err := codec.Marshal(map[string]any{
		"v": events.Version, "id": fmt.Sprintf("t%d", n), "turn": n, "format": c.recording.format,
		"model":    map[string]any{"provider": "openai", "name": "any", "context_window": 32_000, "max_output_tokens": 1_000},
		"messages": []map[string]string{{"role": role, "content": text}},
	})
	if err != nil {
		return err
	}
	return c.recording.add(payload, int64(n)*60_000)
}

// run publishes the case and compacts it.
func (c *benchCase) run(ctx context.Context, by summarize.Summarizer, tokens *sizes, out *[2]benchShares) error {
	policy := byHand()
	policy.Target = 100_000 // a tenth of the window
	config, err := compaction.NewConfig(policy, measure.DefaultWindows())
	if err != nil {
		return err
	}
	var view *render.View
	p := newPlay(c.recording, config, func(_ *play, o compaction.Outcome) error {
		if b, ok := o.Body.(*events.Compacted); ok && b.Compacted {
			view = o.View
		}
		return nil
	})
	for i, t := range c.recording.turns {
		if err := p.publish(i, t.at); err != nil {
			return err
		}
		cycle := slices.Index(c.compact, i+1)
		if cycle < 0 {
			continue
		}
		view = nil
		if err := p.compact(t.at); err != nil {
			return err
		}
		if err := p.work(ctx, by, t.at); err != nil {
			return err
		}
		if view == nil {
			return fmt.Errorf("nothing was compacted after %d turns", i+1)
		}
		if cycle > 0 && cycle < benchCycles-1 {
			continue
		}
		history, err := p.history(view)
		if err != nil {
			return err
		}
		s := &out[min(cycle, 1)]
		s.kept = s.kept.Plus(c.in(needs.Text(history)))
		s.cut = s.cut.Plus(c.in(tokens.newest(c.recording, i+1, tokens.of(history))))
	}
	return nil
}

// in counts what is wanted in a text.
func (c *benchCase) in(text string) (s facts.Share) {
	text = normalized(text)
	for _, w := range c.want {
		s.All++
		if strings.Contains(text, w) {
			s.Kept++
		}
	}
	return s
}

// normalized is a text as CompactBench compares it.
func normalized(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// Words that the values of variables are made of, and those of distractors. No word is in both.
var (
	benchNames  = strings.Fields("Adaeze Bogdan Camila Dagny Eleni Faisal Greta Hiroshi Ilse Jorge Katya Lindiwe Mateus Nadia Oskar Paloma Ravi Saskia Tomasz Ulrike Viktor Wanjiru Ximena Yannick")
	benchVerbs  = strings.Fields("rename archive shard encrypt mirror throttle vendor rewrite split freeze")
	benchThings = strings.Fields("invoices tariffs voucher ledgers waybills manifests quotas escrow tenancies annuities")
	benchManner = []string{"before the audit", "without a rehearsal", "in one batch", "by hand", "outside of office hours"}
	benchOther  = strings.Fields("weather lunch coffee train garden holiday bicycle novel concert recipe kitchen window afternoon neighbour river market lamp carpet jacket umbrella breakfast suitcase station mountain postcard piano")
)

// benchValues draws a value for each variable; no two of a case are the same.
func benchValues(t *benchTemplate, rng *rand.Rand) (map[string]string, error) {
	pick := func(words []string) string { return words[rng.IntN(len(words))] }
	draw := map[string]func() string{
		"person_name":   func() string { return pick(benchNames) },
		"org_name":      func() string { return pick(benchNames) + " & " + pick(benchNames) },
		"project_noun":  func() string { return pick(benchThings) + " " + pick([]string{"overhaul", "rollout", "cleanup"}) },
		"action_phrase": func() string { return pick(benchVerbs) + " the " + pick(benchThings) + " " + pick(benchManner) },
		"date_iso":      func() string { return fmt.Sprintf("2026-%02d-%02d", 1+rng.IntN(12), 1+rng.IntN(28)) },
		"amount_usd":    func() string { return fmt.Sprintf("$%d", 1000+rng.IntN(90_000)) },
		"product_sku":   func() string { return fmt.Sprintf("SKU-QX%d", 1000+rng.IntN(9000)) },
	}
	values, taken := map[string]string{}, map[string]bool{}
	for _, v := range t.Variables {
		next := draw[v.Generator]
		if next == nil {
			return nil, fmt.Errorf("unknown generator %q", v.Generator)
		}
		for value := next(); ; value = next() {
			if !taken[value] {
				values[v.Name], taken[value] = value, true
				break
			}
		}
	}
	return values, nil
}

// benchDistractor is a turn about something else.
func benchDistractor(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("On another matter:")
	for range 60 + rng.IntN(60) {
		b.WriteString(" " + benchOther[rng.IntN(len(benchOther))])
	}
	return b.String() + "."
}
