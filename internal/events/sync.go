package events

import (
	"cmp"
	"errors"
	"io"
	"strconv"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/media"
)

// SubjectSync takes the whole history of an agent, and returns the messages to send.
const SubjectSync = "compactd.sync"

// Bounds of a sync.
const (
	// MaxSyncBytes bounds a request over HTTP; over NATS the server's max_payload does.
	MaxSyncBytes = 32 << 20
	// MaxSyncBody bounds a body over HTTP: see [ReadSync].
	MaxSyncBody = 8 * MaxSyncBytes
	// MaxSyncMessages bounds the messages of one request.
	MaxSyncMessages = 1 << 18
	maxErrorBytes   = MaxOverflowBytes
)

// ReadSync reads a body of at most most bytes, in which references may replace the oldest media: see
// [media.ReadJSON].
func ReadSync(r io.Reader, most int) ([]byte, error) {
	data, err := media.ReadJSON(r, most)
	if errors.Is(err, media.ErrTooLarge) {
		return nil, NewInvalid(CodeTooLarge, "", "the body "+err.Error())
	}
	return data, err
}

// Divergence is the reaction of a sync to a history that differs from the session's.
type Divergence string

// Reactions of a sync to a different history.
const (
	// DivergeAuto replaces behind a common beginning. A lineage that comes back after it was
	// retracted is a branch, and so is a history with nothing in common.
	DivergeAuto    Divergence = "auto"
	DivergeReplace Divergence = "replace" // the turns from the first difference on are retracted
	DivergeBranch  Divergence = "branch"  // it becomes a session of its own
	DivergeRefuse  Divergence = "refuse"  // nothing is published
)

// Form is the form of a sync's answer.
type Form string

// The forms of an answer.
const (
	FormParts    Form = "parts"    // ranges of the caller's history, and messages between them
	FormMessages Form = "messages" // the whole history to send
)

// SyncRequest is the history of an agent, with the prompt of its next call at the end.
type SyncRequest struct {
	About
	// Branch names a session of its own that began as a copy of this one, such as a sub-agent's.
	Branch string `json:"branch,omitzero"`

	Model  *Model    `json:"model,omitzero"`  // of the next call; nil = unchanged
	Format Format    `json:"format,omitzero"` // "" = that of the session
	System codec.Raw `json:"system,omitzero"` // nil = unchanged
	Tools  codec.Raw `json:"tools,omitzero"`  // nil = unchanged
	Policy codec.Raw `json:"policy,omitzero"` // nil = unchanged

	Prefix       *SyncPrefix  `json:"prefix,omitzero"`     // messages that both sides have; nil for none
	Messages     []codec.Raw  `json:"messages"`            // the whole history, or the messages after the prefix
	Usage        *SyncUsage   `json:"usage,omitzero"`      // of the last call; it travels in its provider's shape
	Refused      *SyncRefused `json:"refused,omitzero"`    // the last call, if its provider refused it as too long
	OnDivergence Divergence   `json:"on_diverge,omitzero"` // absent: auto
	WaitMS       *int64       `json:"wait_ms,omitzero"`    // the most to wait for the decision, in milliseconds; nil is 500
	DryRun       bool         `json:"dry_run,omitzero"`    // nothing is published
	Form         Form         `json:"form,omitzero"`       // absent: parts
	// Frozen is the number of first messages that are returned unchanged, also if the session has others in
	// their place; only with form parts.
	Frozen int64 `json:"frozen,omitzero"`
	// Fork is the place where a branch begins, found by another worker; agents leave it out.
	Fork *Fork `json:"forked_from,omitzero"`
}

// SyncPrefix names messages at the beginning of the history by the figures of an earlier answer.
type SyncPrefix struct {
	Count int64  `json:"count"`
	Hash  Digest `json:"hash"`
}

// SyncUsage is a provider's count for the call that was made with a view.
type SyncUsage struct {
	View  string
	Count int64     // messages of that call, 0 if not stated: of the history, or of the sent part
	Raw   codec.Raw // without view and count, which no provider has
}

// SyncRefused is a call that a provider refused as too long.
type SyncRefused struct {
	View   string    `json:"view,omitzero"` // that the call was made with; absent is the newest
	Status int64     `json:"status,omitzero"`
	Error  codec.Raw `json:"error,omitzero"`
}

// SyncResponse has the messages to send.
type SyncResponse struct {
	V       int    `json:"v"`
	Need    string `json:"need,omitzero"`    // all: the prefix is not known here, send the whole history
	Code    Code   `json:"code,omitzero"`    // budget_exceeded: a call with the sent messages does not fit
	Retry   *bool  `json:"retry,omitzero"`   // false beside it: the same call would be refused again
	Session string `json:"session,omitzero"` // session of the history, if not the request's: a branch
	Branch  string `json:"branch,omitzero"`  // its name, for a request that means it

	Turns      int64         `json:"turns"`    // of the session, at the beginning of the history
	Known      int64         `json:"known"`    // messages that the session had before
	Count      int64         `json:"count"`    // messages of the history; with hash the prefix of a later request
	Hash       Digest        `json:"hash"`     // of the session with this history
	Recorded   bool          `json:"recorded"` // false: the history is not published, and the answer follows from the request alone
	View       string        `json:"view"`     // names the sent messages, for usage and refused; "" if it would be the refused view
	Generation int64         `json:"generation"`
	Through    Through       `json:"through"`         // the last turn that the answer rests on
	Changed    bool          `json:"changed"`         // false: the history is sent unchanged
	Budget     Budget        `json:"budget"`          // of a call with the sent messages
	Stages     []StageReport `json:"stages,omitzero"` // tried after a refusal, if the sent messages do not fit
	Warnings   []SyncWarning `json:"warnings"`
	Parts      []SyncPart    `json:"parts,omitzero"`
	Messages   []codec.Raw   `json:"messages,omitzero"` // in place of parts, for form messages
}

// NeedAll requests the whole history.
const NeedAll = "all"

// SyncWarning is something that the agent should be aware of.
type SyncWarning struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// WarningOf is the warning of a code, with an optional detail after its meaning.
func WarningOf(code Code, detail string) SyncWarning {
	info := Codes[code]
	w := SyncWarning{Code: code, Message: info.Meaning, Hint: info.Hint}
	if detail != "" {
		w.Message += " " + detail
	}
	return w
}

// SyncPart is one part of the messages to send. One of keep, drop, message and edit is set. The ranges of all
// parts cover each message of the history once, in order; a range ends before its second number.
type SyncPart struct {
	Keep    *SyncRange `json:"keep,omitzero"`    // these messages of the caller, unchanged
	Drop    *SyncRange `json:"drop,omitzero"`    // these are not sent
	Edit    *int64     `json:"edit,omitzero"`    // this message, with message's content in its place
	Message codec.Raw  `json:"message,omitzero"` // made by compactd
	// StandsFor are the messages that the message replaces; absent if it is added.
	StandsFor *SyncRange `json:"stands_for,omitzero"`
}

// SyncRange is a range of messages.
type SyncRange [2]int64

// Address names the session of the request: that of its branch, if it has one.
func (r *SyncRequest) Address() Address {
	a := Address{r.Tenant, r.Session}
	if r.Branch != "" {
		a.Session = BranchID(r.Session, r.Branch)
	}
	return a
}

// MarshalJSON writes usage as it travels.
func (u *SyncUsage) MarshalJSON() ([]byte, error) {
	ms, err := codec.ReadObject(u.Raw)
	if err != nil {
		return nil, err
	}
	ms = codec.SetMember(ms, "view", codec.Quote(u.View))
	if u.Count > 0 {
		ms = codec.SetMember(ms, "count", codec.Raw(strconv.FormatInt(u.Count, 10)))
	}
	return codec.WriteObject(ms), nil
}

// BranchID is the id of a branch of a session.
func BranchID(session, branch string) string {
	if id, err := SessionID(SessionName(session) + "/" + branch); err == nil {
		return id
	}
	return longBranch + digestOf([]byte(SessionName(session)+"/"+branch)).String()
}

// longBranch begins the id of a branch whose name is too long for an id.
const longBranch = "br-"

// IsBranch reports whether an id is that of a session's branch.
func IsBranch(session, id string) bool {
	return strings.HasPrefix(SessionName(id), SessionName(session)+"/") || strings.HasPrefix(id, longBranch)
}

func (r *SyncRequest) read(env *envelope) {
	env.aboutAt(&r.About)
	env.textAt("branch", &r.Branch, maxNameBytes)
	r.Model = env.model(r.Model)
	env.format(&r.Format)
	env.raw("system", &r.System, '"', '[')
	env.raw("tools", &r.Tools, '[')
	env.raw("policy", &r.Policy, '{')
	if count, hash, ok := numberAndDigest(env, "prefix", r.Prefix, "count", "hash"); ok {
		r.Prefix = &SyncPrefix{Count: count, Hash: hash}
	}
	r.Usage, r.Refused = env.syncUsage(r.Usage), env.refused(r.Refused)
	choice(env, "on_diverge", &r.OnDivergence, []Divergence{DivergeAuto, DivergeReplace, DivergeBranch, DivergeRefuse})
	choice(env, "form", &r.Form, []Form{FormParts, FormMessages})
	r.OnDivergence, r.Form = cmp.Or(r.OnDivergence, DivergeAuto), cmp.Or(r.Form, FormParts)
	env.waitAt(&r.WaitMS)
	env.flag("dry_run", &r.DryRun)
	env.countAt("frozen", &r.Frozen, 0, MaxNumber)
	r.Fork = env.fork(r.Fork)
	env.messages(&r.Messages)
}

// syncUsage reads the usage for a view.
func (e *envelope) syncUsage(in *SyncUsage) *SyncUsage {
	ms, ok := object(e, "usage", in)
	if !ok {
		return nil
	}
	u := &SyncUsage{}
	var rest []codec.Member
	for _, f := range ms {
		switch f.Name {
		case "view":
			u.View = e.textOf("usage.", f.Name, f.Value)
		case "count":
			u.Count = e.countOf("usage.", f.Name, f.Value, 0, MaxNumber)
		default:
			rest = append(rest, f)
		}
	}
	u.Raw = codec.Clean(codec.WriteObject(rest))
	return u
}

// refused reads a refusal.
func (e *envelope) refused(in *SyncRefused) *SyncRefused {
	ms, ok := object(e, "refused", in)
	if !ok {
		return nil
	}
	r := &SyncRefused{}
	for _, f := range ms {
		if f.Value.Kind() == 'n' {
			continue
		}
		switch f.Name {
		case "view":
			r.View = e.textOf("refused.", f.Name, f.Value)
		case "status":
			if n, ok := codec.Integer(f.Value); !ok || n != 0 { // clients send 0 without an answer
				r.Status = e.countOf("refused.", f.Name, f.Value, 100, 599)
			}
		case "error":
			if r.Error = codec.Clean(f.Value); len(r.Error) > maxErrorBytes {
				e.problems.add(CodeTooLarge, "refused.error", "has more than %d bytes", maxErrorBytes)
			}
			if k := f.Value.Kind(); k != '"' && k != '{' && k != '[' {
				e.problems.add(CodeBadType, "refused.error", "has the wrong type")
			}
		}
	}
	if r.Error == nil && r.Status == 0 {
		e.problems.add(CodeMissingField, "refused.error", "is required without status")
	}
	return r
}

// flag reads a field that is true or false.
func (e *envelope) flag(name string, at *bool) {
	if v, ok := e.take(name); ok {
		if *at = v.Kind() == 't'; !*at && v.Kind() != 'f' {
			e.problems.add(CodeBadType, name, "must be true or false")
		}
	}
}
