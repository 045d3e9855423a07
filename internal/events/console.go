package events

import (
	"cmp"
	"encoding"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// AnyTenant stands for all tenants in a request of an operator.
const AnyTenant = "*"

// Sort is the field that orders a list.
type Sort string

// Orders of lists of sessions and of tenants; the first is the default of sessions.
const (
	SortFill       Sort = "fill"       // share of the available input
	SortInput      Sort = "input"      // estimated input
	SortTurns      Sort = "turns"      // turns
	SortGrowth     Sort = "growth"     // tokens a turn
	SortRemaining  Sort = "remaining"  // turns until the trigger, the fewest first
	SortGeneration Sort = "generation" // compactions
	SortLastTurn   Sort = "last_turn"  // time of the last turn
	SortSaved      Sort = "saved"      // tokens that compactions removed
	SortName       Sort = "name"       // tenant and session, the first first
	SortSessions   Sort = "sessions"   // of a tenant
	SortLost       Sort = "lost"       // money on caches, of a tenant
	SortSummaries  Sort = "summaries"  // money for summaries, of a tenant
	SortSpent      Sort = "spent"      // money for input and summaries, of a tenant
	SortRejected   Sort = "rejected"   // events of a tenant that were refused
)

// SessionSorts and TenantSorts are the fields that can order each list.
var (
	SessionSorts = []Sort{SortFill, SortInput, SortTurns, SortGrowth, SortRemaining, SortGeneration, SortLastTurn, SortSaved, SortName}
	TenantSorts  = []Sort{SortInput, SortSpent, SortSessions, SortSaved, SortLost, SortSummaries, SortRejected, SortLastTurn, SortName}
)

// Order is the direction of a list.
type Order string

// The directions.
const (
	OrderAscending  Order = "asc"
	OrderDescending Order = "desc"
)

// Ranking selects and orders the rows of all partitions.
type Ranking struct {
	Sort  Sort  `json:"sort,omitzero"`
	Order Order `json:"order,omitzero"` // absent: the largest first; for remaining and name the least
	// Text is part of a tenant, of a session, or of the name of its model, in upper or lower case.
	Text string `json:"text,omitzero"`
	// Partition selects the partition whose owner answers; nil is all.
	Partition *int64 `json:"partition,omitzero"`
}

// Ascends reports whether the least is first.
func (r *Ranking) Ascends() bool {
	return r.Order == OrderAscending || r.Order == "" && (r.Sort == SortRemaining || r.Sort == SortName)
}

// Compare orders two places of the list: by value, then by address.
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

// Place is a place in such a list: after the row with a value and an address. On the wire it is a string that
// only workers read.
type Place struct {
	Value int64
	Address
}

// String is the place on the wire.
func (p Place) String() string {
	return placePrefix + strconv.FormatInt(p.Value, 10) + "." + p.Tenant + "." + p.Session
}

// placePrefix distinguishes a place from a [SessionsCursor].
const placePrefix = "@"

// MarshalText is String.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a String. Its error is an [*Invalid].
func (p *Place) UnmarshalText(text []byte) error {
	rest, ok := strings.CutPrefix(string(text), placePrefix)
	value, name, named := strings.Cut(rest, ".")
	tenant, session, whole := strings.Cut(name, ".")
	n, err := strconv.ParseInt(value, 10, 64)
	if !ok || err != nil || !named || !whole || !ValidID(tenant) || session != "" && !ValidSession(session) {
		return NewInvalid(CodeOutOfRange, "after", "is not a cursor of an answer")
	}
	*p = Place{n, Address{tenant, session}}
	return nil
}

// placeBytes is the size of a place beside the id of a session.
const placeBytes = 90

// ranking reads the fields of a ranking.
func (e *envelope) ranking(r *Ranking, sorts []Sort) {
	e.wordsAt("text", &r.Text, MaxSearchBytes)
	choice(e, "sort", &r.Sort, sorts)
	choice(e, "order", &r.Order, []Order{OrderAscending, OrderDescending})
	e.countedAt("partition", &r.Partition, 0, maxPartition)
}

// maxPartition bounds the number of a partition.
const maxPartition = 1<<16 - 1

// choice reads a text that is one of a list, or "".
func choice[T ~string](e *envelope, name string, at *T, of []T) {
	s := string(*at)
	e.textAt(name, &s, maxNameBytes)
	if *at = T(s); s != "" && !slices.Contains(of, *at) {
		e.problems.add(CodeBadType, name, "%s", "is none of "+strings.ReplaceAll(strings.Trim(fmt.Sprint(of), "[]"), " ", ", "))
	}
}

// after reads a place in a list; without one it begins.
func (e *envelope) after(place encoding.TextUnmarshaler) {
	v, ok := e.take("after")
	if !ok {
		return
	}
	if text := e.boundedText("", "after", v, MaxIDLen+placeBytes); text != "" {
		e.problems.join(place.UnmarshalText([]byte(text)))
	}
}

// SubjectTenants lists the tenants of all partitions.
const SubjectTenants = "compactd.tenants"

// NanoPerCent is a US cent in billionths of a dollar, which amounts of money are in.
const NanoPerCent = 10_000_000

// TenantsRequest lists tenants, some at a time. It is for operators.
type TenantsRequest struct {
	V int `json:"v,omitzero"`
	Ranking
	Limit int64 `json:"limit,omitzero"` // tenants to list; absent is [DefaultSessions]
	After Place `json:"after,omitzero"` // the position of the next page, from the answer before
}

// TenantsResponse lists tenants.
type TenantsResponse struct {
	V       int      `json:"v"`
	Total   int64    `json:"total"` // of all partitions that answered
	Tenants []Tenant `json:"tenants"`
	After   *Place   `json:"after,omitzero"` // the position of the next page; absent at the end
	// Missing are partitions that no worker serves now.
	Missing []int64 `json:"missing,omitzero"`
}

// Tenant has sums over the sessions of a tenant that have not ended.
type Tenant struct {
	Tenant   string `json:"tenant"`
	LastTurn int64  `json:"last_turn_ms"` // of any session, in Unix milliseconds of the log
	Rejected int64  `json:"rejected"`     // events that were refused or need attention, as far as OUTCOMES has them
	// OutcomeBytes were stored for the tenant in the last hour, at most OutcomeBound; 0 is no bound.
	OutcomeBytes int64 `json:"outcome_bytes_hour"`
	OutcomeBound int64 `json:"outcome_bytes_bound,omitzero"`
	// Month is the cost of summaries by models in this calendar month, in UTC, as far as the log has it,
	// including sessions that have ended. MonthCents is its bound in US cents; 0 is no bound.
	Month      int64 `json:"month_nano_usd,omitzero"`
	MonthCents int64 `json:"month_cents_bound,omitzero"`
	Sums
	Levels map[Level]int64 `json:"levels"`
	// Models are the sums of each model, the one with the most input first.
	Models []ModelSums `json:"models"`
}

// Sums are over some sessions.
type Sums struct {
	Sessions    int64 `json:"sessions"`
	Turns       int64 `json:"turns"`
	Input       int64 `json:"input_tokens"` // estimated, of the next call of each
	Saved       int64 `json:"saved_tokens"` // by compactions, less the tokens that rewinds brought back
	Generations int64 `json:"generations"`
	Prepared    int64 `json:"prepared"` // sessions with a summary that is ready
	Waiting     int64 `json:"waiting"`  // sessions that wait for one
	Rereads     int64 `json:"rereads,omitzero"`
	Reruns      int64 `json:"reruns,omitzero"`
	Cost        Cost  `json:"cost,omitzero"`

	Summaries SummaryCounts `json:"summaries,omitzero"`
}

// Plus adds two sums.
func (s Sums) Plus(o Sums) Sums {
	return Sums{
		s.Sessions + o.Sessions, s.Turns + o.Turns, s.Input + o.Input, s.Saved + o.Saved, s.Generations + o.Generations,
		s.Prepared + o.Prepared, s.Waiting + o.Waiting, s.Rereads + o.Rereads, s.Reruns + o.Reruns, s.Cost.Plus(o.Cost),
		s.Summaries.Plus(o.Summaries),
	}
}

// ModelSums are over the sessions with a model.
type ModelSums struct {
	Model string `json:"model,omitzero"` // provider/model, "" for sessions without one
	Sums
}

func (r *TenantsRequest) read(env *envelope) {
	r.V = Version
	env.ranking(&r.Ranking, TenantSorts)
	env.countAt("limit", &r.Limit, 1, MaxSessions)
	env.after(&r.After)
}

// TimelineResponse has the growth of a session, and the tokens that its compactions removed. Its request is a
// [ContextRequest] without a page.
type TimelineResponse struct {
	V          int     `json:"v"`
	Known      bool    `json:"known"` // false: no turn of the session was taken or parked
	Generation int64   `json:"generation"`
	Through    Through `json:"through"`
	Provider   string  `json:"provider,omitzero"`
	Model      string  `json:"model,omitzero"`
	Format     Format  `json:"format,omitzero"`
	// Thresholds are those of the present [Budget].
	ContextWindow  int64           `json:"context_window"`
	AvailableInput int64           `json:"available_input_tokens"`
	TriggerTokens  int64           `json:"trigger_tokens"`
	TargetTokens   int64           `json:"target_tokens"`
	LimitTokens    int64           `json:"limit_tokens"`
	Input          int64           `json:"input_tokens"` // of the next call, as in [Budget]
	Turns          []TimelineTurn  `json:"turns"`
	Generations    []TimelineShift `json:"generations"`
}

// TimelineTurn is a session at the decision about a turn, before the compactions that it caused.
type TimelineTurn struct {
	Turn      int64  `json:"turn"`
	Seq       uint64 `json:"seq"`              // in the log
	Added     int64  `json:"added_tokens"`     // by the turn, by estimate alone
	Input     int64  `json:"input_tokens"`     // of the budget then
	Published int64  `json:"published_tokens"` // the budget without compactions
}

// TimelineShift is a compaction or a rewind.
type TimelineShift struct {
	Generation int64  `json:"generation"`
	Turn       int64  `json:"turn"`          // the last one before it
	From       int64  `json:"from"`          // the generation whose view it changed
	Before     int64  `json:"tokens_before"` // as in [Compacted]
	After      int64  `json:"tokens_after"`
	Saved      int64  `json:"saved_tokens"` // negative for a rewind
	Reason     Reason `json:"reason,omitzero"`
}

// ChangesResponse is a history before and after a compaction, message by message: one page of
// it. Its request is a [ContextRequest].
type ChangesResponse struct {
	V          int      `json:"v"`
	Known      bool     `json:"known"` // false: no turn of the session was taken or parked
	Generation int64    `json:"generation"`
	Through    int64    `json:"through_turn"` // the last turn that it changed
	Format     Format   `json:"format,omitzero"`
	Before     int64    `json:"tokens_before"` // of all messages, by estimate
	After      int64    `json:"tokens_after"`
	Rows       []Change `json:"rows"`
	// Summary is the summary that it put in place, as far as OUTCOMES has it; nil for none.
	Summary *Summary `json:"summary,omitzero"`
	Page    int64    `json:"page"`
	Pages   int64    `json:"pages"`
}

// Action is the change of a message by a compaction.
type Action string

// The actions.
const (
	ActionKept    Action = "kept"
	ActionChanged Action = "changed"
	ActionRemoved Action = "removed"
	ActionAdded   Action = "added"
)

// Change is one message before and after a compaction, with at most 16 KiB of the texts of its parts.
type Change struct {
	Action       Action       `json:"action"`
	Op           Op           `json:"op,omitzero"`   // the edit, if known
	Turn         int64        `json:"turn,omitzero"` // 0 for a message of compactd
	Index        int64        `json:"index"`
	Role         dialect.Role `json:"role"`
	TokensBefore int64        `json:"tokens_before,omitzero"`
	TokensAfter  int64        `json:"tokens_after,omitzero"`
	Before       string       `json:"before,omitzero"` // of a message that was kept too
	After        string       `json:"after,omitzero"`
	Cut          bool         `json:"cut,omitzero"` // a text is longer than this
}

// XrayResponse has the estimated contents of a window. Its request is a [ContextRequest] without a page.
type XrayResponse struct {
	V              int         `json:"v"`
	Known          bool        `json:"known"` // false: no turn of the session was taken or parked
	Generation     int64       `json:"generation"`
	AvailableInput int64       `json:"available_input_tokens"`
	Input          int64       `json:"input_tokens"` // the sum of Kinds
	Kinds          []XrayKind  `json:"kinds"`        // the largest first
	Largest        []XrayEntry `json:"largest"`      // at most ten
	Valid          bool        `json:"valid"`        // by the rules of the provider
	Violations     []Violation `json:"violations,omitzero"`
}

// ContentKind is the kind of a part of a call.
type ContentKind string

// The kinds of content.
const (
	ContentSystem      ContentKind = "system"
	ContentTool        ContentKind = "tool_definition"
	ContentUser        ContentKind = "user"
	ContentAssistant   ContentKind = "assistant"
	ContentThinking    ContentKind = "thinking"
	ContentCall        ContentKind = "call"
	ContentResult      ContentKind = "result"
	ContentMedia       ContentKind = "media"
	ContentSummary     ContentKind = "summary"
	ContentRecord      ContentKind = "record"      // facts of a summary
	ContentPlaceholder ContentKind = "placeholder" // in place of removed content
	ContentCorrection  ContentKind = "correction"  // the provider's count beyond the estimates
)

// XrayKind is the sum of one kind, of definitions, calls and results for each tool.
type XrayKind struct {
	Kind   ContentKind `json:"kind"`
	Name   string      `json:"name,omitzero"` // of the tool
	Tokens int64       `json:"tokens"`
	Count  int64       `json:"count,omitzero"`
}

// XrayEntry is one part of a history.
type XrayEntry struct {
	Kind    ContentKind `json:"kind"`
	Name    string      `json:"name,omitzero"` // of the tool
	Turn    int64       `json:"turn,omitzero"` // 0 for a part of compactd
	Index   int64       `json:"index"`
	Tokens  int64       `json:"tokens"`
	Excerpt string      `json:"excerpt,omitzero"`
}

// Violation is a rule of a provider that a history breaks.
type Violation struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Index   int64  `json:"index"` // of the message; -1 for the history as a whole
}

// PreviewRequest requests the result that a session.compact would have.
type PreviewRequest struct {
	About
	// Focus and Policy are those of the session.compact.
	Focus  string    `json:"focus,omitzero"`
	Policy codec.Raw `json:"policy,omitzero"`
}

func (r *PreviewRequest) read(env *envelope) {
	env.only("v", "tenant", "session", "focus", "policy")
	env.aboutAt(&r.About)
	env.wordsAt("focus", &r.Focus, MaxFocusBytes)
	env.raw("policy", &r.Policy, '{')
}

// MaxWhatIf bounds the policies that one request compares with the one in force.
const MaxWhatIf = 4

// WhatIfRequest replays a session under other policies.
type WhatIfRequest struct {
	About
	// Set has a list for each policy: fields of the policy in force with other values, such as target=0.5.
	Set [][]string `json:"set"`
}

func (r *WhatIfRequest) read(env *envelope) {
	env.only("v", "tenant", "session", "set")
	env.aboutAt(&r.About)
	v, ok := env.take("set")
	if ok && codec.Unmarshal(v, &r.Set) != nil || len(r.Set) > MaxWhatIf {
		env.problems.add(CodeBadType, "set", "is not a list of at most %d lists such as [\"target=0.5\"]", MaxWhatIf)
	}
}

// WhatIfResponse has the log of a session, decided again.
type WhatIfResponse struct {
	V int `json:"v"`
	// Policies are the figures of each, as in worker replay --json, with its set; the recorded ones come
	// first.
	Policies []codec.Raw `json:"policies"`
}

// PreviewResponse is the result that a session.compact would have now. Nothing is changed.
type PreviewResponse struct {
	V        int    `json:"v"`
	Known    bool   `json:"known"` // false: no turn of the session was taken or parked
	Accepted bool   `json:"accepted"`
	Code     Code   `json:"code,omitzero"` // why it would change nothing
	Message  string `json:"message,omitzero"`
	Hint     string `json:"hint,omitzero"`
	// Compaction is the outcome that would be published; nil if it would wait for a summary.
	Compaction *HistoryEntry `json:"compaction,omitzero"`
	Edits      int64         `json:"edits,omitzero"`
	Summary    *SummaryRange `json:"summary,omitzero"` // to be requested; nil for none
}

// SummaryRange is the range of a summary to be requested.
type SummaryRange struct {
	Lane     Lane     `json:"lane"`
	From     Position `json:"from"`
	To       Position `json:"to"`
	Provider string   `json:"provider,omitzero"` // of the model that the policy names
	Model    string   `json:"model,omitzero"`
}

// SubjectFleet requests the state of all workers.
const SubjectFleet = "compactd.fleet"

// FleetRequest requests the state of all workers. It is for operators.
type FleetRequest struct {
	V int `json:"v,omitzero"`
	// Partition selects one, which its owner answers for; nil is all.
	Partition *int64 `json:"partition,omitzero"`
}

func (r *FleetRequest) read(env *envelope) {
	r.V = Version
	env.countedAt("partition", &r.Partition, 0, maxPartition)
}

// FleetResponse has the owner of each partition, and the state of the workers.
type FleetResponse struct {
	V          int              `json:"v"`
	Time       int64            `json:"time_ms"` // of the worker that answers
	Partitions []FleetPartition `json:"partitions"`
	Workers    []FleetWorker    `json:"workers"`
	Lanes      []FleetLane      `json:"lanes"`
	Models     []FleetModel     `json:"models"`
	Feed       []FleetNote      `json:"feed"` // of all workers, the newest first
}

// FleetPartition is one partition. Times are in Unix milliseconds, 0 if unknown.
type FleetPartition struct {
	Partition  int64  `json:"partition"`
	Owner      string `json:"owner"`  // of the newest commit, "" before the first
	Leased     bool   `json:"leased"` // a worker holds its lease; without one no worker serves it
	LeaseAge   int64  `json:"lease_age_ms,omitzero"`
	Served     bool   `json:"served"` // its owner answered
	Epoch      uint64 `json:"epoch"`
	Cursor     uint64 `json:"cursor"` // of the last event whose outcomes are stored
	Behind     uint64 `json:"behind"` // events behind it
	Lag        int64  `json:"lag_ms"` // age of the first event behind it
	Sessions   int64  `json:"sessions,omitzero"`
	Acquired   int64  `json:"acquired_ms,omitzero"`
	Checkpoint int64  `json:"checkpoint_ms,omitzero"`
	Snapshot   int64  `json:"snapshot_ms,omitzero"`
	Bytes      int64  `json:"snapshot_bytes,omitzero"`

	Commits *FleetCommits `json:"commits,omitzero"`
}

// FleetCommits are the commits of the last minute, nil for none. Times are in microseconds.
type FleetCommits struct {
	Count   int64 `json:"count"`
	P50     int64 `json:"p50_us"` // half of them took at most this
	P99     int64 `json:"p99_us"`
	Longest int64 `json:"longest_us"`
}

// FleetWorker is one worker.
type FleetWorker struct {
	Owner      string `json:"owner"`
	Name       string `json:"name,omitzero"` // that outlives a restart
	Version    string `json:"version,omitzero"`
	Config     string `json:"config,omitzero"` // hash of the config in force
	HTTP       string `json:"http,omitzero"`   // address of its console
	Status     Health `json:"status,omitzero"`
	Partitions int64  `json:"partitions"` // that it should serve
	Started    int64  `json:"started_ms,omitzero"`
	CPU        int64  `json:"cpu_ms,omitzero"` // that the process has used
	CPUs       int64  `json:"cpus,omitzero"`
	Memory     int64  `json:"memory_bytes,omitzero"`
	MaxMemory  int64  `json:"memory_limit_bytes,omitzero"`
	Answered   bool   `json:"answered"` // false: only its name is known

	Lag     int64         `json:"lag_ms"` // the longest of its partitions
	Commits *FleetCommits `json:"commits,omitzero"`
}

// FleetLane is a lane of summary jobs.
type FleetLane struct {
	Lane    Lane  `json:"lane"`
	Waiting int64 `json:"waiting"` // jobs that no summarizer has taken
	Running int64 `json:"running"` // jobs that one has taken and not finished
}

// FleetModel is a model of a worker that was called lately.
type FleetModel struct {
	Owner   string `json:"owner"`
	Model   string `json:"model"`
	Circuit string `json:"circuit"` // closed, failing or open
}

// FleetNote is an incident of a worker.
type FleetNote struct {
	Time      int64  `json:"time_ms"`
	Owner     string `json:"owner"`
	Partition *int64 `json:"partition,omitzero"`
	Kind      string `json:"kind"` // acquired, released, failed, quarantined, foreign, retrying, summary_failed or outcomes_limited
	Text      string `json:"text,omitzero"`
}
