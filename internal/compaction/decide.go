package compaction

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/traits"
)

// Event names an event of the log of any kind.
type Event struct {
	Seq     measure.Seq
	ID      string // "" when the publisher gave none
	Kind    events.Kind
	Address events.Address
}

// Input is an event: a *Turn, a *Result or a *Request.
type Input interface {
	event(events.Address) (Event, int64)
}

func (t *Turn) event(a events.Address) (Event, int64) {
	return Event{t.Seq, t.ID, events.KindTurn, a}, t.Time
}

func (r *Result) event(a events.Address) (Event, int64) {
	return Event{r.Seq, r.ID, events.KindSummary, a}, r.Time
}

// Next is a ledger after an event and its outcomes. The zero value is ready for a decision, and can be reused
// after Install.
type Next struct {
	ledger Ledger // after the event, before its outcomes
	outs   []Outcome
	now    int64
}

// Install puts the next ledger in place of l, the ledger of the decision. l must not have changed since.
func (n *Next) Install(l *Ledger) {
	*l = n.ledger
	l.carryOut(n.outs, n.now)
}

// Decide returns the outcomes of an event, usually none, and the next ledger: [Apply] with the same outcomes
// gives the same one. l does not change until the caller installs it. The two share memory, which Decide
// writes beyond l's end, so of several decisions about l only the last can be installed.
func Decide(l *Ledger, in Input, c *Config) ([]Outcome, *Next) {
	next := new(Next)
	return next.Decide(l, in, c), next
}

// Decide is like the function Decide, and reuses n once its decision is installed.
func (n *Next) Decide(l *Ledger, in Input, c *Config) []Outcome {
	l.use(c)
	d := decision{config: c}
	d.event, d.now = in.event(l.Address)
	after := &n.ledger
	l.forkInto(after)
	switch e := in.(type) {
	case *Turn:
		d.turn(l, after, e)
	case *Result:
		after.receive(e)
		d.result(l, after.fork(), e)
	case *Request:
		if d.request(l, e); !slices.ContainsFunc(d.outs, rejects) {
			after.applyRequest(e)
		}
	}
	n.outs, n.now = d.outs, d.now
	return d.outs
}

// turn decides about a turn. next takes the turn unless it is rejected.
func (d *decision) turn(l, next *Ledger, t *Turn) {
	v, code := l.admit(t)
	if v == reject {
		d.reject(code, l)
		return
	}
	if v != ignore {
		if err := l.checkTurn(t); err != nil {
			d.outs = Reject(d.event, err, d.config)
			return
		}
	}
	next.take(t, v)
	if v == ignore {
		return
	}
	d.noteLocked(d.config.For(l.Address.Tenant), t.override, l.override)
	if v == park {
		if len(l.parked) == 0 {
			d.reject(events.CodeTurnGap, l)
		}
		d.emitNotes(l)
		return
	}
	d.notes = append(d.notes, next.notes...)
	generations, visible, usage := next.generations, next.cache.visible, next.usage
	d.budget(l, next, next.cutsFrom(max(t.from, 0), l.LastTurn()))
	d.age(l, next)
	d.emitNotes(next)
	if next.job == nil || slices.ContainsFunc(d.outs, isJob) { // the job waited too long
		d.abort(l, next)
	}
	next.generations, next.cache.visible, next.usage = generations, visible, usage // the outcomes are not carried out yet
}

// result decides about the result of a job, which next has received. A summary is used at once if the session
// waits for it, or if it brings back content that a truncation hid; else it is kept for the trigger. Without
// a summary the last stage runs instead.
func (d *decision) result(l, next *Ledger, r *Result) {
	fitness := l.matchResult(r)
	if fitness == stale {
		return
	}
	urgent, request := l.job.Lane != events.LaneBackground, l.job.Manual
	b := next.Budget()
	switch {
	case request != nil:
		d.summarized(next, request, fitness)
	case !next.cache.policy.Enabled:
	case fitness == failed && b.ShouldCompact:
		d.compact(next, b, true)
	case fitness == fit && (urgent || b.ShouldCompact || next.lateMerge() || next.old(d.now)):
		d.merge(next, b)
		d.emitNotes(next)
	}
}

// Reject returns the outcome for an event that could not be read, or that cannot be used. It does not quote
// the event.
func Reject(e Event, err error, c *Config) []Outcome {
	d := decision{event: e, config: c}
	d.emit(events.KindRejected, func(h events.Header) any {
		return &events.Rejected{
			Header: h, Config: c.Hash(), CausedBy: d.cause(), Seq: uint64(e.Seq), Kind: e.Kind,
			Code: events.CodeOf(err), Message: rejection(err), Hint: events.Codes[events.CodeOf(err)].Hint,
		}
	})
	return d.outs
}

// rejection is the text of an error that is safe to send: problems of an event without its content, the code
// for any other error.
func rejection(err error) string {
	if events.CodeOf(err) == events.CodeInternal {
		return events.Codes[events.CodeInternal].Meaning
	}
	return err.Error()
}

// decision collects the outcomes of one event.
type decision struct {
	event  Event
	now    int64 // of the log, in Unix milliseconds
	config *Config
	outs   []Outcome
	notes  []events.Note
}

func (d *decision) cause() events.Cause {
	return events.Cause{Seq: uint64(d.event.Seq), ID: d.event.ID}
}

// emit adds an outcome. Its id follows from the event and its place.
func (d *decision) emit(k events.Kind, body func(events.Header) any) {
	a := d.event.Address
	name := fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s\x00%d", a.Tenant, a.Session, d.event.Seq, k, len(d.outs))
	d.outs = append(d.outs, Outcome{Kind: k, Body: body(events.Header{V: events.Version, ID: uuid.NewSHA1(render.IDNamespace, name).String()})})
}

func (d *decision) reject(code events.Code, l *Ledger) {
	d.emit(events.KindRejected, func(h events.Header) any {
		r := &events.Rejected{
			Header: h, Config: d.config.Hash(), CausedBy: d.cause(), Seq: uint64(d.event.Seq), Kind: d.event.Kind,
			Code: code, Message: events.Codes[code].Meaning, Hint: events.Codes[code].Hint,
		}
		if d.event.Kind == events.KindTurn {
			r.Expected = l.LastTurn() + 1
			r.Message += " The next turn is " + strconv.FormatInt(r.Expected, 10) + "."
		}
		return r
	})
}

// budget compares the ledger after the turn with its window, and emits a compaction, a job, or a change of
// level. Large results are cut first; if that brings the history below its trigger, nothing else follows.
func (d *decision) budget(before, l *Ledger, tooLarge bool) {
	b := l.Budget()
	due := l.cache.policy.Enabled && b.ShouldCompact && d.mayTry(before, l, b)
	if !due && before.mayFold(l) && d.fold(l) { // a compaction comes first: a fold does not look at tokens
		d.prepare(before, l)
		return
	}
	if l.cache.policy.Enabled {
		if !due && before.mayLimitMedia(l) && d.limitMedia(l, l.cache.takes, tooLarge, events.ReasonMedia) {
			d.prepare(before, l)
			return
		}
		switch {
		case tooLarge && d.cutArrived(l, l.thresholds().Trigger):
			d.prepare(before, l)
			return
		case due:
			if d.compact(l, b, !l.maySummarize(d.now) || b.Level == events.LevelBlocking) {
				return // it carries the level too
			}
			if tooLarge && d.cutArrived(l, events.MaxTokens) { // while a summary is made
				return
			}
		case tooLarge && d.cutArrived(l, events.MaxTokens):
			return
		case l.cache.policy.Prune.EveryTurn() && d.clear(l, events.ReasonEveryTurn, (*stage.Draft).ClearOld):
			d.prepare(before, l)
			return
		case l.cache.policy.Prune.Enabled && l.costDue(before, b, d.now) && d.clearForCost(l):
			d.prepare(before, l)
			return
		default:
			d.prepare(before, l)
		}
	}
	if b.Level != before.level {
		d.emitBudget(l, b)
	}
}

// prepare requests a summary in the background, if one is due.
func (d *decision) prepare(before, l *Ledger) {
	if l.cache.policy.Enabled && d.mayPrepare(before, l) {
		d.emitJob(d.planJob(l, events.LaneBackground))
	}
}

// cutsFrom reports whether a result is cut on arrival, among the turns after last or, for a resync, from turn
// from on.
func (l *Ledger) cutsFrom(from, last int64) bool {
	p := l.cache.policy
	if !p.Prune.Enabled || !p.ToolOutput.OnArrival() {
		return false
	}
	from = cmp.Or(from, last+1)
	at := l.entries.search(events.Position{Turn: from})
	for ; at < l.entries.n; at++ {
		if p.ToolOutput.Exceeds(l.entries.at(at)) {
			return true
		}
	}
	return false
}

// cutArrived emits the cut of large results, and reports whether that brought the input below a bound and
// made it smaller.
func (d *decision) cutArrived(l *Ledger, below measure.Tokens) bool {
	limit := stage.Step{Name: events.StagePrune, Run: func(x *stage.Draft) { x.Limit(&l.cache.policy.ToolOutput, true) }}
	x := l.planOf(limit)
	if before, after := l.inputs(&x); after >= min(before, below) {
		return false
	}
	d.emitPlan(l, x, events.ReasonArrival)
	return true
}

// mayLimitMedia reports whether the view has more media than the provider accepts, and media or limit
// changed. A plan reads the whole view, and a turn without media must not cost that.
func (l *Ledger) mayLimitMedia(next *Ledger) bool {
	was, now := &l.cache, &next.cache
	return now.media.Over(now.takes) && (was.media != now.media || was.takes != now.takes)
}

// limitMedia emits that the oldest media are cleared, down to the limit, and reports whether any could be.
// Large results are cut with them.
func (d *decision) limitMedia(l *Ledger, takes traits.Media, tooLarge bool, reason events.Reason) bool {
	p := l.cache.policy
	limit := stage.Step{Name: events.StagePrune, Force: true, Run: func(x *stage.Draft) {
		if tooLarge {
			x.Limit(&p.ToolOutput, true)
		}
		x.LimitMedia(takes, p.Prune.ProtectedTools)
	}}
	x := l.planOf(limit)
	if !x.Uses(events.StagePrune) {
		return false
	}
	d.emitPlan(l, x, reason)
	return true
}

func (d *decision) emitBudget(l *Ledger, b events.Budget) {
	d.emit(events.KindBudget, func(h events.Header) any {
		return &events.BudgetChanged{
			Header: h, Config: d.config.Hash(), CausedBy: d.cause(), Through: l.through(), Level: b.Level, Budget: b,
		}
	})
}

// retryShare is the change of a history, as a share of the available input, after which an unsuccessful
// compaction is tried again; prepareShare the same of a preparation; rollShare the part without a prepared
// summary at which the next one is requested.
const (
	retryShare   measure.PPM = 50_000
	prepareShare measure.PPM = 20_000
	rollShare    measure.PPM = 100_000
)

// mayTry bounds the plans for a session above its trigger: a plan reads the whole view, and a turn must not
// cost that.
// See docs/adr/0003.
func (d *decision) mayTry(before, l *Ledger, b events.Budget) bool {
	since := l.attempted
	if l.waitsAtTrigger(d.now) {
		since = max(since, l.job.Tokens)
	}
	if since == 0 || b.Level == events.LevelBlocking && before.level != events.LevelBlocking {
		return true
	}
	if l.whileOpen && !l.awaitsResults() || b.Level == events.LevelBlocking && l.backsOff() {
		return true // what had to stay then may be cut now
	}
	step := max(retryShare.Share(measure.Tokens(b.AvailableInput)), 1)
	was, now := before.estimated()-since, measure.Tokens(b.EstimatedInput)-since
	return measure.FloorDiv(was, step) != measure.FloorDiv(now, step)
}

// backsOff reports whether a session above its limit is due for another plan: 1, 2, 4, 8 … turns after the
// attempt, however little it grew. By then the newest entries are older and may be removed.
func (l *Ledger) backsOff() bool {
	turns := l.LastTurn() - l.blockedAt
	return l.blockedAt > 0 && turns > 0 && turns&(turns-1) == 0
}

// Untried reports whether no compaction was tried under the present limit: since a rewind, or since the config
// lowered it. The next turn tries one.
func (l *Ledger) Untried() bool {
	n := l.Generation()
	rewound := n > 0 && l.generations[n-1].Reason == events.ReasonRewind && l.generations[n-1].Through == l.LastTurn()
	return l.cache.policy.Enabled && (rewound || l.attempted == 0)
}

// mayPrepare reports whether to request a summary in the background: when it becomes due, and again after
// each change of the history, by a step of growth, a compaction or a summary.
func (d *decision) mayPrepare(before, l *Ledger) bool {
	if l.waits(d.now) || !l.maySummarize(d.now) {
		return false
	}
	input, at := l.estimated(), l.thresholds()
	if input >= at.Trigger || !l.preparationDue(at, input) {
		return false
	}
	was, step := before.estimated(), max(prepareShare.Share(at.Available), 1)
	return was/step != input/step || before.compactedTo == before.entries.n || !before.preparationDue(before.thresholds(), was) ||
		l.prepared != nil && l.prepared.Seq > measure.Seq(before.through().Seq)
}

func (l *Ledger) through() events.Through {
	n := len(l.turns)
	if n == 0 {
		return events.Through{}
	}
	return events.Through{Seq: uint64(l.turns[n-1].seq), Turn: int64(n)}
}

// compact plans a compaction of l and emits the result, also an unchanged one. While a summary is under way
// it emits only a plan that is worth a break of the provider's cache, since the summary breaks it again; at
// the hard limit it emits any. It reports whether a session.compacted was emitted.
func (d *decision) compact(l *Ledger, b events.Budget, truncate bool) bool {
	plan := l.plan(l.thresholds().Target, stage.Means{Summary: l.prepared, Truncate: truncate})
	waiting := l.waitsAtTrigger(d.now)
	over := plan.After > plan.target || plan.Uses(events.StageTruncate)
	summarized := plan.whole() && !plan.Uses(events.StageTruncate) // by a summary, though what was restored may be above the target
	request := over && !waiting && l.maySummarize(d.now) && !summarized
	var job *events.Job
	if request { // before the plan: the range includes entries that are truncated now
		job = d.planJob(l, events.LaneNormal)
	}
	waiting = waiting || job != nil
	reason := events.ReasonThreshold
	if b.Level == events.LevelBlocking {
		reason = events.ReasonLimit
	}
	saved := l.saved(&plan)
	worth := l.cache.media.Over(l.cache.takes) || plan.After <= plan.target || b.Level == events.LevelBlocking || measure.Reaches(saved, measure.Tokens(b.AvailableInput), retryShare)
	emitted := true
	switch {
	case saved > 0 && (worth || !waiting):
		d.emitPlan(l, plan, reason)
		if !waiting {
			d.noteTarget(&plan)
			job = d.nextJob(l, &plan)
		}
	case waiting:
		emitted = false
	default:
		d.emitUnchanged(l, reason, plan.Failure())
	}
	d.emitJob(job)
	return emitted
}

// merge puts a late summary in place.
func (d *decision) merge(l *Ledger, b events.Budget) {
	old := l.old(d.now) // entries beside it are old soon, and would need another summary
	late := old || l.lateMerge()
	plan := l.plan(l.thresholds().Target, stage.Means{Summary: l.prepared, Force: late, All: old})
	before, after := l.inputs(&plan)
	under := after < l.thresholds().Trigger
	switch {
	case plan.Uses(events.StageSummarize) && (after < before || late && under):
		d.emitPlan(l, plan, events.ReasonBackground)
		d.noteTarget(&plan)
		d.emitJob(d.nextJob(l, &plan))
	case after < before && b.ShouldCompact: // the stages that waited for the summary do without it
		d.emitPlan(l, plan, events.ReasonThreshold)
	}
}

// noteTarget notes that the plan leaves the history above its target.
func (d *decision) noteTarget(plan *budgeted) {
	if plan.After > plan.target {
		d.note(events.CodeTargetUnreached)
	}
}

// clear runs one of the two forms of clearing, and reports whether the input got smaller.
func (d *decision) clear(l *Ledger, reason events.Reason, form func(*stage.Draft, *policy.Micro) bool) bool {
	x := l.planOf(stage.Step{Name: events.StagePrune, Run: func(x *stage.Draft) { form(x, &l.cache.policy.Prune.Micro) }})
	if l.saved(&x) <= 0 { // by the provider's count, which may differ from ours
		return false
	}
	d.emitPlan(l, x, reason)
	return true
}

// note adds a note: a part of the event is ignored.
func (d *decision) note(code events.Code, fields ...string) {
	d.notes = append(d.notes, events.NoteOf(code, fields...))
}

// noteLocked adds a note if a policy, other than the one before, sets locked fields.
func (d *decision) noteLocked(base *policy.Policy, object, before codec.Raw) {
	if object == nil || bytes.Equal(object, before) {
		return
	}
	if _, ignored, err := base.Over(object); err == nil && len(ignored) > 0 {
		d.note(events.CodePolicyLocked, ignored...)
	}
}

// emitNotes adds the notes to the last outcome that can have them, or emits a session.budget with them. l is
// the ledger after the event.
func (d *decision) emitNotes(l *Ledger) {
	if len(d.notes) == 0 {
		return
	}
	for _, o := range slices.Backward(d.outs) {
		switch b := o.Body.(type) {
		case *events.Compacted:
			b.Notes = d.notes
			return
		case *events.BudgetChanged:
			b.Notes = d.notes
			return
		}
	}
	d.emitBudget(l, l.Budget())
	d.outs[len(d.outs)-1].Body.(*events.BudgetChanged).Notes = d.notes
}
