package events

import (
	"math"
	"strings"

	"compactd/internal/events/codec"
)

// MaxFocusBytes bounds the focus of a manual compaction.
const MaxFocusBytes = 4 << 10

// Compact is a session.compact: compact now, whatever the usage.
type Compact struct {
	ID    string `json:"id,omitzero"`
	Focus string `json:"focus,omitzero"` // what the summary shall keep in mind, "" for nothing
	// Model and Policy hold for this compaction alone; nil is the session's own.
	Model  *Model `json:"model,omitzero"`
	Policy Raw    `json:"policy,omitzero"`
}

// DecodeCompact reads the payload of a session.compact. Its error is an [*Invalid].
func DecodeCompact(data []byte) (*Compact, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	c := &Compact{ID: env.text("id"), Focus: env.words("focus", MaxFocusBytes), Model: env.model(), Policy: env.raw("policy", '{')}
	return c, env.problems.err()
}

// Rewind is a session.rewind: return to the view of an earlier generation. One of
// the two fields is set.
type Rewind struct {
	ID         string `json:"id,omitzero"`
	Generation *int64 `json:"generation,omitzero"` // 0 is the history as it was published
	Steps      int64  `json:"steps,omitzero"`      // compactions in view to undo
}

// DecodeRewind reads the payload of a session.rewind. Its error is an [*Invalid].
func DecodeRewind(data []byte) (*Rewind, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	r := &Rewind{ID: env.text("id"), Steps: env.count("steps", 1, MaxNumber)}
	_, steps := env.take("steps")
	if _, ok := env.take("generation"); ok {
		n := env.count("generation", 0, MaxNumber)
		r.Generation = &n
	}
	if (r.Generation != nil) == steps {
		env.problems.add(CodeMissingField, "generation", "or steps is required, not both")
	}
	return r, env.problems.err()
}

// Idle is a session.idle: no turn of a session was published since the turn at a
// sequence of the log. Only workers publish it.
type Idle struct {
	Header
	Since uint64 `json:"since"`
}

// DecodeIdle reads the payload of a session.idle. Its error is an [*Invalid].
func DecodeIdle(data []byte) (*Idle, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	i := &Idle{Header: Header{V: Version, ID: env.text("id")}, Since: uint64(env.count("since", 1, math.MaxInt64))}
	if i.Since == 0 && len(env.problems) == 0 {
		env.problems.add(CodeMissingField, "since", "is required")
	}
	return i, env.problems.err()
}

// Branch is a session.branch: another session of the tenant branched off this one, by a turn with
// forked_from. Only workers publish it.
type Branch struct {
	Header
	Branch string `json:"branch"` // the id of that session
}

// DecodeBranch reads the payload of a session.branch. Its error is an [*Invalid].
func DecodeBranch(data []byte) (*Branch, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	b := &Branch{Header: Header{V: Version, ID: env.text("id")}, Branch: env.words("branch", MaxIDLen)}
	switch {
	case len(env.problems) > 0:
	case b.Branch == "":
		env.problems.add(CodeMissingField, "branch", "is required")
	case !ValidSession(b.Branch):
		env.problems.add(CodeBadID, "branch", badSession)
	}
	return b, env.problems.err()
}

// DecodeEnd reads the payload of a session.end, which holds an id at most. Its
// error is an [*Invalid].
func DecodeEnd(data []byte) (id string, err error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return "", err
	}
	return env.text("id"), env.problems.err()
}

// words reads a text for people or models, of at most limit bytes.
func (e *envelope) words(name string, limit int) string {
	v, ok := e.take(name)
	if !ok {
		return ""
	}
	s, ok := codec.Text(v)
	switch {
	case !ok:
		e.problems.add(CodeBadType, name, "must be a string")
	case len(s) > limit:
		e.problems.add(CodeTooLarge, name, "is longer than %d bytes", limit)
		return ""
	}
	return strings.TrimSpace(s)
}

// MaxOverflowBytes bounds a session.overflow. Errors of providers have some
// hundred bytes; those that echo a whole request are cut by their SDKs.
const MaxOverflowBytes = 256 << 10

// Overflow is a session.overflow: a provider refused a call, most likely as too
// long. Package overflow classifies the error.
type Overflow struct {
	ID     string `json:"id,omitzero"`
	Error  Raw    `json:"error,omitzero"`  // string, object or array as the agent got it; nil when there was no body
	Status int64  `json:"status,omitzero"` // HTTP status; 0 when it is not known
	Model  *Model `json:"model,omitzero"`  // of the call; nil = that of the session
	// Generation is the compaction the agent had applied when it made the call; −1
	// when it is absent, which means the newest.
	Generation int64 `json:"generation,omitzero"`
	// Unbind: where it is thinking that was refused, as bound to another history, the history
	// goes on without it. Else such an error is rejected.
	Unbind bool `json:"unbind,omitzero"`
	// Unrecorded is our estimate of a call with a history that the session has not, as a sync
	// answered it; 0 = a history of the session.
	Unrecorded int64 `json:"unrecorded,omitzero"`
}

// DecodeOverflow reads the payload of a session.overflow. Its error is an
// [*Invalid] that lists every problem; where the payload was one JSON object the
// event comes beside it, without the fields that are wrong. It holds parts of
// data, which must not change afterwards.
func DecodeOverflow(data []byte) (*Overflow, error) {
	env, err := decodeEnvelope(data, MaxOverflowBytes)
	if err != nil {
		return nil, err
	}
	o := &Overflow{
		ID:     env.text("id"),
		Error:  env.raw("error", '"', '{', '['),
		Status: env.count("status", 100, 599),
		Model:  env.model(),
		Unbind: env.flag("unbind"),

		Generation: -1, Unrecorded: env.count("unrecorded", 0, MaxTokens),
	}
	if _, ok := env.take("generation"); ok {
		o.Generation = env.count("generation", 0, MaxNumber)
	}
	_, hasError := env.take("error")
	if _, hasStatus := env.take("status"); !hasError && !hasStatus {
		env.problems.add(CodeMissingField, "error", "is required without status")
	}
	return o, env.problems.err()
}

// Forgotten is a session.forgotten: everything of a session before Seq counts as
// never published. It has nothing of what the session held, since a replay of the
// log, from which that is gone, must give the same bytes.
type Forgotten struct {
	Header
	Config   string `json:"config"`
	CausedBy Cause  `json:"caused_by"`
	Seq      uint64 `json:"seq"` // of the session.forget
}

// Erased is a session.erased: the erasure of a session.forget is done. It follows
// from no log, it is what the owner of the partition did.
type Erased struct {
	Header
	CausedBy Cause  `json:"caused_by"` // the session.forget
	Seq      uint64 `json:"seq"`       // of it
	// What was overwritten: events of the log, and outcomes and jobs.
	Events   int64 `json:"events"`
	Outcomes int64 `json:"outcomes"`
	// Files is how many quarantined ledger files were removed.
	Files int64 `json:"files"`
	// Resumed: an earlier try was interrupted; the figures are of the last one.
	Resumed bool `json:"resumed,omitzero"`
}

// DecodeForget reads the payload of a session.forget, which holds an id at most.
// The erasure cannot be undone, so an unknown field is an error. Its
// error is an [*Invalid].
func DecodeForget(data []byte) (id string, err error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return "", err
	}
	for _, f := range env.fields {
		if f.Name != "v" && f.Name != "id" {
			env.problems.add(CodeBadType, "", "has a field that session.forget does not know; it erases the whole session")
			break
		}
	}
	return env.text("id"), env.problems.err()
}

// SubjectCheck compares the next call of a session with its window, before it is
// made.
const SubjectCheck = "compactd.check"

// Bounds of a check.
const (
	// MaxCheckBytes bounds a request: the messages may be those of a whole turn.
	MaxCheckBytes = MaxTurnBytes
	// MaxAttachments is how many attachments it may name.
	MaxAttachments = 100
)

// CheckRequest checks whether the next call fits: the current history, and what is to be
// added to it. An absent field has the value of the session.
type CheckRequest struct {
	V       int    `json:"v,omitzero"`
	Tenant  string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	Session string `json:"session"`

	NextCall
	// Attachments are files of which only type and size are known.
	Attachments []Attachment `json:"attachments,omitzero"`
	Await
}

// NextCall is the next call of a session, before it is made: what is absent is as the
// session has it.
type NextCall struct {
	// The model of the call; a provider without a model is its default.
	Provider        string `json:"provider,omitzero"`
	Model           string `json:"model,omitzero"`
	MaxOutputTokens int64  `json:"max_output_tokens,omitzero"`
	ContextWindow   int64  `json:"context_window,omitzero"`

	// Format is the dialect of Messages where the session has none yet; absent is
	// the provider's.
	Format Format `json:"format,omitzero"`
	// Messages and Tokens are to be added: messages are measured as those of a turn
	// are, tokens are the caller's own count.
	Messages []Raw `json:"messages,omitzero"`
	Tokens   int64 `json:"tokens,omitzero"`
	// System and Tools take the place of the session's.
	System Raw `json:"system,omitzero"`
	Tools  Raw `json:"tools,omitzero"`
}

// RequestedModel is the model of the call.
func (c *NextCall) RequestedModel() Model {
	return Model{Provider: c.Provider, Name: c.Model, MaxOutputTokens: c.MaxOutputTokens, ContextWindow: c.ContextWindow}
}

// Attachment is a file that may be sent along.
type Attachment struct {
	Type  string `json:"type,omitzero"` // pdf, docx, xlsx, pptx, svg, image, audio, video, archive; others are text
	Bytes int64  `json:"bytes"`
}

// CheckResponse is the budget of the next call.
type CheckResponse struct {
	V               int     `json:"v"`
	Known           bool    `json:"known"`            // false: the answer is for a first call
	Fits            bool    `json:"fits"`             // as budget.within_budget
	Level           Level   `json:"level"`            // as budget.level
	Room            int64   `json:"room_tokens"`      // available − estimated input; negative by what is too much
	Added           int64   `json:"added_tokens"`     // what the request adds, uncorrected
	NeedsCompaction bool    `json:"needs_compaction"` // as budget.should_compact
	Generation      int64   `json:"generation"`
	Through         Through `json:"through"`
	Budget          Budget  `json:"budget"` // of the call
	// Attachments are the costs of those in the request, and whether to send each: the
	// smallest first, as long as they fit the share for files.
	Attachments []AttachmentCost `json:"attachments,omitzero"`
}

// AttachmentCost is what one attachment costs.
type AttachmentCost struct {
	Tokens int64 `json:"tokens"`
	Send   bool  `json:"send"`
}

// Address names the session of the request.
func (r *CheckRequest) Address() Address { return Address{r.Tenant, r.Session} }

// DecodeCheckRequest reads the payload of a compactd.check. Its error is an
// [*Invalid]. The request holds parts of data, which must not change afterwards.
func DecodeCheckRequest(data []byte) (*CheckRequest, error) {
	env, err := decodeEnvelope(data, MaxCheckBytes)
	if err != nil {
		return nil, err
	}
	a := env.address()
	r := &CheckRequest{
		V: Version, Tenant: a.Tenant, Session: a.Session, NextCall: env.nextCall(),
		Attachments: env.attachments("attachments"), Await: env.await(),
	}
	return r, env.problems.err()
}

// nextCall reads the fields of a call.
func (e *envelope) nextCall() NextCall {
	c := NextCall{
		Provider: e.text("provider"), Model: e.text("model"), MaxOutputTokens: e.count("max_output_tokens", 1, MaxTokens),
		ContextWindow: e.count("context_window", 1, MaxTokens), Format: Format(e.text("format")),
		Tokens: e.count("tokens", 0, MaxTokens), System: e.raw("system", '"', '['), Tools: e.raw("tools", '['),
	}
	if c.Format != "" && !c.Format.Known() {
		e.problems.join(unknownFormat())
	}
	if m, ok := e.take("messages"); ok {
		var err error
		if c.Messages, err = codec.ReadArray(codec.Clean(m)); err != nil {
			e.problems.add(CodeBadType, "messages", "must be an array")
		}
		e.problems.join(TooMany(len(c.Messages), 0))
	}
	return c
}

// attachments reads an array of objects with type and bytes.
func (e *envelope) attachments(name string) []Attachment {
	list, ok := e.list(name, MaxAttachments)
	if !ok {
		return nil
	}
	out := make([]Attachment, 0, len(list))
	for _, raw := range list {
		out = append(out, e.attachment(name, raw))
	}
	return out
}

// list reads an array of at most so many values, ok is false without one.
func (e *envelope) list(name string, most int) (list []Raw, ok bool) {
	v, ok := e.take(name)
	if !ok {
		return nil, false
	}
	list, err := codec.ReadArray(v)
	if err != nil {
		e.problems.add(CodeBadType, name, "must be an array")
	} else if len(list) > most {
		e.problems.add(CodeTooLarge, name, "are more than %d", most)
		return nil, false
	}
	return list, true
}

func (e *envelope) attachment(name string, raw Raw) (out Attachment) {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		e.problems.add(CodeBadType, name, "must hold objects")
		return out
	}
	if kind := codec.Lookup(ms, "type"); kind != nil && kind.Kind() != 'n' {
		out.Type = e.textOf(name+".", "type", kind)
	}
	if n := codec.Lookup(ms, "bytes"); n == nil || n.Kind() == 'n' {
		e.problems.add(CodeMissingField, name+".bytes", "is required")
	} else {
		out.Bytes = e.countOf(name+".", "bytes", n, 0, MaxTokens)
	}
	return out
}

// SubjectRecall returns originals: what was published, whatever a compaction has
// made of it.
const SubjectRecall = "compactd.recall"

// Bounds of a search.
const (
	// MaxSearchBytes bounds the text to search for.
	MaxSearchBytes = 1 << 10
	// MaxHits is the most messages that one search finds.
	MaxHits = 100
	// DefaultHits is how many it finds when the request names none.
	DefaultHits = 10
)

// RecallRequest requests the messages of a turn, or those that contain a text.
type RecallRequest struct {
	V       int    `json:"v,omitzero"`
	Tenant  string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	Session string `json:"session"`

	// Turn and Index are the place of a message, as notices, edits and records name
	// it; without Index the whole turn is meant, in pages.
	Turn  int64  `json:"turn,omitzero"`
	Index *int64 `json:"index,omitzero"`
	Page  int64  `json:"page,omitzero"` // from 1; absent is 1

	// Text is to be found literally, in upper or lower case, in texts, calls and
	// results of messages older than Before; nil begins with the newest.
	Text   string    `json:"text,omitzero"`
	Limit  int64     `json:"limit,omitzero"` // messages to find; absent is [DefaultHits]
	Before *Position `json:"before,omitzero"`

	// Ancestor is a session that Session branched off, and whose messages are meant: as a
	// hit or an answer names it.
	Ancestor string `json:"ancestor,omitzero"`
	// AsOf is for workers, which send requests for an ancestor to each other; nil else.
	AsOf *AsOf `json:"as_of,omitzero"`
}

// AsOf is the state of a session when another one branched off it: its turns up to Turn that
// are stored before Seq.
type AsOf struct {
	Turn  int64  `json:"turn"`
	Seq   uint64 `json:"seq"`
	Depth int64  `json:"depth,omitzero"` // how many sessions branched off one another up to here, at most [MaxForks]
}

// MaxForks bounds how many sessions back a recall looks.
const MaxForks = 64

// RecallResponse holds originals of one turn, as they were published.
type RecallResponse struct {
	V        int    `json:"v"`
	Known    bool   `json:"known"`             // false: no turn of the session was taken or parked
	Ancestor string `json:"ancestor,omitzero"` // that has the turn, where it is not the session itself
	Format   Format `json:"format,omitzero"`
	Turn     int64  `json:"turn"`
	Index    int64  `json:"index"` // of the first of Messages
	Seq      uint64 `json:"seq"`   // of the turn in the log
	Messages []Raw  `json:"messages"`
	Page     int64  `json:"page"`
	Pages    int64  `json:"pages"`
}

// SearchResponse lists messages that hold a text, newest first.
type SearchResponse struct {
	V     int   `json:"v"`
	Known bool  `json:"known"`
	Hits  []Hit `json:"hits"`
	// Before is where to go on, in Ancestor where that is set: older messages were not
	// searched. Nil means that all were.
	Before   *Position `json:"before,omitzero"`
	Ancestor string    `json:"ancestor,omitzero"`
	// Gone counts turns that are no longer in the log.
	Gone int64 `json:"gone,omitzero"`
}

// Hit is a message that holds a text.
type Hit struct {
	Ancestor string `json:"ancestor,omitzero"` // that has it, where it is not the session itself
	Turn     int64  `json:"turn"`
	Index    int64  `json:"index"`
	Role     Role   `json:"role"`
	Excerpt  string `json:"excerpt"` // around the first place, with "…" where it was cut
}

// Address names the session of the request.
func (r *RecallRequest) Address() Address { return Address{r.Tenant, r.Session} }

// DecodeRecallRequest reads the payload of a compactd.recall. Its error is an
// [*Invalid].
func DecodeRecallRequest(data []byte) (*RecallRequest, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	a := env.address()
	r := &RecallRequest{
		V: Version, Tenant: a.Tenant, Session: a.Session,
		Turn: env.count("turn", 1, MaxNumber), Page: env.count("page", 1, MaxNumber),
		Text: env.words("text", MaxSearchBytes), Limit: env.count("limit", 1, MaxHits), Before: env.position("before"),
		Ancestor: env.id("ancestor"), AsOf: env.asOf(),
	}
	if _, ok := env.take("ancestor"); ok && !ValidSession(r.Ancestor) {
		env.problems.add(CodeBadID, "ancestor", badSession)
	}
	if _, ok := env.take("index"); ok {
		n := env.count("index", 0, MaxNumber)
		r.Index = &n
	}
	_, turn := env.take("turn")
	if _, text := env.take("text"); turn == text {
		env.problems.add(CodeMissingField, "turn", "or text is required, not both")
	} else if text && r.Text == "" {
		env.problems.add(CodeMissingField, "text", "is empty")
	}
	return r, env.problems.err()
}

// position reads an object with turn and index.
func (e *envelope) position(name string) *Position {
	p := &Position{}
	if !e.numbers(name, "turn", member{"turn", &p.Turn, 1, MaxNumber}, member{"index", &p.Index, 0, MaxNumber}) {
		return nil
	}
	return p
}

// asOf reads the field as_of, which workers send.
func (e *envelope) asOf() *AsOf {
	a, seq := &AsOf{}, int64(0)
	if !e.numbers("as_of", "seq", member{"turn", &a.Turn, 0, MaxNumber}, member{"seq", &seq, 1, math.MaxInt64}, member{"depth", &a.Depth, 0, MaxForks}) {
		return nil
	}
	a.Seq = uint64(seq)
	return a
}

// member is a whole number of an object, between two.
type member struct {
	name      string
	value     *int64
	low, high int64
}

// numbers reads an object whose members are numbers, one of them required.
func (e *envelope) numbers(name, required string, members ...member) bool {
	v, ok := e.take(name)
	if !ok {
		return false
	}
	fields, err := codec.ReadObject(v)
	if err != nil {
		e.problems.add(CodeBadType, name, "must be an object")
		return false
	}
	found := false
	for _, f := range fields {
		for _, m := range members {
			if m.name == f.Name {
				*m.value = e.countOf(name+".", f.Name, f.Value, m.low, m.high)
				found = found || f.Name == required
			}
		}
	}
	if !found {
		e.problems.add(CodeMissingField, name+"."+required, "is required")
	}
	return true
}

// Paged returns one page of a whole answer, as [ContextResponse.Paged] does.
func (r *RecallResponse) Paged(page int64, limit int) (*RecallResponse, error) {
	starts := pageStarts(r.Messages, limit-envelopeBytes)
	n := int64(len(starts))
	if page = max(page, 1); page > n {
		return nil, invalidf(CodeOutOfRange, "page", "must be between 1 and %d", n)
	}
	starts = append(starts, len(r.Messages))
	out := *r
	out.Page, out.Pages, out.Index = page, n, r.Index+int64(starts[page-1])
	out.Messages = r.Messages[starts[page-1]:starts[page]]
	return &out, nil
}
