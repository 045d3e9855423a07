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
	Focus string `json:"focus,omitzero"` // content that the summary must keep
	// Model and Policy hold for this compaction alone; nil is the session's own.
	Model  *Model    `json:"model,omitzero"`
	Policy codec.Raw `json:"policy,omitzero"`
}

func (c *Compact) read(env *envelope) {
	env.textAt("id", &c.ID, maxNameBytes)
	env.wordsAt("focus", &c.Focus, MaxFocusBytes)
	c.Model = env.model(c.Model)
	env.raw("policy", &c.Policy, '{')
}

// Rewind is a session.rewind: return to the view of an earlier generation. One of
// the two fields is set.
type Rewind struct {
	ID         string `json:"id,omitzero"`
	Generation *int64 `json:"generation,omitzero"` // 0 is the history as published
	Steps      int64  `json:"steps,omitzero"`      // compactions in view to undo
}

func (r *Rewind) read(env *envelope) {
	_, steps := env.take("steps")
	steps = steps || r.Steps != 0
	env.textAt("id", &r.ID, maxNameBytes)
	env.countAt("steps", &r.Steps, 1, MaxNumber)
	if env.countedAt("generation", &r.Generation, 0, MaxNumber); (r.Generation != nil) == steps {
		env.problems.add(CodeMissingField, "generation", "or steps is required, not both")
	}
}

// Idle is a session.idle: the session has had no turn since the turn at a sequence of the log. Only workers
// publish it.
type Idle struct {
	Header
	Since uint64 `json:"since"`
}

func (i *Idle) read(env *envelope) {
	i.V = Version
	env.textAt("id", &i.ID, maxNameBytes)
	since := int64(i.Since)
	env.countAt("since", &since, 1, math.MaxInt64)
	if i.Since = uint64(since); i.Since == 0 && len(env.problems) == 0 {
		env.problems.add(CodeMissingField, "since", "is required")
	}
}

// Branch is a session.branch: another session of the tenant branched off this one, by a turn with
// forked_from. Only workers publish it.
type Branch struct {
	Header
	Branch string `json:"branch"` // the id of that session
}

func (b *Branch) read(env *envelope) {
	b.V = Version
	env.textAt("id", &b.ID, maxNameBytes)
	env.wordsAt("branch", &b.Branch, MaxIDLen)
	switch {
	case len(env.problems) > 0:
	case b.Branch == "":
		env.problems.add(CodeMissingField, "branch", "is required")
	case !ValidSession(b.Branch):
		env.problems.add(CodeBadID, "branch", badSession)
	}
}

// End is a session.end.
type End struct {
	ID string `json:"id,omitzero"`
}

func (e *End) read(env *envelope) { env.textAt("id", &e.ID, maxNameBytes) }

// wordsAt reads a text for people or models, of at most limit bytes.
func (e *envelope) wordsAt(name string, at *string, limit int) {
	if v, ok := e.take(name); ok {
		if *at, ok = codec.Text(v); !ok {
			e.problems.add(CodeBadType, name, "must be a string")
		}
	}
	if len(*at) > limit {
		e.problems.add(CodeTooLarge, name, "is longer than %d bytes", limit)
		*at = ""
	}
	*at = strings.TrimSpace(*at)
}

// MaxOverflowBytes bounds a session.overflow. Errors of providers have some
// hundred bytes; those that echo a whole request are cut by their SDKs.
const MaxOverflowBytes = 256 << 10

// Overflow is a session.overflow: a provider refused a call, most likely as too
// long. Package overflow classifies the error.
type Overflow struct {
	ID     string    `json:"id,omitzero"`
	Error  codec.Raw `json:"error,omitzero"`  // string, object or array as the agent got it; nil when there was no body
	Status int64     `json:"status,omitzero"` // HTTP status; 0 when it is not known
	Model  *Model    `json:"model,omitzero"`  // of the call; nil = that of the session
	// Generation is the compaction the agent had applied when it made the call; −1
	// when it is absent, which means the newest.
	Generation int64 `json:"generation,omitzero"`
	// Unbind: if bound thinking was refused, the history goes on without it. Else such an error is rejected.
	Unbind bool `json:"unbind,omitzero"`
	// Unrecorded is our estimate of a call with a history that the session does not have, answered by a sync;
	// 0 = a history of the session.
	Unrecorded int64 `json:"unrecorded,omitzero"`
}

// DecodeOverflow reads the payload of a session.overflow. Its error is an
// [*Invalid] that lists every problem; where the payload was one JSON object the
// event comes beside it, without the fields that are wrong. It holds parts of
// data, which must not change afterwards.
func DecodeOverflow(data []byte) (*Overflow, error) {
	return decode(data, MaxOverflowBytes, func(env *envelope) *Overflow {
		o := &Overflow{ID: env.text("id"), Generation: -1}
		env.raw("error", &o.Error, '"', '{', '[')
		o.Status, o.Model = env.count("status", 100, 599), env.model(nil)
		env.flag("unbind", &o.Unbind)
		o.Unrecorded = env.count("unrecorded", 0, MaxTokens)
		var n *int64
		if env.countedAt("generation", &n, 0, MaxNumber); n != nil {
			o.Generation = *n
		}
		if _, hasStatus := env.take("status"); !hasStatus {
			env.require("error", " without status")
		}
		return o
	})
}

// Forgotten is a session.forgotten: everything of a session before Seq counts as never published. It has no
// content of the session: a replay of the log, from which that is gone, must give the same bytes.
type Forgotten struct {
	Header
	Config   string `json:"config"`
	CausedBy Cause  `json:"caused_by"`
	Seq      uint64 `json:"seq"` // of the session.forget
}

// Erased is a session.erased: the erasure of a session.forget is done. It does not follow from the log, but
// reports the work of the partition's owner.
type Erased struct {
	Header
	CausedBy Cause  `json:"caused_by"` // the session.forget
	Seq      uint64 `json:"seq"`       // of it
	// Overwritten messages: events of the log, and outcomes and jobs.
	Events   int64 `json:"events"`
	Outcomes int64 `json:"outcomes"`
	// Files is the number of removed quarantined ledger files.
	Files int64 `json:"files"`
	// Resumed: an earlier try was interrupted; the figures are of the last one.
	Resumed bool `json:"resumed,omitzero"`
}

// Erasure is a session.forget. An erasure cannot be undone, so an unknown field is an error.
type Erasure struct{ End }

func (e *Erasure) read(env *envelope) {
	for _, m := range env.fields {
		if m.Name != "v" && m.Name != "id" {
			env.problems.add(CodeBadType, "", "has a field that session.forget does not know; it erases the whole session")
			break
		}
	}
	e.End.read(env)
}

// Publishable is an event that clients publish: a [*Turn], [*Overflow], [*Compact], [*Rewind], [*End] or [*Erasure].
type Publishable interface{ EventID() string }

// EventID returns the id that an agent gave the event, or "".
func (t *Turn) EventID() string { return t.ID }

// EventID is that of [Turn.EventID].
func (o *Overflow) EventID() string { return o.ID }

// EventID is that of [Turn.EventID].
func (c *Compact) EventID() string { return c.ID }

// EventID is that of [Turn.EventID].
func (r *Rewind) EventID() string { return r.ID }

// EventID is that of [Turn.EventID].
func (e *End) EventID() string { return e.ID }

// Subjects of the policies of tenants. They are for operators.
const (
	SubjectPolicies = "compactd.policies"
	SubjectPolicy   = "compactd.policy"
)

// MaxPolicyBytes bounds the text of a tenant's policy.
const MaxPolicyBytes = 32 << 10

// PoliciesRequest requests the policy that operators set for a tenant.
type PoliciesRequest struct {
	V      int    `json:"v,omitzero"`
	Tenant string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	// Hash selects the policy of a revision, or the tenant's policy under a config; absent is the last
	// revision.
	Hash string `json:"hash,omitzero"`
}

func (r *PoliciesRequest) read(env *envelope) {
	r.V = Version
	env.tenantAt(&r.Tenant)
	env.textAt("hash", &r.Hash, maxNameBytes)
}

// PolicyRequest sets the policy of a tenant, without a restart of any worker.
type PolicyRequest struct {
	V      int    `json:"v,omitzero"`
	Tenant string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	// Policy is like that of one tenant in a policy file, in YAML or JSON; "" removes it.
	Policy string `json:"policy"`
}

func (r *PolicyRequest) read(env *envelope) {
	r.V = Version
	if env.fields != nil {
		env.require("policy", "; an empty one removes that of the tenant")
	}
	env.tenantAt(&r.Tenant)
	env.wordsAt("policy", &r.Policy, MaxPolicyBytes)
}

// PoliciesResponse is the policy of a tenant.
type PoliciesResponse struct {
	V      int    `json:"v"`
	Tenant string `json:"tenant"`
	// Hash is the hash of Policy, which is the text as set, or for a config the whole policy in JSON. Both
	// are "" if the tenant has the worker's policy.
	Hash   string `json:"hash,omitzero"`
	Policy string `json:"policy,omitzero"`
	// Problem is the reason why the answering worker cannot decide under the policy, and uses its own for the
	// tenant.
	Problem string `json:"problem,omitzero"`
	Config  string `json:"config"` // hash of the config in force at that worker
	// Revisions are the last 64, the newest first.
	Revisions []PolicyRevision `json:"revisions"`
}

// PolicyRevision is a revision of a policy; Hash is "" for a removal.
type PolicyRevision struct {
	Hash string `json:"hash,omitzero"`
	Time int64  `json:"time_ms"`
}

// AuditEntry is one entry of the audit log: who did what, from where. It has no content.
type AuditEntry struct {
	V    int   `json:"v"`
	Time int64 `json:"time_ms,omitzero"` // of the stream
	// Action is the request or kind of event, such as context, recall, compact, forget, policy or token_revoked.
	Action string `json:"action"`
	// Caller is a token by its id, "operator" for the token of --http, "local" for programs of the worker's
	// machine, "nats" for a user of the server, which has no names, or "worker".
	Caller  string `json:"caller"`
	From    string `json:"from,omitzero"` // address of the connection; "" over NATS
	Tenant  string `json:"tenant,omitzero"`
	Session string `json:"session,omitzero"`
	Seq     uint64 `json:"seq,omitzero"` // of the event in the log
	// Hash is the hash of the policy that was set, "" for a removal; Code is the reason if it was refused.
	Hash string `json:"hash,omitzero"`
	Code Code   `json:"code,omitzero"`
}

// AuditActions are the actions that an entry may have.
var AuditActions = []string{
	"changes", "context", "events", "files", "recall", "retrieve", "sync", "xray", "policy", "compact", "rewind", "forget", "token_made", "token_minted", "token_revoked",
}

// HeaderCaller is the header of an event that a worker stored for a caller over HTTP, or by itself: who, and
// from where.
const HeaderCaller = "Compactd-Caller"
