package events

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the second token of an event's subject.
type Kind string

// Kinds that agents, operators and workers publish into the log.
const (
	KindTurn     Kind = "turn"     // messages that an agent appended to its conversation
	KindOverflow Kind = "overflow" // a provider refused a call as too long
	KindCompact  Kind = "compact"  // compact now, with an optional focus
	KindRewind   Kind = "rewind"   // return to the view of an earlier generation
	KindSummary  Kind = "summary"  // the text of a summarizer; workers only
	KindIdle     Kind = "idle"     // the session has been idle; workers only
	KindBranch   Kind = "branch"   // another session branched off this one; workers only
	KindEnd      Kind = "end"      // the agent is done with the session
	KindForget   Kind = "forget"   // erase the session; operator only
)

// Kinds that workers publish as outcomes.
const (
	KindCompacted Kind = "compacted" // a new effective history
	KindBudget    Kind = "budget"    // a level was crossed
	KindRejected  Kind = "rejected"  // an event was refused, or needs attention
	KindForgotten Kind = "forgotten" // a session counts as never published
)

// KindErased: the erasure of a session.forget is done. The owner of the partition commits it with the
// outcomes, but no event decides it.
const KindErased Kind = "erased"

// LogKinds lists the kinds of the log in the order of the table above. The stream names them one by one,
// because session.*.*.* would also match republished outcomes.
var LogKinds = []Kind{KindTurn, KindOverflow, KindCompact, KindRewind, KindSummary, KindIdle, KindBranch, KindEnd, KindForget}

// OutcomeKinds lists the kinds of outcomes that follow from the log.
var OutcomeKinds = []Kind{KindCompacted, KindBudget, KindRejected, KindForgotten}

// Subject patterns, as the server understands them.
const (
	// OutcomesFilter matches every outcome that is republished to agents.
	OutcomesFilter = "out.*.*.*.*"
	// OutcomesRepublish is the subject of an outcome for agents after its commit.
	OutcomesRepublish = "session.{{wildcard(2)}}.{{wildcard(3)}}.{{wildcard(4)}}"
	// InputPattern is the source of the transform that partitions the log.
	InputPattern = "session.*.*.*"
	configPrefix = "out.config."
)

// Bounds of ids, in bytes.
const (
	// MaxIDLen bounds the id of a session: the encoding of the longest name.
	MaxIDLen = 352
	// MaxTenantLen bounds a tenant.
	MaxTenantLen = 64
)

// DefaultTenant is the tenant of an agent that names none.
const DefaultTenant = "default"

// Unknown replaces a tenant or session that cannot be named in a subject.
const Unknown = "_"

// Address names one session of one tenant. It comes from the subject of an
// event, never from its payload.
type Address struct{ Tenant, Session string }

// String returns tenant.session, the form used in subjects.
func (a Address) String() string { return a.Tenant + "." + a.Session }

// Validate returns a [*Invalid] when the tenant is not 1 to 64, or the session not 1 to 352,
// of [A-Za-z0-9_-].
func (a Address) Validate() error {
	var p problems
	if !ValidID(a.Tenant) {
		p.add(CodeBadID, "tenant", "is not 1 to 64 of A-Z a-z 0-9 _ -")
	}
	if !ValidSession(a.Session) {
		p.add(CodeBadID, "session", badSession)
	}
	return p.err()
}

// badSession is the defect of a session's id.
const badSession = "is not 1 to 352 of A-Z a-z 0-9 _ -"

// ValidID reports whether s may be a tenant: 1 to 64 of [A-Za-z0-9_-].
func ValidID(s string) bool { return len(s) <= MaxTenantLen && ValidSession(s) }

// ValidSession reports whether s may be the id of a session: 1 to 352 of [A-Za-z0-9_-].
func ValidSession(s string) bool {
	if len(s) == 0 || len(s) > MaxIDLen {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// MaxSessionName bounds the name of a session, in bytes.
const MaxSessionName = 256

// encodedPrefix begins the id of a session whose name is not an id.
const encodedPrefix = "b64-"

// SessionID returns the id of a session with any name. A name is 1 to 256 bytes of UTF-8. A name of A-Z a-z
// 0-9 _ - that does not begin with b64- is its own id. Any other becomes b64- and its base64url without
// padding. Two names never have the same id. Its error is an [*Invalid].
func SessionID(name string) (string, error) {
	if name == "" || len(name) > MaxSessionName || !utf8.ValidString(name) {
		return "", NewInvalid(CodeBadID, "session", fmt.Sprintf("is not 1 to %d bytes of UTF-8", MaxSessionName))
	}
	if ValidSession(name) && !strings.HasPrefix(name, encodedPrefix) {
		return name, nil
	}
	return encodedPrefix + base64.RawURLEncoding.EncodeToString([]byte(name)), nil
}

// SessionOf returns the id of a session named by a person: by the agent's name, or by an id. Its error is an
// [*Invalid].
func SessionOf(text string) (string, error) {
	if ValidSession(text) && SessionName(text) != text { // the id of another name
		return text, nil
	}
	return SessionID(text)
}

// SessionName returns the name with an id: the one that [SessionID] encoded, or the id itself.
func SessionName(id string) string {
	encoded, ok := strings.CutPrefix(id, encodedPrefix)
	if !ok {
		return id
	}
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return id
	}
	if again, err := SessionID(string(name)); err != nil || again != id {
		return id // no name has it
	}
	return string(name)
}

// ValidEventID reports whether s may be the id of an event: 1 to 256 bytes of UTF-8
// without control characters.
func ValidEventID(s string) bool {
	return s != "" && len(s) <= maxNameBytes && !hasControl(s) && utf8.ValidString(s)
}

// hasControl reports whether a name holds control characters of ASCII.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Input returns the subject an event is published on.
func Input(k Kind, a Address) (string, error) {
	if !slices.Contains(LogKinds, k) {
		return "", NewInvalid(CodeUnknownKind, "kind", fmt.Sprintf("%q is none of %v", k, LogKinds))
	}
	if err := a.Validate(); err != nil {
		return "", err
	}
	return "session." + string(k) + "." + a.String(), nil
}

// InputFilter returns the subject of one kind for all sessions.
func InputFilter(k Kind) string { return "session." + string(k) + ".*.*" }

// Published returns the subject on which an agent sees outcomes of kind k after
// their commit. Use "*" in a to see those of many sessions.
func Published(k Kind, a Address) string { return "session." + string(k) + "." + a.String() }

// LogTransform returns the destination of the transform that stores an event
// under its partition, log.<p>.<kind>.<tenant>.<session>.
func LogTransform(partitions int) string {
	return fmt.Sprintf("log.{{partition(%d,2,3)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}", partitions)
}

// GrownTransform is [LogTransform] of a log that grew, in another spelling. A version without growth compares
// the text, and refuses it.
func GrownTransform(partitions int) string {
	return strings.Replace(LogTransform(partitions), ",2,3)", ", 2, 3)", 1)
}

// LogFilter matches the log of one partition.
func LogFilter(partition int) string { return "log." + strconv.Itoa(partition) + ".>" }

// LogFilters match the logs of partitions.
func LogFilters(partitions []int) []string { return ofEach(partitions, LogFilter) }

// ofEach lists the subjects of partitions.
func ofEach(partitions []int, subject func(partition int) string) []string {
	out := make([]string, len(partitions))
	for i, p := range partitions {
		out[i] = subject(p)
	}
	return out
}

// Logged returns the subject an event is stored under. Use "*" for any kind.
func Logged(partition int, k Kind, a Address) string {
	return "log." + strconv.Itoa(partition) + "." + string(k) + "." + a.String()
}

// LoggedAnywhere matches the events of one kind of a session, also in a log that grew. "*" is any kind.
func LoggedAnywhere(k Kind, a Address) string { return "log.*." + string(k) + "." + a.String() }

// LoggedIn lists the subjects that an event may be stored under in partitions.
func LoggedIn(partitions []int, k Kind, a Address) []string {
	return ofEach(partitions, func(p int) string { return Logged(p, k, a) })
}

// OutcomeFilter matches everything committed for one partition, markers included.
func OutcomeFilter(partition int) string { return "out." + strconv.Itoa(partition) + ".>" }

// Outcome returns the subject an outcome is committed under. Use "*" for any kind.
func Outcome(partition int, k Kind, a Address) string {
	return "out." + strconv.Itoa(partition) + "." + string(k) + "." + a.String()
}

// OutcomesIn lists the subjects that an outcome may be committed under in partitions.
func OutcomesIn(partitions []int, k Kind, a Address) []string {
	return ofEach(partitions, func(p int) string { return Outcome(p, k, a) })
}

// RejectedFilter matches the session.rejected of all partitions.
const RejectedFilter = "out.*." + string(KindRejected) + ".*.*"

// CompactedFilter selects the compactions of a partition, of all for *.
func CompactedFilter(partition string) string {
	return "out." + partition + "." + string(KindCompacted) + ".*.*"
}

// Marker returns the subject of a marker without outcomes.
func Marker(partition int) string { return "out." + strconv.Itoa(partition) + ".mark" }

// Config returns the subject under which the text of a config is kept.
func Config(hash string) string { return configPrefix + hash }

// Location is the parsed subject of a stored message.
type Location struct {
	Partition int
	Kind      Kind
	Address   Address
}

// SummariesFilter matches the summaries of a tenant in the log, of all partitions.
func SummariesFilter(tenant string) string {
	return "log.*." + string(KindSummary) + "." + tenant + ".*"
}

// ParseLog reads log.<p>.<kind>.<tenant>.<session>. It does not check kind and ids: a bad one is rejected,
// and must not end the reader. It fails only for a subject that no transform produced.
func ParseLog(subject string) (Location, error) { return parse("log", subject) }

// Logs reports whether the log stores events published on one subject under the other, in any partition.
func Logs(logged, published string) bool {
	at, err := ParseLog(logged)
	return err == nil && Published(at.Kind, at.Address) == published
}

// ParseOutcome reads out.<p>.<kind>.<tenant>.<session>, and the subject of a job,
// which has a lane after its kind.
func ParseOutcome(subject string) (Location, error) {
	if at, _, err := ParseJob(subject); err == nil {
		return at, nil
	}
	return parse("out", subject)
}

// ParsePublished reads session.<kind>.<tenant>.<session>, where an agent receives an
// outcome.
func ParsePublished(subject string) (Kind, Address, error) {
	t := strings.Split(subject, ".")
	if len(t) != 4 || t[0] != "session" {
		return "", Address{}, fmt.Errorf("parse subject %q: not session.<kind>.<tenant>.<session>", subject)
	}
	return Kind(t[1]), Address{Tenant: t[2], Session: t[3]}, nil
}

func parse(root, subject string) (Location, error) {
	var t [5]string
	rest, ok := subject, true
	for i := range len(t) - 1 {
		if t[i], rest, ok = strings.Cut(rest, "."); !ok {
			break
		}
	}
	t[len(t)-1] = rest
	if !ok || t[0] != root {
		return Location{}, fmt.Errorf("parse subject %q: not %s.<p>.<kind>.<tenant>.<session>", subject, root)
	}
	p, err := strconv.Atoi(t[1])
	if err != nil || p < 0 {
		return Location{}, fmt.Errorf("parse subject %q: partition is not a number", subject)
	}
	return Location{Partition: p, Kind: Kind(t[2]), Address: Address{Tenant: t[3], Session: t[4]}}, nil
}

// Validate returns a [*Invalid] when the kind is unknown or an id is bad.
func (l Location) Validate() error {
	var p problems
	if !slices.Contains(LogKinds, l.Kind) {
		p.add(CodeUnknownKind, "kind", "is none that this version has")
	}
	p.join(l.Address.Validate())
	return p.err()
}

// PartitionOf returns the partition that the server's transform computes for a session. The table of package
// partitions has the partition that decides its events.
func PartitionOf(a Address, partitions int) int { return int(HashOf(a) % uint32(partitions)) }

// HashOf is FNV-1a over tenant and session, as the server's transform computes it.
func HashOf(a Address) uint32 {
	h := uint32(2166136261)
	for _, s := range [...]string{a.Tenant, a.Session} {
		for i := range len(s) {
			h = (h ^ uint32(s[i])) * 16777619
		}
	}
	return h
}

// HeaderTrace is the header of an event that names its trace. Outcomes and jobs of the event have the same
// header.
const HeaderTrace = "traceparent"

// Trace is a traceparent of version 00, as W3C Trace Context defines it: an id of 32 hex digits, the id of
// the parent span with 16, and two digits of flags. "" is no trace.
type Trace string

// traceForm is the form of a [Trace]; x is a hex digit.
const traceForm = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx"

// ReadTrace returns the trace of the values of a header; "" if they are not one.
func ReadTrace(values []string) Trace {
	if len(values) != 1 || len(values[0]) != len(traceForm) {
		return ""
	}
	v := values[0]
	digits, ok := strings.CutPrefix(v, "00-")
	digits = strings.ReplaceAll(digits, "-", "")
	if _, err := hex.DecodeString(digits); err != nil || !ok || v[35] != '-' || v[52] != '-' || len(digits) != len(traceForm)-5 || strings.ToLower(v) != v {
		return ""
	}
	t := Trace(v)
	if strings.Trim(t.ID(), "0") == "" || strings.Trim(v[36:52], "0") == "" {
		return ""
	}
	return t
}

// ID is the id of the trace, "" without one.
func (t Trace) ID() string {
	if t == "" {
		return ""
	}
	return string(t[3:35])
}
