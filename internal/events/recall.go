package events

import (
	"cmp"
	"math"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// SubjectRecall returns originals: messages as published, before any compaction.
const SubjectRecall = "compactd.recall"

// Bounds of a search.
const (
	// MaxSearchBytes bounds the text to search for.
	MaxSearchBytes = 1 << 10
	// MaxHits is the largest number of messages that a search finds.
	MaxHits = 100
	// DefaultHits is the number without a limit in the request.
	DefaultHits = 10
)

// RecallRequest requests the messages of a turn, or those that contain a text.
type RecallRequest struct {
	About

	// Turn and Index are the place of a message, as in notices, edits and records; without Index the whole
	// turn is returned, in pages.
	Turn  int64  `json:"turn,omitzero"`
	Index *int64 `json:"index,omitzero"`
	Page  int64  `json:"page,omitzero"` // from 1; absent is 1

	// Text is searched for literally, in upper or lower case, in texts, calls and results of messages older
	// than Before; nil begins with the newest.
	Text   string    `json:"text,omitzero"`
	Limit  int64     `json:"limit,omitzero"` // messages to find; absent is [DefaultHits]
	Before *Position `json:"before,omitzero"`

	// Ancestor is a session that Session branched off, and whose messages are meant: as a
	// hit or an answer names it.
	Ancestor string `json:"ancestor,omitzero"`
	// AsOf is for workers, which send requests for an ancestor to each other; nil else.
	AsOf *AsOf `json:"as_of,omitzero"`
}

// AsOf is the state of a session where another one branched off: its turns up to Turn that are stored before
// Seq.
type AsOf struct {
	Turn  int64  `json:"turn"`
	Seq   uint64 `json:"seq"`
	Depth int64  `json:"depth,omitzero"` // how many sessions branched off one another up to here, at most [MaxForks]
}

// MaxForks bounds how many sessions back a recall looks.
const MaxForks = 64

// RecallResponse holds originals of one turn, as they were published.
type RecallResponse struct {
	V        int         `json:"v"`
	Known    bool        `json:"known"`             // false: no turn of the session was taken or parked
	Ancestor string      `json:"ancestor,omitzero"` // session that has the turn, if not the session itself
	Format   Format      `json:"format,omitzero"`
	Turn     int64       `json:"turn"`
	Index    int64       `json:"index"` // of the first of Messages
	Seq      uint64      `json:"seq"`   // of the turn in the log
	Messages []codec.Raw `json:"messages"`
	Page     int64       `json:"page"`
	Pages    int64       `json:"pages"`
}

// SearchResponse lists messages that hold a text, newest first.
type SearchResponse struct {
	V     int   `json:"v"`
	Known bool  `json:"known"`
	Hits  []Hit `json:"hits"`
	// Before is the position at which to continue, in Ancestor if that is set: older messages were not
	// searched. Nil means that all were.
	Before   *Position `json:"before,omitzero"`
	Ancestor string    `json:"ancestor,omitzero"`
	// Gone counts turns that are no longer in the log.
	Gone int64 `json:"gone,omitzero"`
}

// Hit is a message that holds a text.
type Hit struct {
	Ancestor string       `json:"ancestor,omitzero"` // session that has it, if not the session itself
	Turn     int64        `json:"turn"`
	Index    int64        `json:"index"`
	Role     dialect.Role `json:"role"`
	Excerpt  string       `json:"excerpt"` // around the first match, with "…" where it was cut
}

// InAncestor begins the text of a place in an ancestor; it is empty for the session itself.
func InAncestor(ancestor string) string {
	if ancestor == "" {
		return ""
	}
	return "session " + ancestor + ", "
}

func (r *RecallRequest) read(env *envelope) {
	has := func(name string, set bool) bool {
		_, ok := env.take(name)
		return ok || set
	}
	turn, text, ancestor := has("turn", r.Turn != 0), has("text", r.Text != ""), has("ancestor", r.Ancestor != "")
	env.aboutAt(&r.About)
	env.countAt("turn", &r.Turn, 1, MaxNumber)
	env.countAt("page", &r.Page, 1, MaxNumber)
	env.wordsAt("text", &r.Text, MaxSearchBytes)
	env.countAt("limit", &r.Limit, 1, MaxHits)
	env.position("before", &r.Before)
	env.textAt("ancestor", &r.Ancestor, maxIDBytes)
	env.asOf(&r.AsOf)
	if ancestor && !ValidSession(r.Ancestor) {
		env.problems.add(CodeBadID, "ancestor", badSession)
	}
	env.countedAt("index", &r.Index, 0, MaxNumber)
	if turn == text {
		env.problems.add(CodeMissingField, "turn", "or text is required, not both")
	} else if text && r.Text == "" {
		env.problems.add(CodeMissingField, "text", "is empty")
	}
}

// position reads an object with turn and index.
func (e *envelope) position(name string, at **Position) {
	p := *cmp.Or(*at, &Position{})
	if e.numbers(name, "turn", *at != nil, member{"turn", &p.Turn, 1, MaxNumber}, member{"index", &p.Index, 0, MaxNumber}) {
		*at = &p
	}
}

// asOf reads the field as_of, which workers send.
func (e *envelope) asOf(at **AsOf) {
	a := *cmp.Or(*at, &AsOf{})
	seq := int64(a.Seq)
	if e.numbers("as_of", "seq", *at != nil, member{"turn", &a.Turn, 0, MaxNumber}, member{"seq", &seq, 1, math.MaxInt64}, member{"depth", &a.Depth, 0, MaxForks}) {
		a.Seq = uint64(seq)
		*at = &a
	}
}

// member is a whole number of an object, with its bounds.
type member struct {
	name      string
	value     *int64
	low, high int64
}

// numbers reads an object whose members are numbers, one of them required. Without the object it checks the members if
// they are set.
func (e *envelope) numbers(name, required string, set bool, members ...member) bool {
	v, ok := e.take(name)
	if !ok {
		for i := 0; set && i < len(members); i++ {
			e.within(name+"."+members[i].name, *members[i].value, members[i].low, members[i].high)
		}
		return set
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
	out := *r
	from, to, err := pageOf(r.Messages, page, limit, &out.Page, &out.Pages)
	if err != nil {
		return nil, err
	}
	out.Index, out.Messages = r.Index+int64(from), r.Messages[from:to]
	return &out, nil
}
