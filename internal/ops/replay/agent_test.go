package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
)

// Pauses and sizes have the quantiles of recorded sessions: p50 1.65 s and 638 B,
// p99 131 s and 21 KB, within a twentieth.
func TestShape(t *testing.T) {
	for name, test := range map[string]struct {
		shape    Shape
		p50, p99 float64
	}{"gaps": {Gaps, 1.65, 131}, "sizes": {Sizes, 638, 21_000}} {
		r := rand.New(rand.NewPCG(1, 1))
		values := make([]float64, 100_000)
		for i := range values {
			values[i] = test.shape.Draw(r)
		}
		slices.Sort(values)
		for _, q := range []struct{ at, want float64 }{{0.5, test.p50}, {0.99, test.p99}} {
			got := values[int(q.at*float64(len(values)))]
			if math.Abs(got/q.want-1) > 0.05 {
				t.Errorf("%s: quantile %g is %.1f, want %.1f", name, q.at, got, q.want)
			}
		}
		if first, last := values[0], values[len(values)-1]; first <= 0 || last > test.shape.Limit {
			t.Errorf("%s: from %g to %g", name, first, last)
		}
	}
}

// The messages that agents publish have these sizes, within ± their braces.
func TestMessages(t *testing.T) {
	var sizes []int
	for n := range 40 {
		a := newAgent(events.Address{Tenant: "t", Session: "s"}, events.Anthropic, DefaultWindow, 1, n)
		for range 20 {
			_, data, err := a.nextTurn()
			if err != nil {
				t.Fatal(err)
			}
			turn, err := events.DecodeTurn(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range turn.Messages {
				sizes = append(sizes, len(m))
			}
		}
		if bad := validate.Messages(events.Anthropic, a.history()); len(bad) > 0 {
			t.Fatalf("agent %d: %v", n, bad[0])
		}
	}
	slices.Sort(sizes)
	if p50 := sizes[len(sizes)/2]; p50 < 600 || p50 > 1000 {
		t.Errorf("half of the messages have at most %d bytes; want about 638 and the braces", p50)
	}
}

// In every dialect agents publish turns that are read without a fault, their histories are valid,
// and every call has its answer.
func TestLoadInEveryDialect(t *testing.T) {
	for _, f := range events.Formats() {
		a := newAgent(events.Address{Tenant: "t", Session: "s"}, f, DefaultWindow, 1, 1)
		calls := map[string]int{}
		for i := range 12 {
			_, data, err := a.nextTurn()
			if err != nil {
				t.Fatalf("%s, turn %d: %v", f, i+1, err)
			}
			turn, err := events.DecodeTurn(data)
			if err != nil {
				t.Fatalf("%s, turn %d: %v", f, i+1, err)
			}
			read, err := turn.Format.ReadAll(turn.Messages)
			if err != nil || turn.Format != f {
				t.Fatalf("%s, turn %d is of %s: %v", f, i+1, turn.Format, err)
			}
			for _, m := range read {
				for _, p := range m.Parts {
					if p.Kind == dialect.PartCall || p.Kind == dialect.PartResult {
						calls[p.CallID]++
					}
				}
			}
			if bad := validate.Messages(f, a.history()); len(bad) > 0 {
				t.Fatalf("%s, turn %d: %v", f, i+1, bad[0])
			}
		}
		if len(calls) != 12 {
			t.Errorf("%s: %d calls in 12 turns", f, len(calls))
		}
		for id, n := range calls {
			if want := 2; n != want && id != a.call {
				t.Errorf("%s: call %s stands %d times, want %d", f, id, n, want)
			}
		}
	}
}

// The same seed makes the same turns, another one different turns.
func TestSeed(t *testing.T) {
	first := func(seed uint64, number int) string {
		_, data, err := newAgent(events.Address{Tenant: "t", Session: "s"}, events.Anthropic, DefaultWindow, seed, number).nextTurn()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if diff := cmp.Diff(first(7, 1), first(7, 1)); diff != "" {
		t.Errorf("seed 7 again:\n%s", diff)
	}
	if first(7, 1) == first(8, 1) || first(7, 1) == first(7, 2) {
		t.Error("another seed, or another agent, makes the same turns")
	}
}

// A compaction replaces the turns up to through, at the next boundary of a turn; an
// older one, or one without messages, changes nothing.
func TestApply(t *testing.T) {
	a := newAgent(events.Address{Tenant: "t", Session: "s"}, events.Anthropic, DefaultWindow, 1, 1)
	for range 3 {
		if _, _, err := a.nextTurn(); err != nil {
			t.Fatal(err)
		}
	}
	short := []codec.Raw{codec.Raw(`{"role":"user","content":"short"}`)}
	compacted := func(generation, turn int64, omitted bool) *events.Compacted {
		return &events.Compacted{Generation: generation, Through: events.Through{Turn: turn}, Messages: short, MessagesOmitted: omitted}
	}
	want := append(slices.Clone(short), a.own[2].messages...)
	a.receive(compacted(2, 2, false))
	a.receive(compacted(1, 1, false))
	if !a.apply() || a.generation != 2 {
		t.Fatalf("generation %d is applied, want 2", a.generation)
	}
	if diff := cmp.Diff(want, a.history()); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	for _, b := range []*events.Compacted{nil, compacted(2, 3, false), compacted(3, 3, true)} {
		if b != nil {
			a.receive(b)
		}
		if a.apply() || a.generation != 2 {
			t.Errorf("%+v is applied", b)
		}
	}
}
