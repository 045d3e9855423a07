package compaction

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"compactd/internal/events"
)

// Event names an event of the log, whatever it holds.
type Event struct {
	Seq     Seq
	ID      string // "" when the publisher gave none
	Kind    events.Kind
	Address events.Address
}

// Decide judges a turn and returns what is told about it, nothing in the common
// case. It does not change l: Apply does, with what Decide returned.
func Decide(l *Ledger, t *Turn, c *Config) []Outcome {
	l.use(c)
	d := decision{event: Event{t.Seq, t.ID, events.KindTurn, l.Address}, config: c}
	v, code := l.admit(t)
	switch v {
	case deny:
		d.reject(code, l)
		return d.outs
	case ignore:
		return nil
	}
	if err := c.refuse(t); err != nil {
		return Reject(d.event, err, c)
	}
	if t.usageUnknown {
		d.reject(events.CodeUsageUnknown, l)
	}
	if v == park {
		if len(l.parked) == 0 {
			d.reject(events.CodeTurnGap, l)
		}
		return d.outs
	}
	next := l.fork()
	next.take(t)
	d.budget(l, next)
	return d.outs
}

// Reject returns the outcome for an event that could not be read or is of no
// use. It does not quote the event.
func Reject(e Event, err error, c *Config) []Outcome {
	d := decision{event: e, config: c}
	d.tell(events.KindRejected, func(h events.Header) any {
		return &events.Rejected{
			Header: h, Config: c.Hash(), CausedBy: d.cause(), Seq: uint64(e.Seq), Kind: e.Kind,
			Code: events.CodeOf(err), Message: rejection(err), Hint: events.Codes[events.CodeOf(err)].Hint,
		}
	})
	return d.outs
}

// rejection is the text of an error that is safe to send: problems of an event
// are written without its content, any other error says nothing.
func rejection(err error) string {
	if events.CodeOf(err) == events.CodeInternal {
		return events.Codes[events.CodeInternal].Meaning
	}
	return err.Error()
}

// decision collects what is told about one event.
type decision struct {
	event  Event
	config *Config
	outs   []Outcome
}

func (d *decision) cause() events.Cause {
	return events.Cause{Seq: uint64(d.event.Seq), ID: d.event.ID}
}

// space is the namespace of the ids of outcomes.
var space = uuid.MustParse("6f8f4a6c-1d0e-5b7a-9c57-0c8f3d6b2a11")

// tell adds an outcome. Its id follows from the event and its place.
func (d *decision) tell(k events.Kind, body func(events.Header) any) {
	a := d.event.Address
	name := fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s\x00%d", a.Tenant, a.Session, d.event.Seq, k, len(d.outs))
	d.outs = append(d.outs, Outcome{Kind: k, Body: body(events.Header{V: events.Version, ID: uuid.NewSHA1(space, name).String()})})
}

func (d *decision) reject(code events.Code, l *Ledger) {
	d.tell(events.KindRejected, func(h events.Header) any {
		r := &events.Rejected{
			Header: h, Config: d.config.Hash(), CausedBy: d.cause(), Seq: uint64(d.event.Seq), Kind: d.event.Kind,
			Code: code, Message: events.Codes[code].Meaning, Hint: events.Codes[code].Hint,
		}
		if code != events.CodeUsageUnknown {
			r.Expected = l.LastTurn() + 1
			r.Message += " The next turn is " + strconv.FormatInt(r.Expected, 10) + "."
		}
		return r
	})
}

// budget compares the ledger after the turn with its window, and tells a
// compaction or a change of level.
func (d *decision) budget(before, l *Ledger) {
	b := l.Budget()
	if b.ShouldCompact && l.gauge.policy.Enabled && l.mayTry(b) {
		d.compact(l, b)
		return
	}
	if b.Level != before.level {
		d.tell(events.KindBudget, func(h events.Header) any {
			return &events.BudgetChanged{
				Header: h, Config: d.config.Hash(), CausedBy: d.cause(), Through: l.through(), Level: b.Level, Budget: b,
			}
		})
	}
}

// retryShare is how much a history must grow, as a share of the available input,
// before a compaction that did not get under the trigger is tried again.
const retryShare PPM = 50_000

func (l *Ledger) mayTry(b events.Budget) bool {
	if l.attempted == 0 {
		return true
	}
	grown := Tokens(b.EstimatedInput) - l.attempted
	return grown < 0 || reaches(grown, Tokens(b.AvailableInput), retryShare)
}

func (l *Ledger) through() events.Through {
	n := len(l.turns)
	if n == 0 {
		return events.Through{}
	}
	return events.Through{Seq: uint64(l.turns[n-1].seq), Turn: int64(n)}
}

// compact plans a compaction of l and tells its result, also when there is none.
func (d *decision) compact(l *Ledger, b events.Budget) {
	g := &l.gauge
	available := Tokens(b.AvailableInput)
	total := g.policy.Target.share(available)
	overhead := Tokens(b.EstimatedInput) - g.visible // system, tools and framing: no stage reduces it
	plan := MakePlan(l.visible(), l.format, g.rate, g.policy, g.window, total-overhead)

	body := &events.Compacted{
		Generation: l.generation, Reason: events.ReasonThreshold, Config: d.config.Hash(),
		CausedBy: d.cause(), Through: l.through(), Format: l.format,
		TargetTokens: int64(total), AvailableInput: b.AvailableInput,
		TokensBefore: int64(plan.Before + overhead), TokensAfter: int64(plan.Before + overhead),
		StagesUsed: []events.Stage{}, Stages: []events.StageReport{}, Edits: []events.Edit{}, Budget: b,
	}
	if b.Level == events.LevelBlocking {
		body.Reason = events.ReasonLimit
	}
	var view *View
	if plan.After < plan.Before {
		body.Compacted = true
		body.Generation++
		body.TokensAfter = int64(plan.After + overhead)
		body.StagesUsed, body.Stages, body.Edits = plan.Used, offset(plan.Stages, overhead), plan.Edits
		g.visible = plan.After
		l.generation = body.Generation
		body.Budget = l.Budget()
		view = &View{Format: l.format, entries: plan.entries}
	} else {
		body.Code = events.CodeNothingToDo
		if plan.Messages <= minMessages {
			body.Code = events.CodeNotEnoughMessages
		}
	}
	body.TokensSaved = body.TokensBefore - body.TokensAfter
	d.tell(events.KindCompacted, func(h events.Header) any { body.Header = h; return body })
	d.outs[len(d.outs)-1].View = view
}

// offset turns the tokens of a history into those of a whole input.
func offset(stages []events.StageReport, overhead Tokens) []events.StageReport {
	for i := range stages {
		stages[i].TokensBefore += int64(overhead)
		stages[i].TokensAfter += int64(overhead)
	}
	return stages
}
