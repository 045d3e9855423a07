package compaction

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/idents"
	"compactd/internal/events/weigh"
)

// JobExpiry is the time without a result after which another job may be requested, in milliseconds of the
// log's time.
const JobExpiry = 15 * 60 * 1000

// maxJobTurns bounds the turns that a job lists: a session may hold a million
// empty ones, and a job must fit into a message.
const maxJobTurns = 10_000

// pendingJob is a summary that was requested.
type pendingJob struct {
	IDs      []string        `json:"ids"` // of the jobs for the one range; the first result wins
	Lane     events.Lane     `json:"lane"`
	From     events.Position `json:"from"`
	To       events.Position `json:"to"`
	Hash     string          `json:"hash"`
	MaxUnits int64           `json:"max_units"`
	Tokens   measure.Tokens  `json:"tokens"`         // estimated input when it was requested
	Since    int64           `json:"since"`          // Unix milliseconds
	First    int64           `json:"first,omitzero"` // when its range was requested first
	Manual   *events.Manual  `json:"manual,omitzero"`
}

// useNames notes identifiers that the agent uses while a summary is made or waits.
func (l *Ledger) useNames(keys []idents.Key) {
	if len(keys) == 0 {
		return
	}
	if l.prepared != nil {
		l.prepared = l.prepared.Use(keys)
	}
	for _, k := range keys {
		if l.job != nil && len(l.named) < maxNames && !slices.Contains(l.named, k) {
			l.named = append(l.named, k)
		}
	}
}

// clearNames drops them, as the turn that used them may have been retracted.
func (l *Ledger) clearNames() {
	l.named = nil
	if l.prepared != nil {
		l.prepared = l.prepared.Clear()
	}
}

// breaker counts failures after which no more summaries are requested.
type breaker struct {
	Failures int64 `json:"failures"` // failed jobs in a row
	Thrashes int64 `json:"thrashes"` // compactions in a row that stayed at or above the trigger
	Last     int64 `json:"last"`     // last count, in Unix milliseconds
	// Refused is the time at which the tenant had no money left for a summary, in Unix milliseconds; 0 is
	// never. It does not count as a failure.
	Refused int64 `json:"refused,omitzero"`
}

// maySummarize reports whether summaries are on for the session at a time.
func (l *Ledger) maySummarize(now int64) bool {
	p := &l.cache.policy.Summarize
	open := max(l.breaker.Failures, l.breaker.Thrashes) >= p.Failures
	cooled := func(since int64) bool { return now-since >= p.CooldownSeconds*1000 }
	return p.Enabled && (!open || cooled(l.breaker.Last)) && (l.breaker.Refused == 0 || cooled(l.breaker.Refused))
}

// waits reports whether a job is under way whose result may still be used.
func (l *Ledger) waits(now int64) bool {
	return l.job != nil && now-l.job.Since < JobExpiry && l.cache.policy.Summarize.Enabled
}

// waitsAtTrigger reports whether such a job was requested at the trigger.
func (l *Ledger) waitsAtTrigger(now int64) bool {
	return l.waits(now) && l.job.Lane != events.LaneBackground
}

// jobSpec describes a summary to request.
// See docs/adr/0007.
type jobSpec struct {
	lane    events.Lane
	recent  measure.Tokens // largest rest beside it
	ceiling measure.Tokens // largest cost of the summary
	least   measure.Tokens // least part of its range that is not a summary
	small   bool           // a small range too, for a summary of at most a third of its cost
	old     bool           // for old content: as small, and leastOld whatever its range costs
}

// planJob returns the job for a summary of the content that would have to go, nil if it is not worth it or
// already under way.
func (d *decision) planJob(l *Ledger, lane events.Lane) *events.Job {
	return d.planJobOf(l, lane, l.draft())
}

// planJobOf is planJob for a history that will be in view.
func (d *decision) planJobOf(l *Ledger, lane events.Lane, draft *stage.Draft) *events.Job {
	g := &l.cache
	available := l.thresholds().Available
	w := jobSpec{lane: lane, ceiling: g.policy.Ceiling(available), least: retryShare.Share(available)}
	w.recent = l.availableFor(l.thresholds().Target) - w.ceiling
	if lane == events.LaneBackground { // the history grows until the trigger
		w.recent -= max(l.thresholds().Trigger-measure.Tokens(l.Budget().EstimatedInput), 0)
		if l.prepared != nil {
			w.least = rollShare.Share(available)
		}
	}
	draft.DropRestored() // the next summary decides again what is restored
	return d.jobFor(l, draft, w)
}

// nextJob returns the job for the summary that the next compaction will need, after a plan; nil if none is
// due yet. A turn later it may be too late.
func (d *decision) nextJob(l *Ledger, plan *budgeted) *events.Job {
	after := *l
	if plan.Uses(events.StageSummarize) {
		after.prepared = nil
	}
	b := after.Budget()
	if b.ShouldCompact || after.waits(d.now) || !after.maySummarize(d.now) || !after.preparationDue(after.thresholds(), measure.Tokens(b.EstimatedInput)) {
		return nil
	}
	draft := stage.NewDraft(slices.Clone(plan.Entries), l.format, l.cache.rate)
	draft.Pin(after.availableFor(after.thresholds().Target), after.fresh(2))
	return d.planJobOf(&after, events.LaneBackground, draft)
}

// jobFor returns the job for a summary of a history.
func (d *decision) jobFor(l *Ledger, draft *stage.Draft, w jobSpec) *events.Job {
	g := &l.cache
	start, entries := draft.AfterSystem(), draft.Entries()
	if start == len(entries) {
		return nil
	}
	first := &entries[start]
	job := &events.Job{
		Config: d.config.Hash(), CausedBy: d.cause(), Lane: w.lane, Format: l.format,
		From: measure.MessageOf(first.Position()), EstimatedInput: l.Budget().EstimatedInput,
		Provider: g.policy.Summarize.Provider, Model: g.policy.Summarize.Model,
	}
	job.Turn = job.From.Turn
	if first.Kind == measure.KindSummary {
		covered := measure.MessageOf(first.End())
		job.Previous, job.PreviousTo, job.Turn = uint64(first.Seq), &covered, covered.Turn
	}
	read := 0 // entries that a prepared summary covers
	if p := l.prepared; p != nil && !w.small && p.From == job.From && p.To.Compare(first.End()) > 0 {
		to := p.To
		job.Previous, job.PreviousTo, job.Turn = uint64(p.Seq), &to, to.Turn
		read = draft.Through(start, to)
	}
	end, saved, fresh := draft.Condensable(w.recent, job.Turn+maxJobTurns-1)
	if read > 0 {
		fresh = draft.TokensFrom(read) - draft.TokensFrom(max(end, read))
	}
	if w.small {
		w.ceiling = min(w.ceiling, saved/3)
	}
	if w.old {
		w.ceiling = min(w.ceiling, max(saved/3, leastOld))
	}
	ok := end > 0 && (w.old || saved > w.ceiling) && fresh >= w.least
	if running := d.underWay(l, draft, start, w.ceiling); w.lane != events.LaneBackground && running > 0 {
		end, ok = running, true
	}
	maxUnits := draft.UnitsAtDensity(g.rate.Units(w.ceiling))
	if !ok || maxUnits <= 0 {
		return nil
	}
	job.To, job.MaxUnits = draft.EndOf(start, end), maxUnits
	if entries[len(entries)-1].Position().Compare(job.To) <= 0 {
		return nil // the range would end within the newest message, which stays
	}
	for n := job.Turn; n <= job.To.Turn; n++ {
		job.Seqs = append(job.Seqs, uint64(l.turns[n-1].seq))
	}
	job.Hash = l.rangeHash(job.From, job.To)
	if l.waits(d.now) && l.job.Hash == job.Hash && l.job.Lane == w.lane {
		return nil
	}
	return job
}

// underWay returns the end of the range of a background job whose summary would bring the session below
// prepare; else 0. Such a job is only made more urgent: another range would throw away work that is nearly
// done.
func (d *decision) underWay(l *Ledger, draft *stage.Draft, start int, ceiling measure.Tokens) int {
	if !l.waits(d.now) || l.waitsAtTrigger(d.now) {
		return 0
	}
	end, entries := draft.Through(start, l.job.To), draft.Entries()
	if end == start || draft.EndOf(start, end) != l.job.To || entries[start].Position() != l.job.From {
		return 0
	}
	after := draft.TokensFrom(end) + ceiling
	if l.input(after, true) >= l.thresholds().Prepare {
		return 0
	}
	return end
}

func isJob(o Outcome) bool { return o.Kind == events.KindJob }

func (d *decision) emitJob(job *events.Job) {
	if job != nil {
		d.emit(events.KindJob, func(h events.Header) any { job.Header = h; return job })
	}
}

// rangeHash identifies a range by its turns and its ends.
func (l *Ledger) rangeHash(from, to events.Position) string {
	h := sha256.New()
	var b [8]byte
	put := func(n uint64) {
		binary.BigEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}
	for _, p := range []events.Position{from, to} {
		put(uint64(p.Turn))
		put(uint64(p.Index))
	}
	for n := from.Turn; n <= min(to.Turn, l.LastTurn()); n++ {
		t := &l.turns[n-1]
		h.Write(t.digest[:])
		put(uint64(t.settings))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// addJob notes a requested summary. A second job for the same range makes the first more urgent; either
// result is used.
func (l *Ledger) addJob(b *events.Job, since int64) {
	j := &pendingJob{
		IDs: []string{b.ID}, Lane: b.Lane, From: b.From, To: b.To, Hash: l.rangeHash(b.From, b.To),
		MaxUnits: b.MaxUnits, Tokens: measure.Tokens(b.EstimatedInput), Since: since, First: since, Manual: b.Manual,
	}
	if old := l.job; old != nil && old.Hash == j.Hash {
		j.IDs, j.First = append(j.IDs, old.IDs...), old.First
	} else {
		l.named = make([]idents.Key, 0, maxNames)
	}
	if p := l.prepared; p != nil && uint64(p.Seq) != b.Previous { // else it is used until the next one is ready
		l.prepared = nil
	}
	l.job = j
}

// Result is a session.summary, measured.
type Result struct {
	Seq  measure.Seq
	ID   string
	Time int64 // of the log, in Unix milliseconds

	summary *events.Summary
	units   int64 // of the message that carries it
	counted int64 // units that cost as much: more than units for dense text
	spare   stage.Spare
}

// NewResult measures the message of a session.summary.
func NewResult(s *events.Summary, seq measure.Seq) *Result {
	message := s.Message().Parts[0].Text
	text := measure.Meter{}.Text(message)
	return &Result{
		Seq: seq, ID: s.ID, summary: s, units: text.Units, counted: countedUnits(text), spare: spareOf(s, message),
	}
}

// countedUnits is the number of units that cost as much as a text of a summary.
func countedUnits(text weigh.Size) int64 { return max(text.Units, text.Base*measure.SummaryUnits) }

// spareOf measures the spare lines of a summary. They follow its record, so a summary without a record has
// none.
func spareOf(s *events.Summary, message string) (out stage.Spare) {
	if len(s.Spare) == 0 || len(s.Record) == 0 {
		return nil
	}
	has := map[string]bool{}
	for w := range idents.In(message) {
		has[w] = true
	}
	for i := range s.Spare {
		l := &s.Spare[i]
		size := measure.Meter{}.Text(l.String())
		size.Base++ // sums of parts are rounded separately
		line := stage.SpareLine{At: l.Position, Units: countedUnits(size)}
		for w := range idents.In(l.Text) {
			if !has[w] && len(line.Keys) < maxNames {
				line.Keys = append(line.Keys, idents.KeyOf(w))
			}
			has[w] = true
		}
		out = append(out, line)
	}
	return out
}

// resultMatch is how a result matches the job that a ledger waits for.
type resultMatch uint8

const (
	stale  resultMatch = iota // no job waits for it: after a rewind or another condensation, or a second result
	failed                    // no summary, or one above its job's ceiling or without a record
	fit
)

// matchResult compares a result with the job the ledger waits for.
func (l *Ledger) matchResult(r *Result) resultMatch {
	j := l.job
	if j == nil || !slices.Contains(j.IDs, r.summary.Job) || j.Hash != l.rangeHash(j.From, j.To) {
		return stale
	}
	if r.summary.Failure != "" || r.units > j.MaxUnits || r.summary.Record == nil {
		return failed
	}
	return fit
}

// receive takes a result: it ends the job, and prepares the summary.
func (l *Ledger) receive(r *Result) {
	l.date(r.Seq, r.Time)
	l.charge(r.summary)
	switch l.matchResult(r) {
	case failed:
		if r.summary.Failure == events.FailureBudget {
			l.breaker.Refused = r.Time
		} else {
			l.breaker.Failures++
			l.breaker.Last = r.Time
		}
		l.made.Failed++
		l.job = nil
	case fit:
		l.breaker.Failures, l.breaker.Refused = 0, 0
		made := &stage.Summary{Seq: r.Seq, From: l.job.From, To: l.job.To, Units: r.counted, Spare: r.spare}
		made = made.Use(l.named)
		if l.prepared != nil {
			made.Unused = l.prepared.Unused
		}
		l.prepared = made
		l.tookTime(r.Time - l.job.First)
		l.job = nil
	}
}

// charge counts the cost of a summary, also of a late one. The embedded summarizer costs nothing.
func (l *Ledger) charge(s *events.Summary) {
	money, unpriced := l.cache.config.Prices.Summary(s)
	l.cost.Summaries += int64(money)
	l.cost.Unpriced += unpriced
}

// lateMerge reports whether the prepared summary brings back content that a truncation hid: that is worth a
// small cost.
func (l *Ledger) lateMerge() bool {
	if l.prepared == nil {
		return false
	}
	for _, e := range l.visible() {
		if e.Kind == measure.KindTruncation && e.Position().Compare(l.prepared.To) <= 0 {
			return true
		}
	}
	return false
}
