package whatif

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/extent"
	"compactd/internal/ops/facts"
)

// simulation is one session under one policy, and the agent and summarizer around it.
type simulation struct {
	session *Session
	config  *compaction.Config // nil: each event under its own
	delay   int64              // of a summary, in milliseconds
	noFacts bool               // are looked for
	writer  func(*events.Job) string
	emitted func(*Event, []compaction.Outcome)

	own  *core
	base *core // the recorded session, while same; nil without one to compare
	// same: so far the simulation has published the same as was recorded, for shared generations.
	same   bool
	shared int64

	jobs   map[string]*events.Job // that were requested
	awaits map[string]bool        // whose result is in the log: requested while all was the same
	due    []dueJob               // whose result comes from here
	made   measure.Seq            // simulated events so far
	turns  []facts.Turn
	ruler  *ruler
	cache  cache
	paid   paid
	sum    *Figures
	extent extent.Tracker

	largest *diff.Change // so far; nil where none is to be kept
}

// dueJob is a job, and when its summary comes.
type dueJob struct {
	job *events.Job
	at  int64
}

// simulated is where the sequences of simulated events begin: far beyond any log,
// and exact in the JSON of any language.
const simulated measure.Seq = 1 << 48

func newSimulation(s *Session, c *compaction.Config, delay int64) *simulation {
	prices := measure.DefaultPrices()
	switch {
	case c != nil:
		prices = c.Prices
	case len(s.Events) > 0 && s.Events[0].Config != nil:
		prices = s.Events[len(s.Events)-1].Config.Prices
	}
	w := &simulation{
		session: s, config: c, delay: delay, emitted: func(*Event, []compaction.Outcome) {},
		own: newCore(s.Address), same: s.Decided, jobs: map[string]*events.Job{}, awaits: map[string]bool{}, ruler: newRuler(prices), sum: newFigures(),
	}
	if s.Decided && c != nil {
		w.base = newCore(s.Address)
	}
	return w
}

// run plays the session to its end.
func (w *simulation) run(ctx context.Context) (*Figures, error) {
	tenths := w.session.tenths()
	for i := range w.session.Events {
		e := &w.session.Events[i]
		if err := ctx.Err(); err != nil { // it may let others compute
			return nil, err
		}
		if err := w.pass(ctx, e.Time); err != nil {
			return nil, err
		}
		e, err := w.adapt(e)
		if err == nil && e != nil {
			err = w.take(e)
		}
		if err == nil && tenths[i] && !w.noFacts {
			err = w.remembers(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.deliver(ctx, math.MaxInt64); err != nil {
		return nil, err
	}
	if l := w.own.ledger; l.HasTurns() {
		w.extent.State(l.Through().Turn, l.Budget())
	}
	w.sum.end(&w.extent)
	return w.sum, nil
}

// end is the session as it is now.
func (w *simulation) end() End {
	l := w.own.ledger
	return End{Policy: l.Policy(), Budget: l.Budget()}
}

// recorded returns the cost of a session as it was recorded.
func (w *simulation) recorded() *paid {
	w.paid.bill, w.paid.estimate = w.own.bill(w.session.Events[len(w.session.Events)-1].Config), w.sum.Costs
	return &w.paid
}

// pass lets time pass: summaries arrive, and a session that was idle for long gets a
// session.idle, as a worker writes it.
func (w *simulation) pass(ctx context.Context, now int64) error {
	if err := w.deliver(ctx, now); err != nil || w.same || !w.own.ledger.Idle(now, w.config) {
		return err
	}
	data, err := codec.Marshal(events.Idle{Header: events.Header{V: events.Version, ID: "idle"}, Since: uint64(w.own.ledger.LastTurnSeq())})
	if err != nil {
		return err
	}
	return w.take(w.simulate(events.KindIdle, now, data))
}

func (w *simulation) simulate(k events.Kind, now int64, data []byte) *Event {
	w.made++
	return &Event{Seq: simulated + w.made, Time: now, Kind: k, Data: data}
}

// take lets the policy decide an event, and counts what it emits.
func (w *simulation) take(e *Event) error {
	config := cmp.Or(w.config, e.Config)
	turns, generation := w.own.ledger.LastTurn(), w.own.ledger.Generation()
	outs := w.own.decide(e, config)
	w.sum.Rereads, w.sum.Reruns = w.own.again.Rereads, w.own.again.Reruns
	w.emitted(e, outs)
	if e.Kind == events.KindTurn {
		w.extent.Turn(len(e.Data))
	}
	for _, o := range outs {
		w.extent.Note(o.Body)
	}
	w.compare(e, outs, generation)
	if !w.own.ledger.HasTurns() {
		w.turns, w.ruler.history = nil, 0
	}
	switch e.Kind {
	case events.KindTurn:
		return w.turn(e, turns, outs)
	case events.KindSummary:
		w.summary(w.own.made[uint64(e.Seq)])
	}
	return w.receive(e, outs)
}

// compare notes when a policy emits something else for the first time.
func (w *simulation) compare(e *Event, outs []compaction.Outcome, generation int64) {
	if !w.same || w.base == nil {
		return
	}
	if was := w.base.decide(e, e.Config); !slices.EqualFunc(outs, was, sameOutcome(w.config, e.Config)) {
		w.same, w.shared, w.base = false, generation, nil
		w.sum.Diverged++
	}
}

// sameOutcome compares outcomes, but for the config that each names.
func sameOutcome(a, b *compaction.Config) func(x, y compaction.Outcome) bool {
	text := func(o compaction.Outcome, c *compaction.Config) []byte {
		data, err := codec.Marshal(o.Body)
		if err != nil {
			return fmt.Append(nil, err) // an outcome always marshals
		}
		return bytes.ReplaceAll(data, []byte(c.Hash()), nil)
	}
	return func(x, y compaction.Outcome) bool { return x.Kind == y.Kind && bytes.Equal(text(x, a), text(y, b)) }
}

// turn counts the call after a turn that was taken.
func (w *simulation) turn(e *Event, before int64, outs []compaction.Outcome) error {
	in, err := events.DecodeTurn(e.Data)
	if err != nil { // rejected
		return w.receive(e, outs)
	}
	number := cmp.Or(max(in.Number, in.ReplacesFrom), before+1)
	w.remember(number, in.ReplacesFrom, w.own.texts[e.Seq])
	after := w.own.ledger.LastTurn()
	if in.ReplacesFrom == 0 && after == before { // parked, refused, or there already
		return w.receive(e, outs)
	}
	if w.ruler.take(in) {
		w.cache.cut(0)
	}
	w.paid.called(in, w.own.texts[e.Seq])
	newest := w.ruler.of(w.own.texts[e.Seq])
	if in.ReplacesFrom == 0 && after == before+1 && number == after {
		w.ruler.history += newest
	} else {
		history, err := w.history()
		if err != nil {
			return err
		}
		w.ruler.history = w.ruler.of(history)
		w.cache.cut(w.ruler.call() - newest)
	}
	if err := w.receive(e, outs); err != nil {
		return err
	}
	w.charge(e.Time, newest)
	w.sum.carry(w.ruler.call(), w.ruler.available)
	if !w.own.ledger.Budget().WithinBudget {
		w.sum.Blocked++
	}
	return nil
}

// remember keeps the messages of a turn at their place.
func (w *simulation) remember(number, from int64, messages []dialect.Message) {
	if from > 0 {
		w.turns = slices.DeleteFunc(w.turns, func(t facts.Turn) bool { return t.Number >= from })
	}
	at, there := slices.BinarySearchFunc(w.turns, number, func(t facts.Turn, n int64) int { return int(t.Number - n) })
	if !there {
		w.turns = slices.Insert(w.turns, at, facts.Turn{Number: number, Messages: messages})
	}
}

// remembers looks for the facts of all turns in the history as it is now.
func (w *simulation) remembers(ctx context.Context) error {
	history, err := w.history()
	if err != nil {
		return err
	}
	return w.sum.kept(ctx, facts.Of(w.turns, events.Position{Turn: w.own.ledger.LastTurn(), Index: math.MaxInt64}), history)
}

// history is the agent's present history.
func (w *simulation) history() ([]dialect.Message, error) {
	if w.own.ledger.LastTurn() == 0 {
		return nil, nil
	}
	v := w.own.ledger.View()
	_, history, err := w.own.render(v)
	return history, err
}
