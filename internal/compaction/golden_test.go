package compaction_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/stored"
	"compactd/internal/testkit/figures"
)

// go test ./internal/compaction -run 'TestGolden$' -record writes the golden log
// of this version's rules. One that is there is kept: a change of what is
// decided raises RulesVersion, and records beside it. Only a version that was
// never released may be recorded again, after its directory was removed by hand.
var record = flag.Bool("record", false, "write the golden log of the current rules, if there is none")

// golden is a log that was recorded under the rules of one version, with what was
// emitted about it, and the text of the config that decided so.
type golden struct {
	rules   int
	config  []byte
	log     []logged
	emitted []emitted
}

// The files of a golden log.
const (
	goldenConfig   = "config.json"
	goldenLog      = "log.jsonl"
	goldenOutcomes = "outcomes.jsonl"
)

func goldenDir(rules int) string {
	return filepath.Join("testdata", "golden", fmt.Sprintf("rules-%d", rules))
}

// E6: the golden log of the current rules is decided today as it was
// when it was recorded, byte for byte, whichever way maps are ordered: also in
// another process.
func TestGolden(t *testing.T) {
	if *record {
		recordGolden(t)
	}
	g := currentGolden(t)
	p := newPlayer(t, g.parsed(t))
	var got []emitted
	for _, e := range g.log {
		_, lines := p.decide(e)
		got = append(got, lines...)
	}
	sameOutcomes(t, g.emitted, got)
	g.covers(t)
	different := 0
	if t.Failed() {
		different = 1
	}
	figures.Print(t, "P10", "events", len(g.log), "outcomes", len(g.emitted), "different", different)
}

func TestGoldenInAnotherProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestGolden$", "-test.count=1", "-test.v")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestGolden ")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Outcomes are applied as they stand: under the config that decided them the ledgers are those of
// a worker that decided, and under another config, as of other rules, every history can be rendered.
func TestGoldenApplied(t *testing.T) {
	g := currentGolden(t)
	lines := byEvent(g.emitted)
	for _, other := range []bool{false, true} {
		c := g.parsed(t)
		if other {
			c = defaultConfig(t)
		}
		applied, decided := newPlayer(t, c), newPlayer(t, c)
		for _, e := range g.log {
			applied.apply(e, lines[e.Seq])
			decided.decide(e)
			if n := applied.ledger(e.address()).Generation(); n < generationOf(t, lines[e.Seq]) {
				t.Fatalf("other config %v: generation %d after event %d", other, n, e.Seq)
			}
		}
		for _, l := range applied.ledgers {
			if l.HasTurns() {
				applied.hash(l.View())
			}
		}
		if want, got := decided.dumps(), applied.dumps(); !other && !slices.EqualFunc(want, got, compaction.Dump.Equal) {
			t.Errorf("ledgers of outcomes differ from those of decisions: %s", cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)))
		}
	}
}

// generationOf is the last generation that was emitted, 0 for none.
func generationOf(t *testing.T, lines []emitted) (gen int64) {
	for _, o := range outcomes(t, lines) {
		if c, ok := o.Body.(*events.Compacted); ok && c.Compacted {
			gen = c.Generation
		}
	}
	return gen
}

// E6: the same log gives the same bytes, however it is cut into batches, wherever
// a worker crashes between a checkpoint, its marker and the end of what it decided,
// and in whatever order sessions are served.
func TestGoldenSplit(t *testing.T) { testGoldenSplit(t, 15) }

// testGoldenSplit takes so many ways to split the log; the number of a way is all
// the chance there is.
func testGoldenSplit(t *testing.T, ways uint64) {
	g := currentGolden(t)
	c, want := g.parsed(t), byEvent(g.emitted)
	for way := range ways {
		r := rand.New(rand.NewPCG(way, 0))
		log := g.log
		if way%2 == 1 {
			log = bySession(r, g.log)
		}
		p := newPlayer(t, c)
		for len(log) > 0 {
			n := 1 + r.IntN(min(len(log), 1<<r.IntN(9)))
			batch := log[:n]
			p.batch(batch, want)
			if r.IntN(2) == 0 {
				p.crash()
				marker := r.IntN(n + 1)
				for _, e := range batch[:marker] {
					p.apply(e, want[e.Seq])
				}
				p.batch(batch[marker:], want)
			}
			p.checkpoint()
			log = log[n:]
		}
	}
}

// batch decides on events, and compares what is emitted with what was.
func (p *player) batch(log []logged, want map[measure.Seq][]emitted) {
	p.t.Helper()
	for _, e := range log {
		_, got := p.decide(e)
		sameOutcomes(p.t, want[e.Seq], got)
	}
}

// bySession serves one session after the other.
func bySession(r *rand.Rand, log []logged) (out []logged) {
	of := map[events.Address][]logged{}
	for _, e := range log {
		of[e.address()] = append(of[e.address()], e)
	}
	addresses := sortedKeys(of)
	r.Shuffle(len(addresses), func(i, k int) { addresses[i], addresses[k] = addresses[k], addresses[i] })
	for _, a := range addresses {
		out = append(out, of[a]...)
	}
	return out
}

func sortedKeys[V any](m map[events.Address]V) []events.Address {
	return slices.SortedFunc(maps.Keys(m), compareAddresses)
}

func sameOutcomes(t fataler, want, got []emitted) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) {
			t.Fatalf("%d outcomes, recorded were %d; the first that only one has: %s", len(got), len(want), outcomeLine(slices.Concat(want[min(i, len(want)):], got[min(i, len(got)):])[0]))
		}
		if outcomeLine(want[i]) != outcomeLine(got[i]) {
			t.Fatalf("event %d is decided otherwise than recorded; if that is meant, RulesVersion must change (see -record):\n%s",
				want[i].Seq, cmp.Diff(outcomeLine(want[i]), outcomeLine(got[i])))
		}
	}
}

func outcomeLine(line emitted) string {
	data, err := codec.Marshal(line)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// covers checks that the log has events and outcomes of all kinds: a golden log
// that avoids a rule proves nothing about it.
func (g *golden) covers(t *testing.T) {
	var log strings.Builder
	for _, e := range g.log {
		fmt.Fprintf(&log, "kind=%s %s\n", e.Kind, e.Payload)
	}
	for _, k := range events.LogKinds {
		has(t, log.String(), "kind="+string(k)+" ")
	}
	for _, field := range []string{"replaces_from", "policy", "usage", "tools", "system", "failure", "anthropic", "openai", "neurolink", "thinking", "image", `\ud83d`} {
		has(t, log.String(), field)
	}
	var all strings.Builder
	for _, line := range g.emitted {
		all.WriteString(outcomeLine(line))
	}
	for _, lane := range events.Lanes {
		has(t, all.String(), fmt.Sprintf(`"lane":%q`, lane))
	}
	for _, op := range []events.Op{
		events.OpClear, events.OpClearOld, events.OpDeduplicate, events.OpTrim, events.OpTruncate, events.OpCondense,
		events.OpRestore, events.OpAnswer, events.OpCall, events.OpMove, events.OpDrop,
	} {
		has(t, all.String(), fmt.Sprintf(`"op":%q`, op))
	}
	has(t, all.String(), `"direction":"tail"`)
	has(t, all.String(), `"spare":[`)
	for _, k := range events.OutcomeKinds {
		has(t, all.String(), fmt.Sprintf(`"kind":%q`, k))
	}
	for _, r := range []events.Reason{
		events.ReasonThreshold, events.ReasonLimit, events.ReasonBackground, events.ReasonEveryTurn, events.ReasonArrival,
		events.ReasonManual, events.ReasonOverflow, events.ReasonCost, events.ReasonIdle, events.ReasonRewind,
	} {
		has(t, all.String(), fmt.Sprintf(`"reason":%q`, r))
	}
	for _, c := range []events.Code{
		events.CodeTurnGap, events.CodeTurnConflict, events.CodeFormatChanged, events.CodeUsageUnknown, events.CodeUnknownGeneration,
		events.CodeUnknownSession, events.CodeBadPolicy, events.CodeNotOverflow, events.CodeNothingToDo,
		events.CodeNotEnoughMessages, events.CodeAborted, events.CodeIncompleteResponse,
	} {
		has(t, all.String(), fmt.Sprintf(`"code":%q`, c))
	}
}

func has(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("the golden log has no %s", part)
	}
}

func (g *golden) parsed(t *testing.T) *compaction.Config {
	t.Helper()
	c, err := stored.ReadConfig(g.config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func currentGolden(t *testing.T) *golden {
	t.Helper()
	dir := goldenDir(compaction.RulesVersion)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("rules %d have no golden log (see -record): %v", compaction.RulesVersion, err)
	}
	return readGolden(t, dir)
}

func readGolden(t *testing.T, dir string) *golden {
	t.Helper()
	g := &golden{}
	if _, err := fmt.Sscanf(filepath.Base(dir), "rules-%d", &g.rules); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	var err error
	if g.config, err = os.ReadFile(filepath.Join(dir, goldenConfig)); err != nil {
		t.Fatal(err)
	}
	g.config = bytes.TrimSpace(g.config)
	g.log = readLines[logged](t, filepath.Join(dir, goldenLog))
	g.emitted = readLines[emitted](t, filepath.Join(dir, goldenOutcomes))
	return g
}

func readLines[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var v T
		if err := codec.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, v)
	}
	return out
}

// recordGolden writes the golden log of the current rules.
func recordGolden(t *testing.T) {
	t.Helper()
	dir := goldenDir(compaction.RulesVersion)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Fatalf("%s is there (%v), and is kept; changed rules have a RulesVersion of their own", dir, err)
	}
	g := newGolden(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		goldenConfig: append(g.config, '\n'), goldenLog: writeLines(t, g.log), goldenOutcomes: writeLines(t, g.emitted),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func writeLines[T any](t *testing.T, list []T) (out []byte) {
	t.Helper()
	for _, v := range list {
		data, err := codec.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, data...), '\n')
	}
	return out
}
