package main

import (
	"fmt"
	"math"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/exact"
	"compactd/internal/stored"
)

// oursName is the estimator of the preset default.
const oursName = "ours"

// lags are how many calls after a usage the estimate is looked at.
var lags = [...]int{1, 20, 60}

// estimator is a way to estimate: a profile, and who counts.
type estimator struct {
	name    string
	profile string
	counter string // "" estimates
}

// rough is the rule of an agent that takes 4 characters for a token, and 2 in a
// result of a tool.
var rough = measure.Profile{TextUnits: 4, ResultUnits: 2, JSONUnits: 4, MarginPercent: 100}

func estimators() []estimator {
	measure.Profiles["rough"] = rough
	return []estimator{
		{"seed", "seed", ""},
		{"current", "current", ""},
		{"blocks", "blocks", ""},
		{"003", "rough", ""},
		{"o200k", "default", "o200k"},
		{oursName, "default", ""},
	}
}

func (e estimator) config() (*compaction.Config, error) {
	p := policy.Default()
	p.Enabled, p.Profile = false, e.profile // it publishes levels, and takes nothing away
	c, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil || e.counter == "" {
		return c, err
	}
	by, err := exact.New(e.counter)
	if err != nil {
		return nil, err
	}
	return c.WithCounter(by)
}

// measure lets a ledger estimate each prompt of a stretch.
func (e estimator) measure(s stretch) (errors, error) {
	c, err := e.config()
	if err != nil {
		return errors{}, err
	}
	r := reader{config: c, stretch: &s, seq: 1}
	steps := make([]step, len(s.calls))
	for i, call := range s.calls {
		if steps[i], err = r.step(call, i == 0); err != nil {
			return errors{}, err
		}
	}
	return run{c, &s, steps}.errors()
}

// fixed is what the first prompt of a session was counted beyond our estimate of its messages.
func (s *stretch) fixed() (int64, error) {
	c, err := estimator{profile: "default"}.config()
	if err != nil {
		return 0, err
	}
	r := reader{config: c, stretch: s, seq: 1}
	t, err := r.turn(s.opening, nil, true)
	if err != nil {
		return 0, err
	}
	l := compaction.NewLedger(address)
	compaction.Apply(l, t, nil, c)
	return s.calls[0].input - estimate(l), nil
}

// step is a call as turns.
type step struct {
	sent, answer, counted *compaction.Turn // the last with its usage
	input                 int64
}

// reader makes turns of one session.
type reader struct {
	config  *compaction.Config
	stretch *stretch
	seq     measure.Seq
}

type payload struct {
	V        int           `json:"v"`
	Model    *events.Model `json:"model,omitzero"`
	Format   events.Format `json:"format"`
	Messages []codec.Raw   `json:"messages"`
	Usage    *usage        `json:"usage,omitzero"`
}

type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

func (r *reader) step(c call, first bool) (s step, err error) {
	s.input = c.input
	if s.sent, err = r.turn(c.sent, nil, first); err != nil {
		return s, err
	}
	if s.answer, err = r.turn([]codec.Raw{c.answer}, nil, false); err != nil {
		return s, err
	}
	s.counted, err = r.turn([]codec.Raw{c.answer}, c.usage(), false)
	return s, err
}

// usage is what the provider counted, nil where it reported none.
func (c *call) usage() *usage {
	if c.input == 0 {
		return nil
	}
	return &usage{c.input, c.output}
}

func (r *reader) turn(messages []codec.Raw, u *usage, first bool) (*compaction.Turn, error) {
	p := payload{V: events.Version, Format: r.stretch.format, Messages: slices.Concat([]codec.Raw{}, messages), Usage: u}
	if first {
		p.Model = &r.stretch.model
	}
	data, err := codec.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write turn: %w", err)
	}
	r.seq++
	t, _, err := stored.ReadTurn(r.config, compaction.NewLedger(address), data, r.seq)
	if err != nil {
		return nil, fmt.Errorf("read turn: %w", err)
	}
	return t, nil
}

var address = events.Address{Tenant: "default", Session: "s"}

// run compares the estimates of a ledger with what the provider counted.
type run struct {
	config  *compaction.Config
	stretch *stretch
	steps   []step
}

func (r run) errors() (out errors, err error) {
	never, measured := compaction.NewLedger(address), compaction.NewLedger(address)
	trigger := r.trigger()
	for i, s := range r.steps {
		r.take(never, s.sent)
		if i > 0 && s.input > 0 {
			before := r.steps[0].input
			out.never.add(before+estimate(never), s.input)
			out.net.add(estimate(never), s.input-before)
		}
		r.take(never, s.answer)
		r.take(measured, s.sent)
		r.take(measured, s.counted)
		if s.input > 0 {
			if err := r.after(measured, i, trigger, &out); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// after goes on from call i without a usage, in a copy of the ledger.
func (r run) after(l *compaction.Ledger, i int, trigger int64, out *errors) error {
	rows, err := stored.Rows(l)
	if err != nil {
		return err
	}
	if l, err = stored.ReadLedger(address, rows); err != nil {
		return err
	}
	for n := 1; n <= lags[len(lags)-1] && i+n < len(r.steps); n++ {
		s := r.steps[i+n]
		r.take(l, s.sent)
		if k := slices.Index(lags[:], n); k >= 0 && s.input > 0 {
			out.after[k].add(estimate(l), s.input)
			if n == 1 && s.input >= trigger {
				out.trigger.add(estimate(l), s.input)
			}
		}
		r.take(l, s.answer)
	}
	return nil
}

func (r run) take(l *compaction.Ledger, t *compaction.Turn) { compaction.Apply(l, t, nil, r.config) }

// trigger is where the default policy compacts.
func (r run) trigger() int64 {
	p, window := r.config.Policy, r.stretch.window()
	available := window - measure.OutputReserve(window, 0)
	return int64(available) * int64(p.Threshold) / 1_000_000
}

func estimate(l *compaction.Ledger) int64 { return l.Budget().EstimatedInput }

// errors are those of an estimator.
type errors struct {
	after               [len(lags)]sample
	never, net, trigger sample
}

func (e *errors) add(x errors) {
	for i := range e.after {
		e.after[i] = append(e.after[i], x.after[i]...)
	}
	e.never, e.net, e.trigger = append(e.never, x.never...), append(e.net, x.net...), append(e.trigger, x.trigger...)
}

// sample holds relative errors.
type sample []float64

func (s *sample) add(estimated, counted int64) {
	if counted > 0 {
		*s = append(*s, float64(estimated-counted)/float64(counted))
	}
}

// mean is that of the absolute errors.
func (s sample) mean() float64 {
	var sum float64
	for _, e := range s {
		sum += math.Abs(e)
	}
	return sum / float64(max(len(s), 1))
}

// p95 is the 95th percentile of the absolute errors.
func (s sample) p95() float64 {
	var abs []float64
	for _, e := range s {
		abs = append(abs, math.Abs(e))
	}
	slices.Sort(abs)
	if len(abs) == 0 {
		return 0
	}
	return abs[min(len(abs)*95/100, len(abs)-1)]
}

// worst is the largest underestimate, 0 when there is none.
func (s sample) worst() float64 {
	if len(s) == 0 {
		return 0
	}
	return max(0, -slices.Min(s))
}

// String is mean / p95 / worst in percent.
func (s sample) String() string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f / %.2f / %.1f", 100*s.mean(), 100*s.p95(), 100*s.worst())
}
