package events

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AnyTenant stands for all tenants in a request of an operator.
const AnyTenant = "*"

// Sort is by what a list is in order.
type Sort string

// What lists of sessions and of tenants are in order of; the first is the default of sessions.
const (
	SortFill       Sort = "fill"       // share of the available input
	SortInput      Sort = "input"      // estimated input
	SortTurns      Sort = "turns"      // turns
	SortGrowth     Sort = "growth"     // tokens a turn
	SortRemaining  Sort = "remaining"  // turns until the trigger, the fewest first
	SortGeneration Sort = "generation" // compactions
	SortLastTurn   Sort = "last_turn"  // when the last turn came
	SortSaved      Sort = "saved"      // tokens that compactions removed
	SortName       Sort = "name"       // tenant and session, the first first
	SortSessions   Sort = "sessions"   // of a tenant
	SortLost       Sort = "lost"       // money on caches, of a tenant
	SortSummaries  Sort = "summaries"  // money for summaries, of a tenant
	SortRejected   Sort = "rejected"   // events of a tenant that were refused
)

// SessionSorts and TenantSorts are what each list may be in order of.
var (
	SessionSorts = []Sort{SortFill, SortInput, SortTurns, SortGrowth, SortRemaining, SortGeneration, SortLastTurn, SortSaved, SortName}
	TenantSorts  = []Sort{SortInput, SortSessions, SortSaved, SortLost, SortSummaries, SortRejected, SortLastTurn, SortName}
)

// Order is the direction of a list.
type Order string

// The directions.
const (
	OrderAscending  Order = "asc"
	OrderDescending Order = "desc"
)

// Ranking is which rows of all partitions a list has, and in which order.
type Ranking struct {
	Sort  Sort  `json:"sort,omitzero"`
	Order Order `json:"order,omitzero"` // absent: the largest first, but for remaining and name
	// Text is part of a tenant, of a session, or of the name of its model, in upper or lower case.
	Text string `json:"text,omitzero"`
	// Partition selects one, which its owner answers for; nil is all.
	Partition *int64 `json:"partition,omitzero"`
}

// Ascends reports whether the least is first.
func (r *Ranking) Ascends() bool {
	return r.Order == OrderAscending || r.Order == "" && (r.Sort == SortRemaining || r.Sort == SortName)
}

// Compare orders two places of the list: by value, and by address where that is equal.
func (r *Ranking) Compare(a, b Place) int {
	by := cmp.Compare(b.Value, a.Value)
	if r.Ascends() {
		by = -by
	}
	names := cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Session, b.Session))
	if r.Sort == SortName && r.Order == OrderDescending {
		names = -names
	}
	return cmp.Or(by, names)
}

// Place is a place in such a list: behind the row of a value and an address. On the wire it is a
// string that only workers read.
type Place struct {
	Value int64
	Address
}

// String writes the place as it travels.
func (p Place) String() string {
	return placePrefix + strconv.FormatInt(p.Value, 10) + "." + p.Tenant + "." + p.Session
}

// placePrefix begins a place, and no [SessionsCursor] without one.
const placePrefix = "@"

// MarshalText writes the place as it travels.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote. Its error is an [*Invalid].
func (p *Place) UnmarshalText(text []byte) error {
	rest, ok := strings.CutPrefix(string(text), placePrefix)
	value, name, named := strings.Cut(rest, ".")
	tenant, session, whole := strings.Cut(name, ".")
	n, err := strconv.ParseInt(value, 10, 64)
	if !ok || err != nil || !named || !whole || !ValidID(tenant) || session != "" && !ValidSession(session) {
		return NewInvalid(CodeOutOfRange, "after", "is none that an answer gave")
	}
	*p = Place{n, Address{tenant, session}}
	return nil
}

// placeBytes is what a place has beside the id of a session.
const placeBytes = 90

// ranking reads the fields of a ranking.
func (e *envelope) ranking(sorts []Sort) Ranking {
	r := Ranking{Text: e.words("text", MaxSearchBytes)}
	r.Sort, r.Order = choice(e, "sort", sorts), choice(e, "order", []Order{OrderAscending, OrderDescending})
	if _, ok := e.take("partition"); ok {
		n := e.count("partition", 0, maxPartition)
		r.Partition = &n
	}
	return r
}

// maxPartition bounds the number of a partition.
const maxPartition = 1<<16 - 1

// choice reads a text that is one of some, or "".
func choice[T ~string](e *envelope, name string, of []T) T {
	s := T(e.text(name))
	if s != "" && !slices.Contains(of, s) {
		e.problems.add(CodeBadType, name, "%s", "is none of "+strings.ReplaceAll(strings.Trim(fmt.Sprint(of), "[]"), " ", ", "))
	}
	return s
}

// place reads a place in the list; the zero value begins it.
func (e *envelope) place() (p Place) {
	v, ok := e.take("after")
	if !ok {
		return p
	}
	if text := e.boundedText("", "after", v, MaxIDLen+placeBytes); text != "" {
		e.problems.join(p.UnmarshalText([]byte(text)))
	}
	return p
}

// SubjectTenants lists the tenants of all partitions.
const SubjectTenants = "compactd.tenants"

// TenantsRequest lists tenants, some at a time. It is for operators.
type TenantsRequest struct {
	V int `json:"v,omitzero"`
	Ranking
	Limit int64 `json:"limit,omitzero"` // tenants to list; absent is [DefaultSessions]
	After Place `json:"after,omitzero"` // where to go on, as the answer before has it
}

// TenantsResponse lists tenants.
type TenantsResponse struct {
	V       int      `json:"v"`
	Total   int64    `json:"total"` // of all partitions that answered
	Tenants []Tenant `json:"tenants"`
	After   *Place   `json:"after,omitzero"` // where to go on; absent when all were listed
	// Missing are partitions that no worker serves now.
	Missing []int64 `json:"missing,omitzero"`
}

// Tenant is the sums over the sessions of a tenant that have not ended.
type Tenant struct {
	Tenant   string `json:"tenant"`
	LastTurn int64  `json:"last_turn_ms"` // of any session, in Unix milliseconds of the log
	Rejected int64  `json:"rejected"`     // events that were refused or need attention, as far as OUTCOMES has them
	// OutcomeBytes were stored for the tenant in the last hour, and OutcomeBound is how many may be; 0 is no bound.
	OutcomeBytes int64 `json:"outcome_bytes_hour"`
	OutcomeBound int64 `json:"outcome_bytes_bound,omitzero"`
	Sums
	Levels map[Level]int64 `json:"levels"`
	// Models are the sums of each model, the one with the most input first.
	Models []ModelSums `json:"models"`
}

// Sums are those over some sessions.
type Sums struct {
	Sessions    int64 `json:"sessions"`
	Turns       int64 `json:"turns"`
	Input       int64 `json:"input_tokens"` // estimated, of the next call of each
	Saved       int64 `json:"saved_tokens"` // that compactions removed
	Generations int64 `json:"generations"`
	Prepared    int64 `json:"prepared"` // sessions with a summary that is ready
	Waiting     int64 `json:"waiting"`  // sessions that wait for one
	Rereads     int64 `json:"rereads,omitzero"`
	Reruns      int64 `json:"reruns,omitzero"`
	Cost        Cost  `json:"cost,omitzero"`
}

// Plus is both together.
func (s Sums) Plus(o Sums) Sums {
	return Sums{
		s.Sessions + o.Sessions, s.Turns + o.Turns, s.Input + o.Input, s.Saved + o.Saved, s.Generations + o.Generations,
		s.Prepared + o.Prepared, s.Waiting + o.Waiting, s.Rereads + o.Rereads, s.Reruns + o.Reruns, s.Cost.Plus(o.Cost),
	}
}

// ModelSums are those over the sessions with a model.
type ModelSums struct {
	Model string `json:"model"` // provider/model
	Sums
}

// DecodeTenantsRequest reads the payload of a compactd.tenants. Its error is an [*Invalid].
func DecodeTenantsRequest(data []byte) (*TenantsRequest, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	r := &TenantsRequest{V: Version, Ranking: env.ranking(TenantSorts), Limit: env.count("limit", 1, MaxSessions), After: env.place()}
	return r, env.problems.err()
}
