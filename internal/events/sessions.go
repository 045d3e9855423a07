package events

import (
	"strconv"
	"strings"
)

// SubjectSessions asks for the sessions of a tenant.
const SubjectSessions = "compactd.sessions"

// Bounds of a list of sessions.
const (
	MaxSessions     = 500
	DefaultSessions = 100
)

// SessionsRequest asks for the sessions of a tenant, some at a time.
type SessionsRequest struct {
	V      int    `json:"v,omitzero"`
	Tenant string `json:"tenant,omitzero"` // absent: [DefaultTenant]
	Limit  int64  `json:"limit,omitzero"`  // sessions to list; absent is [DefaultSessions]
	// After is where to go on, as the answer before said; the zero value begins.
	After SessionsCursor `json:"after,omitzero"`
}

// SessionsResponse lists sessions by partition and name. There may be fewer than
// asked for, even none, and still more to come: each worker answers for the
// partitions that it serves.
type SessionsResponse struct {
	V        int              `json:"v"`
	Tenant   string           `json:"tenant"`
	Sessions []SessionSummary `json:"sessions"`
	// After is where to go on; absent says that all were listed.
	After *SessionsCursor `json:"after,omitzero"`
}

// SessionSummary is how one session stands.
type SessionSummary struct {
	Session        string `json:"session"`
	Turns          int64  `json:"turns"`
	EstimatedInput int64  `json:"estimated_input_tokens"`
	AvailableInput int64  `json:"available_input_tokens"`
	Level          Level  `json:"level"`
	Generation     int64  `json:"generation"`
	// LastTurn is when its last turn was taken or parked, in Unix milliseconds of the
	// log.
	LastTurn int64 `json:"last_turn_ms"`
}

// SessionsCursor is a place in the list: behind a session, or before all of a
// partition. On the wire it is a string that only workers read.
type SessionsCursor struct {
	Partition int
	Session   string // "" is before the first
}

// String writes the cursor as it travels.
func (c SessionsCursor) String() string { return strconv.Itoa(c.Partition) + "." + c.Session }

// MarshalText writes the cursor as it travels.
func (c SessionsCursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote. Its error is an [*Invalid].
func (c *SessionsCursor) UnmarshalText(text []byte) error {
	partition, session, ok := strings.Cut(string(text), ".")
	n, err := strconv.ParseUint(partition, 10, 16)
	if !ok || err != nil || session != "" && !ValidID(session) {
		return NewInvalid(CodeOutOfRange, "after", "is none that an answer gave")
	}
	*c = SessionsCursor{int(n), session}
	return nil
}

// DecodeSessionsRequest reads the payload of a compactd.sessions. Its error is an
// [*Invalid].
func DecodeSessionsRequest(data []byte) (*SessionsRequest, error) {
	env, err := decodeEnvelope(data, MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	r := &SessionsRequest{V: Version, Tenant: env.tenant(), Limit: env.count("limit", 1, MaxSessions)}
	if after := env.text("after"); after != "" {
		env.problems.join(r.After.UnmarshalText([]byte(after)))
	}
	return r, env.problems.err()
}

// tenant reads the field of that name.
func (e *envelope) tenant() string {
	if _, ok := e.take("tenant"); !ok {
		return DefaultTenant
	}
	before := len(e.problems)
	tenant := e.text("tenant")
	if len(e.problems) == before && !ValidID(tenant) {
		e.problems.add(CodeBadID, "tenant", "is not 1 to 64 of A-Z a-z 0-9 _ -")
	}
	return tenant
}
