package compaction_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
)

// E8: an agent that keeps to its rule has a history its provider takes whenever
// it applies outcomes: at once, late, out of turn or never; while it regenerates,
// edits, resyncs, forks, changes its dialect or its model, and loses turns on the
// way. Once it has the newest outcome its history is the one the ledger has.
func TestAgents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		s := newSimulated(g, g.config())
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			s.step()
			s.check()
		}
		s.apply(len(s.inbox) - 1)
		s.check()
	})
}

// simulated is an agent with its worker.
type simulated struct {
	*agent
	g      *generator
	format events.Format

	script  [][]msg        // the messages to send, a turn each
	turns   [][]msg        // its turns, by number
	from    int            // the first turn that is not in base
	base    []codec.Raw    // the history of the last outcome it applied
	gen     int64          // of that outcome
	since   uint64         // sequence of its last retraction
	demands traits.Demands // of the provider then
	inbox   []outcome      // emitted, and not applied
	held    []object       // turns that are late
	model   object         // of the next turn
	window  int
}

type outcome struct {
	*events.Compacted
	messages []codec.Raw
	demands  traits.Demands
}

func newSimulated(g *generator, c *compaction.Config) *simulated {
	s := &simulated{agent: newAgent(g.T, c), g: g, format: g.format}
	s.window = rapid.SampledFrom([]int{1000, 4000, 16000}).Draw(g.T, "window")
	s.model = object{"provider": g.provider(), "context_window": s.window, "max_output_tokens": s.window / 5}
	for range 4 {
		for history := g.closed(); len(history) > 0; {
			n := rapid.IntRange(1, min(4, len(history))).Draw(g.T, "in turn")
			s.script, history = append(s.script, history[:n]), history[n:]
		}
	}
	return s
}

// closed is a proper history that begins with a user and ends with an assistant.
func (g *generator) closed() []msg {
	h := g.proper()
	for len(h) > 0 && (h[len(h)-1].role != dialect.RoleAssistant || len(h[len(h)-1].calls) > 0) {
		h = h[:len(h)-1]
	}
	g.paused = nil // what comes after the last answer is not part of it
	return slices.DeleteFunc(h, func(s msg) bool { return s.role == dialect.RoleSystem })
}

func (s *simulated) step() {
	switch rapid.IntRange(0, 14).Draw(s.g.T, "step") {
	default:
		s.publishNext(object{})
	case 6, 7:
		s.apply(len(s.inbox) - 1)
	case 8:
		if n := len(s.inbox); n > 0 { // out of turn
			s.apply(rapid.IntRange(0, n-1).Draw(s.g.T, "outcome"))
		}
	case 9:
		s.inbox = nil // it was down
	case 10:
		s.regenerate()
	case 11:
		s.resync()
	case 12:
		s.model = object{"provider": s.g.provider(), "context_window": s.window / 2, "max_output_tokens": s.window / 10}
	case 13:
		s.ask()
	case 14:
		s.fork()
	}
}

// publishNext publishes what comes next in the script.
func (s *simulated) publishNext(turn object) {
	if len(s.script) == 0 {
		return
	}
	var next []msg
	next, s.script = s.script[0], s.script[1:]
	s.turns = append(s.turns, next)
	turn["turn"], turn["messages"], turn["generation"] = len(s.turns), messages(s.format, next...), s.gen
	if len(s.turns) == 1 {
		turn["format"] = s.format
	}
	if s.model != nil {
		turn["model"], s.model = s.model, nil
	}
	if turn["replaces_from"] == nil && len(s.turns) > 1 && s.g.odds(10, "late") {
		s.held = append(s.held, turn)
		return
	}
	s.send(turn)
	if s.g.odds(70, "arrives") {
		for _, late := range s.held {
			s.send(late)
		}
		s.held = nil
	}
}

func (s *simulated) send(turn object) { s.receive(s.publish(turn)) }

// receive keeps compactions for later, and has the summarizer answer at once or not.
func (s *simulated) receive(outs []compaction.Outcome) {
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Compacted:
			if b.Compacted {
				raw, err := s.render(o.View)
				if err != nil {
					s.t.Fatal(err)
				}
				s.inbox = append(s.inbox, outcome{b, raw, o.View.Demands})
			}
		case *events.Job:
			if s.g.odds(70, "summary") {
				r := s.result(summary(b.ID, b.MaxUnits/2))
				outs, next := compaction.Decide(s.ledger, r, s.config)
				next.Install(s.ledger)
				s.receive(outs)
			}
		case *events.Rejected:
			if b.Code != events.CodeTurnGap && b.Code != events.CodeUnknownGeneration && b.Code != events.CodeUnknownSession {
				s.t.Fatalf("rejected: %s", b.Code)
			}
		}
	}
}

// apply is the agent's rule.
func (s *simulated) apply(i int) {
	if i < 0 {
		return
	}
	o := s.inbox[i]
	s.inbox = slices.Delete(s.inbox, i, i+1)
	if o.Generation > s.gen && o.Through.Seq >= s.since {
		s.base, s.from, s.gen, s.demands = o.messages, int(o.Through.Turn), o.Generation, o.demands
	}
}

// history is what the agent would send to its provider.
func (s *simulated) history() []codec.Raw {
	out := slices.Clone(s.base)
	for _, turn := range s.turns[s.from:] {
		out = append(out, messages(s.format, turn...)...)
	}
	return out
}

// regenerate retracts the last turn, if the agent still has it.
func (s *simulated) regenerate() {
	if len(s.turns)-1 < max(s.from, 1) || len(s.held) > 0 {
		return
	}
	s.script = append([][]msg{s.turns[len(s.turns)-1]}, s.script...)
	s.turns = s.turns[:len(s.turns)-1]
	s.since = uint64(s.seq + 1)
	s.publishNext(object{"replaces_from": len(s.turns) + 1, "id": s.id()})
}

func (s *simulated) id() string { return "retraction " + string(rune('a'+s.seq%26)) }

// resync sends the whole history that the agent holds; one that has applied no
// outcome may change its dialect with it.
func (s *simulated) resync() {
	if len(s.turns) == 0 {
		return
	}
	if s.base == nil && !s.g.noIDs && s.g.odds(50, "other dialect") {
		s.format = rapid.SampledFrom([]events.Format{events.Anthropic, events.OpenAI}).Draw(s.g.T, "dialect")
	}
	s.adopt()
}

func (s *simulated) adopt() {
	all := s.history()
	s.held, s.since = nil, uint64(s.seq+1)
	s.base, s.turns, s.from = all, [][]msg{nil}, 1
	s.send(object{"turn": 1, "replaces_from": 1, "id": s.id(), "format": s.format, "messages": all, "generation": s.gen})
}

// fork goes on in a new session that begins with the history.
func (s *simulated) fork() {
	if len(s.turns) == 0 {
		return
	}
	s.agent = newAgent(s.g.T, s.config)
	s.inbox, s.gen, s.since = nil, 0, 0
	s.model = object{"provider": s.g.provider(), "context_window": s.window, "max_output_tokens": s.window / 5}
	s.adopt()
}

// ask has the session compacted or rewound.
func (s *simulated) ask() {
	s.seq++
	kind, body := events.KindCompact, object{}
	if s.g.odds(50, "rewind") {
		kind, body = events.KindRewind, object{"steps": 1}
	}
	r, err := stored.ReadRequest(kind, raws(body)[0], s.seq)
	if err != nil {
		s.t.Fatal(err)
	}
	outs, next := compaction.Decide(s.ledger, r, s.config)
	next.Install(s.ledger)
	s.receive(outs)
}

func (s *simulated) check() {
	now := s.history()
	if v := validate.Messages(s.format, now); len(v) > 0 {
		s.t.Fatalf("%v in\n%s", v, lines(now))
	}
	if s.gen != s.ledger.Generation() || len(s.held) > 0 || len(s.turns) == 0 {
		return
	}
	view := s.ledger.View()
	if s.base != nil && !cmp.Equal(view.Demands, s.demands) { // a model came whose provider has another rule: agents request the context then
		return
	}
	raw, err := s.render(view)
	if err != nil {
		s.t.Fatal(err)
	}
	same := func(a, b codec.Raw) bool { return bytes.Equal(bytes.ReplaceAll(a, []byte(half), []byte(`\ufffd`)), b) }
	if !slices.EqualFunc(now, raw, same) {
		s.t.Fatalf("the agent has\n%sthe ledger\n%s", lines(now), lines(raw))
	}
}
