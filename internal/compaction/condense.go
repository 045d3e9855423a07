package compaction

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"compactd/internal/events"
)

// jobExpiry is how long a job may go without result before another may be asked
// for, in milliseconds of the log's time.
const jobExpiry = 15 * 60 * 1000

// Condense puts a summary in place of the range it covers: the messages after
// the leading system messages, up to and including to. Earlier summaries and
// markers in the range go with it; a marker that reaches beyond stays. Should
// turns behind the range have been withdrawn, so that calls in it await their
// results now, nothing changes.
func (d *Draft) Condense(seq Seq, to events.Position, units int64) {
	from := d.afterSystem()
	end := d.through(from, to)
	if end == from || end > d.awaiting() {
		return
	}
	s := Entry{Seq: seq, Kind: KindSummary, Role: RoleUser, Flags: FlagFirst, Parts: 1, Text: uint32(units)}
	d.hide(from, end, s)
	e := &d.edits[len(d.edits)-1]
	e.Op, e.Seq, e.Units, e.To = events.OpCondense, uint64(seq), units, &to
}

// spoken returns where the history begins after the leading system messages.
func (d *Draft) afterSystem() int {
	i := 0
	for i < len(d.entries) && d.entries[i].Role == RoleSystem {
		i++
	}
	return i
}

// through returns the first entry from position i on that reaches beyond to.
func (d *Draft) through(i int, to events.Position) int {
	for i < len(d.entries) && d.entries[i].end().Compare(to) <= 0 {
		i++
	}
	return i
}

// condensable returns the smallest range from the beginning after which at most
// recent tokens stay; when there is none, the largest that leaves a message, since
// a summary says that recent ones follow; its end is 0 when there is nothing, or
// not more than four messages. No range ends beyond turn last. fresh is what of it
// is not summary already.
func (d *Draft) condensable(recent Tokens, last int64) (end int, saved, fresh Tokens) {
	if d.messages() <= minMessages {
		return 0, 0, 0
	}
	var best cut
	total, start := d.Tokens(), d.afterSystem()
	for c := range d.cuts(start) {
		if d.entries[c.end-1].end().Turn > last {
			break
		}
		best = c
		if total-c.saved <= recent {
			break
		}
	}
	fresh = best.saved
	for i := start; i < best.end; i++ {
		if d.entries[i].Kind == KindSummary {
			fresh -= d.costs[i]
		}
	}
	return best.end, best.saved, fresh
}

// newest returns where the newest n messages begin, markers not counted.
func (d *Draft) newest(n int) int {
	for i, e := range slices.Backward(d.entries) {
		if e.Flags.has(FlagFirst) && e.Kind != KindTruncation {
			if n--; n == 0 {
				return i
			}
		}
	}
	return 0
}

// ceiling is the most that a summary may cost, record included.
func (p *SummarizePolicy) ceiling(available Tokens) Tokens {
	return min(p.CeilingTokens, p.CeilingShare.share(available))
}

// maySummarize reports whether summaries are on for the session at a time.
func (l *Ledger) maySummarize(now int64) bool {
	p := &l.cache.policy.Summarize
	open := max(l.breaker.Failures, l.breaker.Thrashes) >= p.Failures
	return p.Enabled && (!open || now-l.breaker.Last >= p.CooldownSeconds*1000)
}

// waits reports whether a job is under way whose result may still be used.
func (l *Ledger) waits(now int64) bool {
	return l.job != nil && now-l.job.Since < jobExpiry && l.cache.policy.Summarize.Enabled
}

// waitsAtTrigger reports whether such a job was asked for at the trigger.
// See docs/adr/0005.
func (l *Ledger) waitsAtTrigger(now int64) bool {
	return l.waits(now) && l.job.Lane != events.LaneBackground
}

// maxJobTurns bounds the turns that a job lists: a session may hold a million
// empty ones, and a job must fit into a message.
const maxJobTurns = 10_000

// wanted says what summary is wanted.
// See docs/adr/0007.
type jobSpec struct {
	lane    events.Lane
	recent  Tokens // most that shall stay beside it
	ceiling Tokens // most that it may cost
	least   Tokens // of its range, that must not be summary already
	small   bool   // of a small range too: it costs a third of that at most
	old     bool   // of what will leave the log: the same, and leastOld whatever its range costs
}

// planJob returns the job for a summary of what would have to go, nil when it is
// not worth it or under way.
func (d *decision) planJob(l *Ledger, lane events.Lane) *events.Job {
	g := &l.cache
	available := g.thresholds.available
	w := jobSpec{lane: lane, ceiling: g.policy.Summarize.ceiling(available), least: retryShare.share(available)}
	w.recent = l.availableFor(g.thresholds.target) - w.ceiling
	if lane == events.LaneBackground { // the history grows until the trigger
		w.recent -= max(g.thresholds.trigger-g.thresholds.prepare, 0)
	}
	draft := newDraft(l.visible(), l.format, g.rate)
	draft.dropRestored() // the next summary decides anew what is restored
	return d.jobFor(l, draft, w)
}

// jobFor returns the job for the summary that is wanted of a history.
func (d *decision) jobFor(l *Ledger, draft *Draft, w jobSpec) *events.Job {
	g := &l.cache
	start, entries := draft.afterSystem(), draft.Entries()
	if start == len(entries) {
		return nil
	}
	first := &entries[start]
	job := &events.Job{
		Config: d.config.Hash(), CausedBy: d.cause(), Lane: w.lane, Format: l.format,
		From: messageOf(first.position()), EstimatedInput: l.Budget().EstimatedInput,
	}
	job.Turn = job.From.Turn
	if first.Kind == KindSummary {
		covered := messageOf(first.end())
		job.Previous, job.PreviousTo, job.Turn = uint64(first.Seq), &covered, covered.Turn
	}
	end, saved, fresh := draft.condensable(w.recent, job.Turn+maxJobTurns-1)
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
	maxUnits := draft.unitsAtDensity(g.rate.units(w.ceiling))
	if !ok || maxUnits <= 0 {
		return nil
	}
	job.To, job.MaxUnits = messageOf(entries[end-1].end()), maxUnits
	for n := job.Turn; n <= job.To.Turn; n++ {
		job.Seqs = append(job.Seqs, uint64(l.turns[n-1].seq))
	}
	job.Hash = l.rangeHash(job.From, job.To)
	if l.waits(d.now) && l.job.Hash == job.Hash && l.job.Lane == w.lane {
		return nil
	}
	return job
}

// underWay returns where the range of a job in the background ends, if its
// summary would bring the session below prepare: then it only becomes more
// urgent, since another range would throw away what is nearly done. Else 0.
func (d *decision) underWay(l *Ledger, draft *Draft, start int, ceiling Tokens) int {
	if !l.waits(d.now) || l.waitsAtTrigger(d.now) {
		return 0
	}
	end, entries := draft.through(start, l.job.To), draft.Entries()
	if end == start || entries[end-1].end() != l.job.To || entries[start].position() != l.job.From {
		return 0
	}
	after := draft.TokensFrom(end) + ceiling
	if l.input(after) >= l.cache.thresholds.prepare {
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

// messageOf drops the part of a position.
func messageOf(p events.Position) events.Position { p.Part = 0; return p }

// units is the size of a text that costs at most t tokens as a message.
func (r Rate) units(t Tokens) int64 {
	return int64(t-r.PerMessage) * r.of / r.times * r.TextUnits
}

// written returns how many of n units a summary may have if its text is as dense as
// what was said: a Chinese conversation has a Chinese summary.
func (d *Draft) unitsAtDensity(n int64) int64 {
	var said size
	for i := range d.entries {
		if e := &d.entries[i]; e.Kind == KindWords && e.JSON == 0 {
			said.Units += int64(e.Text)
			said.Base += int64(e.Base)
		}
	}
	if !d.rate.Classes || said.Base*summaryUnits <= said.Units {
		return n
	}
	return n / summaryUnits * said.Units / said.Base
}

// rangeHash is the identity of a range: that of its turns and its borders.
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
		put(uint64(l.turns[n-1].hash))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// lateMerge reports whether the prepared summary gives back what a truncation
// took: then it is worth having even if it costs a little.
// See docs/adr/0006.
func (l *Ledger) lateMerge() bool {
	if l.prepared == nil {
		return false
	}
	for _, e := range l.visible() {
		if e.Kind == KindTruncation && e.position().Compare(l.prepared.To) <= 0 {
			return true
		}
	}
	return false
}
