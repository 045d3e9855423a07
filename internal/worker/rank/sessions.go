package rank

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Sessions is a page of a list of sessions while it is made.
type Sessions struct {
	events.SessionsResponse
	in   *events.SessionsRequest
	text string
	most int
	rows []ranked
}

// ranked is a row with its place.
type ranked struct {
	place events.Place
	row   events.SessionSummary
}

// NewSessions returns the empty page of a request. The caller sets Missing, and Total except for the part that Add
// adds.
func NewSessions(in *events.SessionsRequest) *Sessions {
	return &Sessions{
		SessionsResponse: events.SessionsResponse{V: events.Version, Tenant: in.Tenant, Levels: map[events.Level]int64{}},
		in:               in, text: strings.ToLower(in.Text), most: int(cmp.Or(in.Limit, events.DefaultSessions)),
	}
}

// Add adds the page of a partition.
func (r *Sessions) Add(o *events.SessionsResponse) {
	r.Total += o.Total
	r.Matched += o.Matched
	for level, n := range o.Levels {
		r.Levels[level] += n
	}
	for i := range o.Sessions {
		r.rank(&o.Sessions[i])
	}
	if o.After != nil { // the partition has more rows
		r.SessionsResponse.After = o.After
	}
}

// Take adds a session if it matches.
func (r *Sessions) Take(a events.Address, o *compaction.Overview) {
	if r.in.Level != "" && o.Budget.Level != r.in.Level {
		return
	}
	name := events.SessionName(a.Session)
	if name == a.Session {
		name = ""
	}
	if r.text != "" && !strings.Contains(strings.ToLower(strings.Join([]string{a.Tenant, a.Session, name, modelName(o.Model)}, "\n")), r.text) {
		return
	}
	r.Matched++
	r.Levels[o.Budget.Level]++
	row := events.SessionSummary{
		Session: a.Session, Name: name, Turns: o.Turns, EstimatedInput: o.Budget.EstimatedInput, AvailableInput: o.Budget.AvailableInput,
		Level: o.Budget.Level, Generation: o.Budget.Generation, LastTurn: o.LastTurnAt, Rereads: o.Repeated.Rereads, Reruns: o.Repeated.Reruns, Cost: o.Cost,
		Tenant: a.Tenant, Provider: o.Model.Provider, Model: o.Model.Name, ContextWindow: o.Budget.ContextWindow,
		TriggerTokens: o.Budget.TriggerTokens, TargetTokens: o.Budget.TargetTokens, LimitTokens: o.Budget.LimitTokens,
		Growth: int64(o.Growth), Prepared: o.Prepared, Waiting: o.Waiting, Reason: o.Reason, Saved: int64(o.Saved),
	}
	if o.Growth > 0 {
		row.TurnsLeft = &o.TurnsLeft
	}
	r.rank(&row)
}

// rank keeps a row that comes after the cursor.
func (r *Sessions) rank(row *events.SessionSummary) {
	at := events.Place{Value: value(r.in.Sort, row), Address: events.Address{Tenant: row.Tenant, Session: row.Session}}
	if after := r.in.After.Place; after != (events.Place{}) && r.in.Compare(at, after) <= 0 {
		return
	}
	if r.rows = append(r.rows, ranked{at, *row}); len(r.rows) > 2*r.most+overflow {
		r.cut()
	}
}

// overflow is the number of extra rows that are kept before a sort.
const overflow = 256

// cut keeps the first rows, and sets After if there are more.
func (r *Sessions) cut() {
	slices.SortFunc(r.rows, func(a, b ranked) int { return r.in.Compare(a.place, b.place) })
	if len(r.rows) > r.most {
		r.rows = r.rows[:r.most]
		r.SessionsResponse.After = &events.SessionsCursor{}
	}
}

// Page returns the answer.
func (r *Sessions) Page() *events.SessionsResponse {
	r.cut()
	if r.Sessions = make([]events.SessionSummary, len(r.rows)); len(r.rows) > 0 && r.SessionsResponse.After != nil {
		r.SessionsResponse.After = &events.SessionsCursor{Place: r.rows[len(r.rows)-1].place}
	}
	for i := range r.rows {
		r.Sessions[i] = r.rows[i].row
	}
	return &r.SessionsResponse
}

// value returns the sort value of a session.
func value(by events.Sort, s *events.SessionSummary) int64 {
	switch by {
	case events.SortFill:
		return s.EstimatedInput * 1_000_000 / max(s.AvailableInput, 1)
	case events.SortInput:
		return s.EstimatedInput
	case events.SortTurns:
		return s.Turns
	case events.SortGrowth:
		return s.Growth
	case events.SortRemaining:
		if s.TurnsLeft == nil {
			return math.MaxInt32 // after all growing sessions
		}
		return *s.TurnsLeft
	case events.SortGeneration:
		return s.Generation
	case events.SortLastTurn:
		return s.LastTurn
	case events.SortSaved:
		return s.Saved
	}
	return 0 // sorted by name
}
