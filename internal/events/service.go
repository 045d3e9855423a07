package events

import (
	"math"
	"slices"
	"strconv"
	"time"

	"compactd/internal/events/codec"
)

// ServiceName is the name of the micro service that answers requests.
const ServiceName = "compactd"

// Subjects of its requests.
const (
	SubjectContext = "compactd.context"
	SubjectStats   = "compactd.stats"
	SubjectHealth  = "compactd.health"
)

// OwnerSubject is the subject at which the owner of a partition answers workers that received the request.
// verb is the last token of a request's subject, or *.
func OwnerSubject(partition int, verb string) string {
	return ServiceName + ".p." + strconv.Itoa(partition) + "." + verb
}

// OfTenant returns the further subject for requests about one tenant: a server's permissions can be given for
// a subject, but not for a payload. The tenant "*" is any.
func OfTenant(subject, tenant string) string { return subject + "." + tenant }

// Codes of answers, beside those of the table.
const (
	// CodeForbidden: the request is about another tenant than its subject names; over
	// HTTP, it comes from a machine that may not send requests.
	CodeForbidden Code = "forbidden"
	// CodeUnavailable: no worker can answer now; try again in a moment.
	CodeUnavailable Code = "unavailable"
	// CodeWrongPartition: since the log grew another partition decides the session. Only workers receive it, which then
	// ask that partition's.
	CodeWrongPartition Code = "wrong_partition"
	// CodeStorageLimit: the tenant holds as much of the log as it may; nothing is stored.
	CodeStorageLimit Code = "storage_limit"
	// CodeGone: a text that the answer needs is no longer in the log.
	CodeGone Code = "gone"

	// Over HTTP only: no token, no such path, another method.
	CodeUnauthorized     Code = "unauthorized"
	CodeNotFound         Code = "not_found"
	CodeMethodNotAllowed Code = "method_not_allowed"
	CodeRateLimited      Code = "rate_limited" // the token sends too many requests
	CodeDuplicateID      Code = "duplicate_id" // the id was used for another event
	CodeSlowBody         Code = "slow_body"
	CodeEncodedBody      Code = "encoded_body"
)

// MaxRequestBytes bounds a request.
const MaxRequestBytes = 64 << 10

// About is the session that a request is about.
type About struct {
	V       int    `json:"v,omitzero"`
	Tenant  string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	Session string `json:"session"`
}

// About names the session for a request.
func (a Address) About() About { return About{Version, a.Tenant, a.Session} }

// Address names the session of the request.
func (a About) Address() Address { return Address{a.Tenant, a.Session} }

// ContextRequest requests the effective history of a session.
type ContextRequest struct {
	About
	Page int64 `json:"page,omitzero"` // from 1; absent is 1
	// Generation selects the history under that generation, with every turn taken since; nil is the newest, 0
	// the history as published.
	Generation *int64 `json:"generation,omitzero"`
	Await
}

// ContextResponse is the effective history up to Through, or one page of it.
// Pages belong together when Generation, Through and Pages are equal.
type ContextResponse struct {
	V          int         `json:"v"`
	Known      bool        `json:"known"` // false: no turn of the session was taken or parked
	Format     Format      `json:"format,omitzero"`
	System     codec.Raw   `json:"system,omitzero"` // on one page only, as are the tools
	Tools      codec.Raw   `json:"tools,omitzero"`
	Messages   []codec.Raw `json:"messages"`
	Generation int64       `json:"generation"`
	Through    Through     `json:"through"`
	// BoundThinking is as in session.compacted.
	BoundThinking bool  `json:"bound_thinking,omitzero"`
	Page          int64 `json:"page"`
	Pages         int64 `json:"pages"`
}

// StatsRequest requests the state of a session, with its model or another one: a provider without a model has
// its default.
type StatsRequest struct {
	About

	Provider        string `json:"provider,omitzero"` // absent: the session's
	Model           string `json:"model,omitzero"`
	MaxOutputTokens int64  `json:"max_output_tokens,omitzero"`
	Await
}

// StatsResponse is the state of a session.
type StatsResponse struct {
	V               int     `json:"v"`
	Known           bool    `json:"known"`
	Turns           int64   `json:"turns"`
	Messages        int64   `json:"messages"` // of the effective history, before adjacent ones join
	Generation      int64   `json:"generation"`
	Through         Through `json:"through"`
	Parked          int64   `json:"parked"`           // turns that wait for a missing one
	Prepared        bool    `json:"prepared"`         // a summary is ready
	Waiting         bool    `json:"waiting"`          // a summary was requested
	NeedsCompaction bool    `json:"needs_compaction"` // as budget.should_compact
	Rereads         int64   `json:"rereads"`          // files read again that a compaction had taken out of view
	Reruns          int64   `json:"reruns"`           // other calls made again, of which it had taken the results
	Cost            Cost    `json:"cost,omitzero"`    // absent before anything that has a price
	Budget          Budget  `json:"budget,omitzero"`  // absent when the session is not known
	// LongestAnswer is the session's longest answer, from the eighth answer on, if the policy learns the
	// reserve from it.
	LongestAnswer int64 `json:"longest_answer_tokens,omitzero"`

	Warnings []SyncWarning `json:"warnings,omitzero"` // absent for none
}

// Cost has the costs and savings of a session's compactions by list prices, in billionths of a US dollar.
// Calls of models without a price are not included.
type Cost struct {
	// Input is the cost of the calls' input: by the usage of their turns, which includes lost caches, and by
	// estimate for a turn without one.
	Input     int64 `json:"input_nano_usd"`
	Lost      int64 `json:"lost_nano_usd"`      // on caches that compactions broke
	Saved     int64 `json:"saved_nano_usd"`     // on the input of calls until the next compaction of each, before Lost and Summaries are taken off
	Summaries int64 `json:"summaries_nano_usd"` // spent on summaries
	Unpriced  int64 `json:"unpriced,omitzero"`  // calls and summaries of models without a price
}

// Spent is the money for input and summaries.
func (c Cost) Spent() int64 { return c.Input + c.Summaries }

// Plus is both together.
func (c Cost) Plus(o Cost) Cost {
	return Cost{c.Input + o.Input, c.Lost + o.Lost, c.Saved + o.Saved, c.Summaries + o.Summaries, c.Unpriced + o.Unpriced}
}

// SummaryCounts are the summaries of a session since its first turn, without those for a session.compact.
type SummaryCounts struct {
	Ready  int64 `json:"ready"`  // there when a compaction needed them
	Late   int64 `json:"late"`   // put in place in the background, behind the compaction that needed them
	Failed int64 `json:"failed"` // jobs without a usable result: the session went on without a summary
}

// Plus is both together.
func (c SummaryCounts) Plus(o SummaryCounts) SummaryCounts {
	return SummaryCounts{c.Ready + o.Ready, c.Late + o.Late, c.Failed + o.Failed}
}

// Health is the state of a worker.
type Health string

// States of a worker.
const (
	HealthOK       Health = "ok"       // all partitions it should serve are served
	HealthStarting Health = "starting" // not all were caught up yet
	HealthDegraded Health = "degraded" // a partition was lost, or the connection that commits
)

// HealthResponse is the health of the worker that answers.
type HealthResponse struct {
	V          int    `json:"v"`
	Status     Health `json:"status"`
	Partitions int64  `json:"partitions"` // that it should serve: its share of the log's
	Served     int64  `json:"served"`     // of them
	Version    string `json:"version"`    // of the program
	Owner      string `json:"owner"`
	Config     string `json:"config"` // hash of the config in force
}

// ServiceError is the payload of a refusal. The headers Nats-Service-Error-Code and Nats-Service-Error have
// code and text too.
type ServiceError struct {
	V       int    `json:"v"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitzero"`
}

// Refuse returns a refusal in this version of the contract.
func Refuse(code Code, message, hint string) *ServiceError {
	return &ServiceError{V: Version, Code: code, Message: message, Hint: hint}
}

func (e *ServiceError) Error() string { return e.Message }

// RequestedModel is the model of the request.
func (r *StatsRequest) RequestedModel() Model {
	return Model{Provider: r.Provider, Name: r.Model, MaxOutputTokens: r.MaxOutputTokens}
}

// RequestTenant names the tenant of any request.
func RequestTenant(request []byte) (string, error) {
	env, err := decodeEnvelope(request, MaxSyncBytes)
	if err != nil {
		return "", err
	}
	if _, ok := env.take("tenant"); !ok {
		return DefaultTenant, nil
	}
	return env.text("tenant"), env.problems.err()
}

func (r *ContextRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	env.countAt("page", &r.Page, 1, MaxNumber)
	env.await(&r.Await)
	env.countedAt("generation", &r.Generation, 0, MaxNumber)
}

func (r *StatsRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	env.textAt("provider", &r.Provider, maxNameBytes)
	env.textAt("model", &r.Model, maxNameBytes)
	env.countAt("max_output_tokens", &r.MaxOutputTokens, 1, MaxTokens)
	env.await(&r.Await)
}

// aboutAt reads which session a request is about.
func (e *envelope) aboutAt(a *About) {
	if a.V != 0 {
		e.version(int64(a.V))
	}
	before, named := len(e.problems), a.Session != ""
	a.V = Version
	e.tenantAt(&a.Tenant)
	if e.textAt("session", &a.Session, maxIDBytes); !named {
		e.require("session", "")
	}
	if len(e.problems) == before && !ValidSession(a.Session) {
		e.problems.add(CodeBadID, "session", badSession)
	}
}

// Bytes is the size of the history.
func (r *ContextResponse) Bytes() int {
	return len(r.System) + len(r.Tools) + codec.Size(r.Messages)
}

// Paged splits a whole answer into pages of at most limit bytes, with a longer value on a page of its own. It
// returns page number page, from 0. There is always a first page.
func (r *ContextResponse) Paged(page int64, limit int) (*ContextResponse, error) {
	items, out := slices.Concat([]codec.Raw{r.System, r.Tools}, r.Messages), *r
	from, to, err := pageOf(items, page, limit, &out.Page, &out.Pages)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		out.System = nil
	}
	if from > 1 || to <= 1 {
		out.Tools = nil
	}
	out.Messages = items[min(max(from, 2), to):to]
	if to <= 2 {
		out.Messages = nil
	}
	return &out, nil
}

// envelopeBytes is the size of an answer beside system, tools and messages.
const envelopeBytes = 512

// pageOf returns the items of a page, and sets the number of the page and of all pages.
func pageOf(items []codec.Raw, number int64, limit int, page, pages *int64) (from, to int, err error) {
	starts := pageStarts(items, limit-envelopeBytes)
	n := int64(len(starts))
	if number = max(number, 1); number > n {
		return 0, 0, invalidf(CodeOutOfRange, "page", "must be between 1 and %d", n)
	}
	*page, *pages = number, n
	starts = append(starts, len(items))
	return starts[number-1], starts[number], nil
}

// pageStarts lists the indexes at which pages begin; the first is 0.
func pageStarts(items []codec.Raw, limit int) []int {
	starts, size := []int{0}, 0
	for i, item := range items {
		if len(item) == 0 {
			continue
		}
		n := len(item) + 1
		if size > 0 && size+n > limit {
			starts, size = append(starts, i), 0
		}
		size += n
	}
	return starts
}

// How long a request waits for a turn by default, and at most.
const (
	DefaultWait = 5 * time.Second
	MaxWait     = 8 * time.Second
)

// Await names the event that a request waits for; none if Turn and Seq are 0.
type Await struct {
	// Turn is decided when it was taken or refused, or is parked.
	Turn int64 `json:"turn,omitzero"`
	// Seq is the sequence of an event of the session, from its acknowledgement. It can name an event that
	// Turn cannot, such as the second of two turns with one number.
	Seq uint64 `json:"seq,omitzero"`
	// WaitMS is the most to wait, in milliseconds; nil is [DefaultWait].
	WaitMS *int64 `json:"wait_ms,omitzero"`
}

// Waits reports whether there is something to wait for.
func (a Await) Waits() bool { return a.Turn > 0 || a.Seq > 0 }

// Awaited is the event that a request waits for.
func (a Await) Awaited() Await { return a }

// Limit is the longest wait.
func (a Await) Limit() time.Duration {
	if a.WaitMS == nil {
		return DefaultWait
	}
	return time.Duration(*a.WaitMS) * time.Millisecond
}

// Within returns a with another time.
func (a Await) Within(d time.Duration) Await {
	ms := max(d.Milliseconds(), 0)
	a.WaitMS = &ms
	return a
}

// WithAwait returns a request that waits for something else.
func WithAwait(request []byte, a Await) ([]byte, error) {
	data, err := codec.Marshal(a)
	if err != nil {
		return nil, err
	}
	changed, err := codec.ReadObject(data)
	if err != nil {
		return nil, err
	}
	ms, err := codec.ReadObject(request)
	for _, m := range changed {
		ms = codec.SetMember(ms, m.Name, m.Value)
	}
	return codec.WriteObject(ms), err
}

func (e *envelope) await(at *Await) {
	e.countAt("turn", &at.Turn, 1, MaxNumber)
	e.seq(&at.Seq)
	e.waitAt(&at.WaitMS)
}

func (e *envelope) seq(at *uint64) {
	n := int64(*at)
	e.countAt("seq", &n, 1, math.MaxInt64)
	*at = uint64(n)
}

// waitAt reads the field wait_ms.
func (e *envelope) waitAt(at **int64) { e.countedAt("wait_ms", at, 0, MaxWait.Milliseconds()) }
