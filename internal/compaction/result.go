package compaction

import (
	"slices"

	"compactd/internal/events"
)

// Result is a session.summary, read: what became of a job.
type Result struct {
	Seq  Seq
	ID   string
	Time int64 // of the log, in Unix milliseconds

	summary *events.Summary
	units   int64 // of the message that carries it
	counted int64 // as many units as it costs: more than it has where its text is dense
}

// ReadResult reads the payload of a session.summary. Its error is an
// [events.Invalid].
func ReadResult(data []byte, seq Seq) (*Result, []events.Message, error) {
	s, err := events.DecodeSummary(data)
	if err != nil {
		return nil, nil, err
	}
	m := s.Message()
	text := meter{}.text(m.Parts[0].Text)
	return &Result{
		Seq: seq, ID: s.ID, summary: s, units: text.Units, counted: max(text.Units, text.Base*summaryUnits),
	}, []events.Message{m}, nil
}

// summaryUnits is how many units of a summary count as a token.
const summaryUnits = 4

// pendingJob is a summary that was asked for.
type pendingJob struct {
	IDs      []string        `json:"ids"` // of the jobs for the one range; the first result wins
	Lane     events.Lane     `json:"lane"`
	From     events.Position `json:"from"`
	To       events.Position `json:"to"`
	Hash     string          `json:"hash"`
	MaxUnits int64           `json:"max_units"`
	Tokens   Tokens          `json:"tokens"` // estimated input when it was asked for
	Since    int64           `json:"since"`  // Unix milliseconds
	Manual   *events.Manual  `json:"manual,omitzero"`
}

// prepared is a summary that waits to take the place of its range.
type prepared struct {
	Seq   Seq             `json:"seq"` // where the log holds it
	From  events.Position `json:"from"`
	To    events.Position `json:"to"`
	Units int64           `json:"units"` // as it counts
}

// breaker counts what makes further summaries useless.
type breaker struct {
	Failures int64 `json:"failures"` // failed jobs in a row
	Thrashes int64 `json:"thrashes"` // compactions in a row that stayed at or above the trigger
	Last     int64 `json:"last"`     // when it last counted, in Unix milliseconds
}

// fitness says what a result means for a ledger.
type resultMatch uint8

const (
	stale  resultMatch = iota // nobody waits for it: rewound, condensed otherwise, or the second
	failed                    // there is no summary, or one that is larger than its job allowed
	fit
)

// judge compares a result with the job the ledger waits for.
func (l *Ledger) matchResult(r *Result) resultMatch {
	j := l.job
	if j == nil || !j.hasID(r.summary.Job) || j.Hash != l.rangeHash(j.From, j.To) {
		return stale
	}
	if r.summary.Failure != "" || r.units > j.MaxUnits {
		return failed
	}
	return fit
}

func (j *pendingJob) hasID(id string) bool { return slices.Contains(j.IDs, id) }

// receive takes a result: it ends the job, and prepares the summary.
func (l *Ledger) receive(r *Result) {
	l.date(r.Seq, r.Time)
	switch l.matchResult(r) {
	case failed:
		l.breaker.Failures++
		l.breaker.Last = r.Time
		l.job = nil
	case fit:
		l.breaker.Failures = 0
		l.prepared = &prepared{Seq: r.Seq, From: l.job.From, To: l.job.To, Units: r.counted}
		l.job = nil
	}
}

// ask notes that a summary was asked for. A second job for the same range makes
// the first one more urgent; either result will do.
func (l *Ledger) addJob(b *events.Job, since int64) {
	j := &pendingJob{
		IDs: []string{b.ID}, Lane: b.Lane, From: b.From, To: b.To, Hash: b.Hash,
		MaxUnits: b.MaxUnits, Tokens: Tokens(b.EstimatedInput), Since: since, Manual: b.Manual,
	}
	if old := l.job; old != nil && old.Hash == b.Hash {
		j.IDs = append(j.IDs, old.IDs...)
	}
	l.job, l.prepared = j, nil
}
