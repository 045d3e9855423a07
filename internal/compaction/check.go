package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/models"
	"compactd/internal/events/weigh"
)

// Stats is the state of a session, for queries.
type Stats struct {
	Budget     events.Budget
	Messages   int // in view
	Turns      int64
	Generation int64
	Through    events.Through
	Parked     int
	Prepared   bool             // a summary is ready
	Waiting    bool             // a summary was requested
	Repeated   measure.Repeated // since its first turn
	Cost       events.Cost      // since then too
	Unknown    string           // why the window of the model is a guess, "" if it is not
	Longest    measure.Tokens   // longest answer so far, 0 where no reserve is learnt
}

// Repeated counts the calls that repeat one whose result a compaction had removed.
func (l *Ledger) Repeated() measure.Repeated { return l.regret.Repeated }

// Stats describes the session under a config with the model want. An empty field of want keeps the session's
// value. Its error, an [events.Invalid], means that the model's longest answer exceeds its window.
func (l *Ledger) Stats(c *Config, want events.Model) (Stats, error) {
	l, err := l.as(c, want)
	if err != nil {
		return Stats{}, err
	}
	var unknown string
	if l.limits.Stated == 0 {
		unknown = c.unknownModel(&l.model, l.cache.policy)
	}
	return Stats{
		Budget: l.Budget(), Messages: l.cache.heads,
		Turns: l.LastTurn(), Generation: l.Generation(), Through: l.through(), Parked: len(l.parked),
		Prepared: l.prepared != nil, Waiting: l.job != nil, Repeated: l.Repeated(), Cost: l.cost,
		Unknown: unknown, Longest: l.limits.learnt(),
	}, nil
}

// Overview is the state of a session in a list of many.
type Overview struct {
	Budget     events.Budget
	LastTurnAt int64            // when it was taken or parked, in Unix milliseconds of the log
	Repeated   measure.Repeated // since its first turn
	Cost       events.Cost      // since then too
	Summaries  events.SummaryCounts
	Known      bool // a turn was taken or parked
	Turns      int64
	Model      events.Model
	Growth     measure.Tokens // mean of the last turns
	TurnsLeft  int64          // turns of that growth that fit below the trigger, [maxTurnsAhead] at most
	Prepared   bool           // a summary is ready
	Waiting    bool           // a summary was requested
	Reason     events.Reason  // of the newest generation, "" if unknown
	Saved      measure.Tokens // by compactions, less the tokens that rewinds brought back
}

// Describe returns the state of the session under a config, from sums alone.
func (l *Ledger) Describe(c *Config) Overview {
	l.use(c)
	o := Overview{
		Budget: l.Budget(), LastTurnAt: l.lastTurnAt, Repeated: l.Repeated(), Cost: l.cost, Summaries: l.made,
		Known: l.HasTurns(), Turns: l.LastTurn(), Model: l.model, Growth: l.usage.scaled(l.growth.mean()), Prepared: l.prepared != nil, Waiting: l.job != nil,
	}
	o.TurnsLeft = l.turnsUntil(measure.Tokens(o.Budget.EstimatedInput))
	for i := range l.generations {
		o.Reason = l.generations[i].Reason
		o.Saved += l.generations[i].Saved
	}
	return o
}

// Through is the turn boundary of the ledger.
func (l *Ledger) Through() events.Through { return l.through() }

// Pending is the content of the next call beside the history. Sizes are in UTF-16 code units; 0 leaves system
// prompt and tools as in the session.
type Pending struct {
	Model         events.Model // as in [Ledger.Stats]
	System, Tools int64
	Prompt        int64   // of the user
	Files         []int64 // texts attached to it
	Images        int64
	Tokens        measure.Tokens // counted by the caller, beside all others

	// Measured by [Config.ReadPending]; nil as in the session.
	system, tools *weigh.Size
	added         []measure.Entry
	attached      []measure.File
	files         measure.Tokens // of texts that were counted
	policy        codec.Raw      // for this call alone
}

// Check compares the next call with the window (A10). It changes nothing; the ledger of an unknown session
// answers for a first call.
func (l *Ledger) Check(c *Config, next Pending) (events.Budget, error) {
	l, p, err := l.pending(c, &next)
	if err != nil {
		return events.Budget{}, err
	}
	return l.check(p), nil
}

// pending returns the ledger as a call has it, and the prompt of that call.
func (l *Ledger) pending(c *Config, next *Pending) (*Ledger, measure.Prompt, error) {
	l, err := l.as(c, next.Model)
	if err == nil && next.policy != nil {
		l, err = l.withPolicy(c, next.policy)
	}
	if err != nil {
		return nil, measure.Prompt{}, err
	}
	r := &l.cache.rate
	p := l.prompt()
	if next.System > 0 {
		p.System = r.Text(next.System) + r.PerMessage
	}
	if next.Tools > 0 {
		p.Tools = r.Text(next.Tools)
	}
	if next.Prompt > 0 {
		p.Current = r.Text(next.Prompt) + r.PerMessage
	}
	for _, units := range next.Files {
		p.Files += r.Text(units)
	}
	p.Files += measure.Tokens(next.Images)*r.PerImage + next.files
	l.measured(&p, next)
	return l, p, nil
}

// withPolicy returns the ledger with fields of its policy set, to be read only.
func (l *Ledger) withPolicy(c *Config, fields codec.Raw) (*Ledger, error) {
	p, err := l.cache.policy.With(fields)
	if err == nil {
		err = c.fits("max_output_tokens", &l.model, &p)
	}
	if err != nil {
		return nil, err
	}
	f := l.fork()
	f.measureWith(&p)
	return f, nil
}

// as returns the ledger under another model, to be read only. A count for one model does not hold for
// another.
func (l *Ledger) as(c *Config, want events.Model) (*Ledger, error) {
	l.use(c)
	m := l.model
	m.Provider, m.Name = cmp.Or(want.Provider, m.Provider), want.Name
	if want.Provider+want.Name == "" {
		m.Name = l.model.Name
	}
	same := models.Provider(m.Provider) == models.Provider(l.model.Provider) && m.Name == l.model.Name
	if !same {
		m.MaxOutputTokens, m.ContextWindow = 0, 0
	}
	m.MaxOutputTokens = cmp.Or(want.MaxOutputTokens, m.MaxOutputTokens)
	m.ContextWindow = cmp.Or(want.ContextWindow, m.ContextWindow)
	if m == l.model {
		return l, nil
	}
	if err := c.fits("max_output_tokens", &m, l.cache.policy); err != nil {
		return nil, err
	}
	f := l.fork()
	f.model = m
	if !same {
		f.usage, f.limits = calibration{}, limits{}
	}
	f.measure()
	return f, nil
}

// ReadPending measures the additions of a request to a call, in the dialect of its session. Its error, an
// [events.Invalid], names the messages that are not of that dialect, or reports more contents than a turn may
// have.
func (c *Config) ReadPending(in *events.NextCall, format events.Format) (Pending, error) {
	msgs, err := format.ReadNew(in.Messages)
	if err != nil {
		return Pending{}, err
	}
	parts := 0
	for i := range msgs {
		parts += len(msgs[i].Parts)
	}
	if err := events.TooMany(len(msgs), parts); err != nil {
		return Pending{}, err
	}
	by := measure.Meter{Counter: c.counter}
	next := Pending{Model: in.RequestedModel(), Tokens: measure.Tokens(in.Tokens), system: by.Field(in.System), tools: by.Field(in.Tools)}
	for i := range msgs {
		next.added = by.Measure(next.added, &msgs[i], measure.Entry{Index: uint32(i)})
	}
	return next, nil
}

// WithAttachments adds files by type and size.
func (next Pending) WithAttachments(files []events.Attachment) Pending {
	for _, a := range files {
		next.attached = append(next.attached, measure.File{Kind: a.Type, Bytes: a.Bytes})
	}
	return next
}

// measured adds the measures of [Config.ReadPending] to a prompt.
func (l *Ledger) measured(p *measure.Prompt, next *Pending) {
	r := &l.cache.rate
	if next.system != nil {
		p.System = r.Sized(*next.system) + r.PerMessage
	}
	if next.tools != nil {
		p.Tools = l.cache.custom.Measured(*r, *next.tools)
	}
	for i := range next.added {
		p.Current += r.Entry(&next.added[i])
	}
	if len(next.added) > 0 && l.entries.n == 0 {
		p.Current += r.PerConversation // the history brings it otherwise
	}
	p.Current += next.Tokens
	for _, f := range next.attached {
		p.Files += measure.FileTokens(f.Kind, f.Bytes)
	}
}

// Attach returns the cost of each attachment and whether to send it. The budget is that of a call
// with all of them. It chooses the smallest first, up to the files' share of the free input (B15).
func (next *Pending) Attach(b *events.Budget, limits *measure.FileLimits) []events.AttachmentCost {
	left := measure.Tokens(b.AvailableInput - b.EstimatedInput)
	out := make([]events.AttachmentCost, len(next.attached))
	for i, f := range next.attached {
		cost := measure.FileTokens(f.Kind, f.Bytes)
		out[i].Tokens = int64(cost)
		left += cost
	}
	bySize, fits := limits.Choose(next.attached, left)
	for k, i := range bySize {
		out[i].Send = fits[k]
	}
	return out
}

// FileRoom is the room for files in the next call of a session.
type FileRoom struct {
	// Provider and Model name the model that may summarize files; see [policy.Summarize].
	Provider, Model string

	limits    measure.FileLimits
	rate      measure.Rate
	prompt    measure.Prompt // of the call without files, corrected
	available measure.Tokens
	trigger   measure.Tokens
}

// FileRoom returns the room for files in the next call. As with [Ledger.Check] an unknown session answers for
// a first call.
func (l *Ledger) FileRoom(c *Config, next Pending) (FileRoom, error) {
	l, p, err := l.pending(c, &next)
	if err != nil {
		return FileRoom{}, err
	}
	p.Correction = l.corrected(p.Total()) - p.Total()
	g, t := &l.cache, l.thresholdsOf(p)
	return FileRoom{g.policy.Summarize.Provider, g.policy.Summarize.Model, g.policy.Files, g.rate, p, t.Available, t.Trigger}, nil
}

// FileLimits are the bounds of files under the policy of the session.
func (l *Ledger) FileLimits(c *Config) measure.FileLimits {
	l.use(c)
	return l.cache.policy.Files
}

// PlanFiles chooses the parts of files that a call sends; see [measure.PlanFiles].
func (c *Config) PlanFiles(room FileRoom, files []events.AttachedFile) *measure.FilePlan {
	all := make([]measure.Attachment, len(files))
	for i, f := range files {
		all[i] = measure.Attachment{File: measure.File{Name: f.Name, Kind: f.Type, Bytes: f.Bytes}, Text: f.Text}
	}
	return measure.PlanFiles(measure.Meter{Counter: c.counter}, room.rate, room.limits, all, room.prompt, room.available, room.trigger)
}

// WithPolicy sets fields of the policy for this call alone.
func (next Pending) WithPolicy(fields codec.Raw) Pending {
	next.policy = fields
	return next
}

// WithFiles adds texts of files, with their cost in tokens.
func (next Pending) WithFiles(t measure.Tokens) Pending {
	next.files = t
	return next
}

// Unrecorded describes a history that is not in the log. An absent field is the session's.
type Unrecorded struct {
	Model         *events.Model
	Format        events.Format
	System, Tools codec.Raw
	Policy        codec.Raw
	Refused       measure.Tokens // smallest estimate of a refused input, 0 for none
	Ratio         measure.PPM    // correction of the estimate, used if it exceeds the session's; 0 for none
}

// Alone compacts a history that is not in the log. It takes the turns one by one, so a longer history begins
// with the decisions of the shorter one. It makes no summaries, and its placeholders name no places. It is
// for one goroutine. See docs/adr/0045.
type Alone struct {
	config *Config
	ledger *Ledger
	turn   Turn
	next   Next
	beside measure.Tokens // of the tail
}

// Alone returns an empty history with the session's limits and ratio. It shares no memory with the ledger.
// Its error is an [events.Invalid].
func (l *Ledger) Alone(c *Config, x *Unrecorded) (*Alone, error) {
	l.use(c)
	out := NewLedger(l.Address)
	out.model, out.system, out.tools, out.format = l.model, l.system, l.tools, cmp.Or(x.Format, l.format)
	out.limits, out.usage.Ratio, out.prompts.System, out.prompts.Tools = l.limits, l.usage.Ratio, l.prompts.System, l.prompts.Tools
	if m := l.completeModel(x.Model); m != nil && *m != l.model {
		out.model, out.limits, out.usage = *m, limits{}, calibration{}
	}
	by := measure.Meter{Counter: c.counter}
	if s := by.Field(x.System); s != nil {
		out.system = *s
	}
	if s := by.Field(x.Tools); s != nil {
		out.tools = *s
	}
	p := *c.For(l.Address.Tenant)
	override := x.Policy
	if override == nil {
		override = l.override
	}
	if override != nil {
		with, err := p.With(override)
		switch {
		case err == nil:
			p = with
		case x.Policy != nil:
			return nil, err
		}
	}
	p.Summarize.Enabled, p.RecallNotice = false, false
	if err := c.fits("model.max_output_tokens", &out.model, &p); err != nil {
		return nil, err
	}
	if x.Refused > 0 {
		out.limits.lower(x.Refused)
	}
	if x.Ratio > out.usage.Ratio && x.Ratio > measure.Million {
		out.usage.Ratio = min(x.Ratio, mostRatio)
	}
	out.cache.config = c
	out.measureWith(&p)
	return &Alone{config: c, ledger: out}, nil
}

// Ratio is the correction of the estimates.
func (a *Alone) Ratio() measure.PPM { return a.ledger.usage.ratio() }

// Beside sets the tail, the messages that follow all turns: see [Alone.End]. Each decision leaves
// room for them.
func (a *Alone) Beside(tail []dialect.Message) {
	a.beside = a.Cost(tail)
	a.ledger.usage.Correction = a.ledger.usage.scaled(a.beside)
}

// Cost is our estimate of messages, without the correction by usages.
func (a *Alone) Cost(messages []dialect.Message) (sum measure.Tokens) {
	for _, e := range a.measure(messages) {
		sum += a.ledger.cache.rate.Entry(&e)
	}
	return sum
}

// Room is the largest cost of a history about which nothing is decided.
func (a *Alone) Room() measure.Tokens {
	l := a.ledger
	return l.availableFor(l.thresholds().Trigger-1) - l.cache.rate.PerConversation
}

// measure lists the entries of a turn.
func (a *Alone) measure(messages []dialect.Message) []measure.Entry {
	l := a.ledger
	in := &events.Scanned{Dialect: l.format, Contents: messages}
	in.Generation = l.Generation()
	return a.config.TurnInto(&a.turn, l, in, measure.Seq(l.LastTurn()+1)).entries
}

// Add takes a turn and decides about it.
func (a *Alone) Add(messages []dialect.Message) {
	a.measure(messages)
	a.next.Decide(a.ledger, &a.turn, a.config)
	a.next.Install(a.ledger)
}

// Hold takes the first turn and keeps it unchanged: it counts, but no decision about later turns changes or
// hides it.
func (a *Alone) Hold(messages []dialect.Message) {
	a.measure(messages)
	a.ledger.take(&a.turn, accept)
	a.ledger.held = a.ledger.LastTurn()
}

// Whole is the budget of a call with these messages only, before any stage.
func (a *Alone) Whole(messages []dialect.Message) events.Budget {
	a.measure(messages)
	a.ledger.take(&a.turn, accept)
	return a.ledger.Budget()
}

// End takes the tail, the messages that follow all turns, and returns the view and the budget of a call with
// it. Turn n has sequence n, the tail the one after the last.
func (a *Alone) End(tail []dialect.Message) (*render.View, events.Budget) {
	l := a.ledger
	if a.beside > 0 {
		l.usage.Correction = 0
	}
	if len(tail) > 0 {
		a.measure(tail)
		l.take(&a.turn, accept)
	}
	if b := l.Budget(); !b.WithinBudget && l.cache.policy.Enabled {
		a.next.Decide(l, NewCompact(&events.Compact{}, measure.Seq(l.LastTurn()+1)), a.config)
		a.next.Install(l)
	}
	view := l.ViewAt(l.Generation())
	view.Originals = render.Unnamed
	return view, l.Budget()
}

// WithTail returns the history up to a turn under a generation, followed by messages that are not in the log,
// and the budget of a call with them. The tail has the sequence seq and the number of the next turn. The
// budget uses the limits and ratio of the whole session.
func (l *Ledger) WithTail(c *Config, generation, turn int64, tail []dialect.Message, seq measure.Seq) (*render.View, events.Budget) {
	l.use(c)
	f := l.fork()
	in := &events.Scanned{Dialect: l.format, Contents: tail}
	entries := slices.DeleteFunc(l.visibleAt(generation), func(e measure.Entry) bool { return e.End().Turn > turn })
	before := stage.NewDraft(slices.Clone(entries), l.format, l.cache.rate).Repaired()
	for _, e := range c.Turn(l, in, seq).entries {
		e.Turn = uint32(turn + 1)
		entries = append(entries, e)
	}
	d := stage.NewDraft(entries, l.format, l.cache.rate)
	d.Repair()
	if turn < l.LastTurn() {
		f.resize(before, true)
	}
	f.cache.visible += d.Tokens() - before
	v := l.viewOf(d.Entries(), generation)
	if v.Thinking.Bound && len(tail) > 0 {
		at := uint32(turn + 1)
		v.Thinking.Kept = append(v.Thinking.Kept, render.Turns{From: at, To: at})
	}
	return v, f.Budget()
}
