package syncs

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
)

// ledgers are sessions with the ledgers of a log, and its texts.
type ledgers struct {
	Sessions
	t        *testing.T
	rng      *rand.Rand
	decider  *decide.Decider
	log      []decide.Event
	rendered int
}

func (h *ledgers) Inspect(_ context.Context, a events.Address, _ events.Await, read func(*compaction.Ledger)) (func(context.Context) error, error) {
	l, err := h.decider.Ledger(a)
	if err == nil {
		read(l)
	}
	return func(context.Context) error { return nil }, err
}

// syncer returns a syncer that reads each text from the log, and counts the views that need one.
func (h *ledgers) syncer() *Syncer {
	texts := payload.NewRenderer(nil, math.MaxInt32)
	texts.Read = func(_ context.Context, seqs []uint64) (out []stream.LogMessage, err error) {
		h.rendered++
		texts.EraseAll()
		for _, seq := range seqs {
			if seq > uint64(len(h.log)) {
				return nil, &stream.GoneError{Seqs: []uint64{seq}}
			}
			e := &h.log[seq-1]
			out = append(out, stream.LogMessage{Seq: seq, Subject: fmt.Sprintf("log.0.%s.%s.%s", e.Kind, e.Address.Tenant, e.Address.Session), Data: e.Data})
		}
		return out, nil
	}
	return New(h, Config{Compaction: func() *compaction.Config { return h.decider.Config }, Texts: texts})
}

// publish decides an event under a config.
func (h *ledgers) publish(a events.Address, k events.Kind, body string) {
	e := decide.Event{Location: events.Location{Address: a, Kind: k}, Seq: measure.Seq(len(h.log) + 1), Time: int64(len(h.log)+1) * 1000, Data: []byte(body)}
	h.log = append(h.log, e)
	h.decider.Process(e)
}

// step does one thing to a session: a turn, with a result that a compaction clears; an edit, a compaction, a rewind, an
// end, another model, another config, or the loss of the log's end, whose sequences are issued again.
func (h *ledgers) step(a events.Address, configs []*compaction.Config) {
	l, err := h.decider.Ledger(a)
	if err != nil {
		h.t.Fatal(err)
	}
	turns, n := l.LastTurn(), h.rng.IntN(3) // few texts: another turn may have the same
	turn := func(more string) {
		text := strings.Repeat(fmt.Sprintf("word%d ", n), 30+20*n)
		h.publish(a, events.KindTurn, fmt.Sprintf(`{"format":"openai","model":{"provider":"openai","name":"m%d","context_window":%d,"max_output_tokens":50}%s,"messages":[`+
			`{"role":"assistant","tool_calls":[{"id":"c%[4]d","type":"function","function":{"name":"read","arguments":"{}"}}]},`+
			`{"role":"tool","tool_call_id":"c%[4]d","content":%q},{"role":"user","content":"Go on %d."}]}`, h.rng.IntN(2), 500+100*h.rng.IntN(3), more, turns+1, text, n))
	}
	switch what := h.rng.IntN(16); {
	case what == 0 && turns > 2:
		turn(fmt.Sprintf(`,"replaces_from":%d`, turns-h.rng.Int64N(2)))
	case what == 1:
		h.publish(a, events.KindCompact, `{}`)
	case what <= 3 && l.Generation() > 0:
		h.publish(a, events.KindRewind, fmt.Sprintf(`{"generation":%d}`, h.rng.Int64N(l.Generation())))
	case what == 4 && h.rng.IntN(3) == 0:
		h.publish(a, events.KindEnd, `{}`)
	case what == 5:
		h.decider.Config = configs[h.rng.IntN(len(configs))]
	case what == 6 && h.rng.IntN(3) == 0:
		h.log = h.log[:len(h.log)-min(h.rng.IntN(4), len(h.log))]
		again := decide.New(h.decider.Config)
		for _, e := range h.log {
			again.Process(e)
		}
		h.decider = again
	default:
		turn("")
	}
}

// Whatever happened to a session, a view that a syncer remembers is the one that it would render now, with the same
// messages of compactd: of each generation, up to each turn, in any order.
func TestCachedViews(t *testing.T) {
	p := policy.Default()
	p.Summarize.Enabled = false
	named := p
	named.Recall = "hash"
	var configs []*compaction.Config
	for _, p := range []policy.Policy{p, named} {
		c, err := compaction.NewConfig(p, measure.DefaultWindows())
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, c)
	}
	compared, rendered, made := 0, 0, 0
	for seed := range uint64(5) {
		h := &ledgers{t: t, rng: rand.New(rand.NewPCG(seed, 3)), decider: decide.New(configs[0])}
		warm := h.syncer()
		all := []events.Address{{Tenant: "a", Session: "s"}, {Tenant: "b", Session: "s"}}
		for step := range 40 {
			a := all[h.rng.IntN(len(all))]
			h.step(a, configs)
			st, _, err := warm.stateOf(t.Context(), a, events.Await{})
			if err != nil {
				t.Fatal(err)
			}
			type view struct{ generation, through int64 }
			var views []view
			for g := max(0, st.generation-4); g <= st.generation; g++ {
				for n := max(1, int64(len(st.chain))-5); n <= int64(len(st.chain)); n++ {
					views = append(views, view{g, n})
				}
			}
			h.rng.Shuffle(len(views), func(i, j int) { views[i], views[j] = views[j], views[i] })
			of := func(s *Syncer, v view) givenView {
				s.config.Texts.EraseAll()
				got, ok, err := (&request{Syncer: s, address: a, format: st.format}).viewThrough(t.Context(), st, v.generation, v.through)
				if err != nil || !ok {
					t.Fatalf("seed %d, step %d, %+v: %v, %v", seed, step, v, ok, err)
				}
				return got
			}
			for _, v := range views {
				before := h.rendered
				got := of(warm, v)
				rendered += h.rendered - before
				if want := of(h.syncer(), v); !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d, step %d: a remembered view %+v is\n%+v, now it is\n%+v", seed, step, v, got, want)
				}
				if compared++; slices.ContainsFunc(got.made, func(m madeMessage) bool { return m.of != (events.Position{}) }) {
					made++
				}
			}
		}
	}
	if rendered > compared/2 || made < compared/10 {
		t.Errorf("%d of %d views were rendered, %d have changed messages", rendered, compared, made)
	}
}
