package events

import (
	"strconv"
	"strings"
)

// SubjectSessions lists the sessions of a tenant.
const SubjectSessions = "compactd.sessions"

// Bounds of a list of sessions.
const (
	MaxSessions     = 500
	DefaultSessions = 100
)

// SessionsRequest lists the sessions of a tenant, some at a time.
type SessionsRequest struct {
	V      int    `json:"v,omitzero"`
	Tenant string `json:"tenant,omitzero"` // absent: [DefaultTenant]; "*" is any, for operators
	Limit  int64  `json:"limit,omitzero"`  // sessions to list; absent is [DefaultSessions]
	// After is the position of the next page, from the answer before; the zero value begins.
	After SessionsCursor `json:"after,omitzero"`
	// Ranking lists the sessions of all partitions in one order; without Sort, and of one tenant,
	// they are listed by partition and name.
	Ranking
	Level Level `json:"level,omitzero"` // of those to list; absent is any
}

// Ranks reports whether the list is in one order over all partitions.
func (r *SessionsRequest) Ranks() bool { return r.Sort != "" || r.Tenant == AnyTenant }

// SessionsResponse lists sessions by partition and name. A page may have fewer than requested, even none,
// before the end: each worker answers for the partitions that it serves.
type SessionsResponse struct {
	V        int              `json:"v"`
	Tenant   string           `json:"tenant"`
	Sessions []SessionSummary `json:"sessions"`
	// After is the position of the next page; absent at the end.
	After *SessionsCursor `json:"after,omitzero"`

	// For an ordered list: the number of sessions, of those that match the request, and of these at each
	// level.
	Total   int64           `json:"total,omitzero"`
	Matched int64           `json:"matched,omitzero"`
	Levels  map[Level]int64 `json:"levels,omitzero"`
	// Missing are partitions that no worker serves now.
	Missing []int64 `json:"missing,omitzero"`
}

// SessionSummary is the state of one session.
type SessionSummary struct {
	Session string `json:"session"`
	// Name is the free name that Session encodes; "" if it is the id itself.
	Name           string `json:"name,omitzero"`
	Turns          int64  `json:"turns"`
	EstimatedInput int64  `json:"estimated_input_tokens"`
	AvailableInput int64  `json:"available_input_tokens"`
	Level          Level  `json:"level"`
	Generation     int64  `json:"generation"`
	// LastTurn is the time at which its last turn was taken or parked, in Unix milliseconds of the log.
	LastTurn int64 `json:"last_turn_ms"`
	// Rereads and Reruns are calls that repeat one whose result a compaction had taken out of
	// view, since the first turn: reads of files, and calls of other tools. Cost is since then too.
	Rereads int64 `json:"rereads,omitzero"`
	Reruns  int64 `json:"reruns,omitzero"`
	Cost    Cost  `json:"cost,omitzero"` // absent before anything that has a price

	// Only in an ordered list. Thresholds are those of [Budget].
	Tenant        string `json:"tenant,omitzero"`
	Provider      string `json:"provider,omitzero"`
	Model         string `json:"model,omitzero"`
	ContextWindow int64  `json:"context_window,omitzero"`
	TriggerTokens int64  `json:"trigger_tokens,omitzero"`
	TargetTokens  int64  `json:"target_tokens,omitzero"`
	LimitTokens   int64  `json:"limit_tokens,omitzero"`
	Growth        int64  `json:"growth_tokens,omitzero"` // mean of the last turns
	// TurnsLeft is the number of turns of that growth below the trigger, 100 at most; nil without growth.
	TurnsLeft *int64 `json:"turns_left,omitzero"`
	Prepared  bool   `json:"prepared,omitzero"`     // a summary is ready
	Waiting   bool   `json:"waiting,omitzero"`      // a summary was requested
	Reason    Reason `json:"reason,omitzero"`       // of the newest generation
	Saved     int64  `json:"saved_tokens,omitzero"` // by its compactions, less the tokens that rewinds brought back
}

// cursorBytes is the size of a cursor beside the id of a session.
const cursorBytes = 16

// maxIDBytes bounds the text of a session's id.
const maxIDBytes = MaxIDLen + cursorBytes

// SessionsCursor is a place in the list: after a session, or before all of a partition. On the wire it is a
// string that only workers read.
type SessionsCursor struct {
	Partition int
	Session   string // "" is before the first
	// Place is a place in an ordered list, whose cursors have nothing else.
	Place Place
}

// String writes the cursor as it travels.
func (c SessionsCursor) String() string {
	if c.Place != (Place{}) {
		return c.Place.String()
	}
	return strconv.Itoa(c.Partition) + "." + c.Session
}

// MarshalText writes the cursor as it travels.
func (c SessionsCursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote. Its error is an [*Invalid].
func (c *SessionsCursor) UnmarshalText(text []byte) error {
	if strings.HasPrefix(string(text), placePrefix) {
		return c.Place.UnmarshalText(text)
	}
	partition, session, ok := strings.Cut(string(text), ".")
	n, err := strconv.ParseUint(partition, 10, 16)
	if !ok || err != nil || session != "" && !ValidSession(session) {
		return NewInvalid(CodeOutOfRange, "after", "is not a cursor of an answer")
	}
	*c = SessionsCursor{Partition: int(n), Session: session}
	return nil
}

func (r *SessionsRequest) read(env *envelope) {
	r.V = Version
	if v, _ := env.take("tenant"); string(v) == `"`+AnyTenant+`"` {
		r.Tenant = AnyTenant
	} else if r.Tenant != AnyTenant {
		env.tenantAt(&r.Tenant)
	}
	env.countAt("limit", &r.Limit, 1, MaxSessions)
	env.ranking(&r.Ranking, SessionSorts)
	choice(env, "level", &r.Level, Levels)
	env.after(&r.After)
}

// tenantAt reads the field of that name.
func (e *envelope) tenantAt(at *string) {
	if _, ok := e.take("tenant"); !ok && *at == "" {
		*at = DefaultTenant
	}
	before := len(e.problems)
	e.textAt("tenant", at, maxNameBytes)
	if len(e.problems) == before && !ValidID(*at) {
		e.problems.add(CodeBadID, "tenant", "is not 1 to 64 of A-Z a-z 0-9 _ -")
	}
}

// SubjectFiles lists the files that a session has read and changed.
const SubjectFiles = "compactd.files"

// FilesPerPage is the number of files in an answer.
const FilesPerPage = 100

// FilesRequest lists the files of a session.
type FilesRequest struct {
	About
	Page int64 `json:"page,omitzero"` // from 1; absent is 1
}

// FilesResponse lists files, the one used last first, as the calls of tools name
// them. Pages belong together when Through and Pages are equal.
type FilesResponse struct {
	V       int     `json:"v"`
	Known   bool    `json:"known"` // false: no turn of the session was taken or parked
	Files   []File  `json:"files"`
	Through Through `json:"through"`
	Page    int64   `json:"page"`
	Pages   int64   `json:"pages"`
	// Unnamed counts files of this page without a path: the turn that names it has left the log, or the path
	// is longer than 4 KiB.
	Unnamed int64 `json:"unnamed,omitzero"`
}

// FileKind is the use of a file by a session.
type FileKind string

// The kinds of files.
const (
	FileRead    FileKind = "read"    // it was read, never changed
	FileChanged FileKind = "changed" // it was changed
)

// File is the use of one file by a session.
type File struct {
	Path    string   `json:"path"`
	Kind    FileKind `json:"kind"`
	Turns   [2]int64 `json:"turns"` // first and last turn that use it
	Reads   int64    `json:"reads"`
	Changes int64    `json:"changes"`
	// Restorable: its latest read is whole and still true, so that a compaction that
	// hides it may show it again.
	Restorable bool `json:"restorable"`
}

func (r *FilesRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	env.countAt("page", &r.Page, 1, MaxNumber)
}

// SubjectHistory lists the changes of a session's history: when and why.
const SubjectHistory = "compactd.history"

// MaxHistory bounds the entries of an answer.
const MaxHistory = 100

// HistoryRequest lists the compactions and rewinds of a session.
type HistoryRequest struct {
	About
	Limit int64 `json:"limit,omitzero"` // absent is [MaxHistory]
}

// HistoryResponse lists published session.compacted, the newest first.
type HistoryResponse struct {
	V          int     `json:"v"`
	Known      bool    `json:"known"` // false: no turn of the session was taken or parked
	Generation int64   `json:"generation"`
	Through    Through `json:"through"`
	// Entries are those that the stream of outcomes still has.
	Entries []HistoryEntry `json:"entries"`
	// Older counts the entries before these.
	Older int64 `json:"older,omitzero"`
}

// HistoryEntry is one session.compacted without its messages. Fields have the meaning that they have in
// [Compacted].
type HistoryEntry struct {
	// Time is the time at which it was stored, in Unix milliseconds of the stream.
	Time           int64         `json:"time_ms"`
	ID             string        `json:"id"`
	Generation     int64         `json:"generation"`
	Compacted      bool          `json:"compacted"`
	Code           Code          `json:"code,omitzero"`
	Retry          *bool         `json:"retry,omitzero"` // as in [Compacted]
	Reason         Reason        `json:"reason"`
	Config         string        `json:"config"`
	CausedBy       Cause         `json:"caused_by"`
	Request        *Cause        `json:"request,omitzero"`
	RewoundTo      *int64        `json:"rewound_to,omitzero"`
	Through        Through       `json:"through"`
	StagesUsed     []Stage       `json:"stages_used"`
	Stages         []StageReport `json:"stages"`
	TokensBefore   int64         `json:"tokens_before"`
	TokensAfter    int64         `json:"tokens_after"`
	AvailableInput int64         `json:"available_input_tokens"`
	// Messages counts the messages of the effective history; 0 if they were omitted.
	Messages int64 `json:"messages"`
	// SummaryModel wrote the summary; "" without one.
	SummaryModel string `json:"summary_model,omitzero"`
	Level        Level  `json:"level"`
	// Budget has the parts of a history that does not fit; nil if it fits.
	Budget *Budget `json:"budget,omitzero"`
	// Trace is the id of the trace of its event, 32 hex digits; "" without one.
	Trace string `json:"trace,omitzero"`
}

// Entry is an outcome as a history lists it, stored at a time in Unix milliseconds.
func (b *Compacted) Entry(stored int64) HistoryEntry {
	e := HistoryEntry{
		Time: stored, ID: b.ID, Generation: b.Generation, Compacted: b.Compacted, Code: b.Code, Retry: b.Retry, Reason: b.Reason, Config: b.Config,
		CausedBy: b.CausedBy, Request: b.Request, RewoundTo: b.RewoundTo, Through: b.Through, StagesUsed: b.StagesUsed, Stages: b.Stages,
		TokensBefore: b.TokensBefore, TokensAfter: b.TokensAfter, AvailableInput: b.AvailableInput, Messages: int64(len(b.Messages)), Level: b.Budget.Level,
	}
	if b.Summary != nil {
		e.SummaryModel = b.Summary.Model
	}
	if b.Code == CodeBudgetExceeded {
		e.Budget = &b.Budget
	}
	return e
}

func (r *HistoryRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	env.countAt("limit", &r.Limit, 1, MaxHistory)
}

// SubjectOutcome reports the result of one event.
const SubjectOutcome = "compactd.outcome"

// OutcomeRequest requests the result of an event of a session.
type OutcomeRequest struct {
	About
	Seq uint64 `json:"seq"` // of the event, from the acknowledgement of its publish
	// WaitMS is the most to wait until the event is decided, in milliseconds; nil is
	// [DefaultWait].
	WaitMS *int64 `json:"wait_ms,omitzero"`
}

// Awaited is the event that the request waits for.
func (r *OutcomeRequest) Awaited() Await { return Await{Seq: r.Seq, WaitMS: r.WaitMS} }

// OutcomeResponse is the result of a decided event.
type OutcomeResponse struct {
	V        int    `json:"v"`
	Seq      uint64 `json:"seq"` // of the event
	Kind     Kind   `json:"kind"`
	Accepted bool   `json:"accepted"` // false: it changed nothing, and Code is the reason
	// Code is the reason why the event was refused, or needs attention; else "". Message, Hint and Expected
	// are from its [Rejected].
	Code     Code   `json:"code,omitzero"`
	Message  string `json:"message,omitzero"`
	Hint     string `json:"hint,omitzero"`
	Expected int64  `json:"expected,omitzero"`
	// Compaction answers an overflow, a compact or a rewind. It is absent for other
	// events, and while a compact waits for a summary.
	Compaction *HistoryEntry `json:"compaction,omitzero"`
	Generation int64         `json:"generation"` // of the session now
	Through    Through       `json:"through"`    // the last turn taken by now
}

func (r *OutcomeRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	if r.Seq == 0 {
		env.require("seq", "")
	}
	env.seq(&r.Seq)
	env.waitAt(&r.WaitMS)
}

// EventResponse answers an event that was published over HTTP, and that is stored.
type EventResponse struct {
	V   int    `json:"v"`
	ID  string `json:"id"`  // of the event: that of the request, else a new one
	Seq uint64 `json:"seq"` // of the event in the log
	// Duplicate: the same event was stored before, under Seq.
	Duplicate bool `json:"duplicate,omitzero"`
	// Decided is false if the wait timed out: then Code is turn_pending. The other fields are as in
	// [OutcomeResponse].
	Decided    bool          `json:"decided"`
	Accepted   bool          `json:"accepted"`
	Code       Code          `json:"code,omitzero"`
	Message    string        `json:"message,omitzero"`
	Hint       string        `json:"hint,omitzero"`
	Expected   int64         `json:"expected,omitzero"`
	Retry      *bool         `json:"retry,omitzero"` // false beside budget_exceeded, as in [Compacted]
	Generation int64         `json:"generation"`
	Through    Through       `json:"through"`
	Compaction *HistoryEntry `json:"compaction,omitzero"`
	// Context is the history after an overflow, a compact or a rewind, as an answer to
	// context has it: its first page.
	Context *ContextResponse `json:"context,omitzero"`
	// Erased is the result of an erasure.
	Erased *Erased `json:"erased,omitzero"`
	// Unknown are ignored fields of the event; those of turns are not reported.
	Unknown []string `json:"unknown_fields,omitzero"`
}
