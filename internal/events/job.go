package events

import (
	"fmt"
	"strconv"
	"strings"
)

// Lane is the urgency of a job.
type Lane string

// The lanes, most urgent first.
const (
	LaneEmergency  Lane = "emergency"  // a provider has refused a call
	LaneNormal     Lane = "normal"     // the session is at its trigger
	LaneBackground Lane = "background" // the session will be there soon
)

// Lanes lists the lanes, most urgent first.
var Lanes = []Lane{LaneEmergency, LaneNormal, LaneBackground}

// KindJob is the kind of a job. Jobs are committed with the outcomes and are not
// republished: agents do not see them.
const KindJob Kind = "job"

// Job asks for a summary of a range of messages. It carries no text.
type Job struct {
	Header
	Config   string `json:"config"`
	CausedBy Cause  `json:"caused_by"`
	Lane     Lane   `json:"lane"`
	Format   Format `json:"format"`
	// From and To are the first and the last message of the range, included.
	From Position `json:"from"`
	To   Position `json:"to"`
	// Previous is the sequence of the session.summary that covers the beginning
	// of the range, up to PreviousTo; 0 if none does. It is merged, and its range
	// not read again.
	Previous   uint64    `json:"previous,omitzero"`
	PreviousTo *Position `json:"previous_to,omitzero"`
	// Seqs are the sequences in the log of the turns to read, from Turn to To.Turn.
	Turn int64    `json:"turn"`
	Seqs []uint64 `json:"seqs"`
	// EstimatedInput is that of the session when the job was made, in tokens.
	EstimatedInput int64 `json:"estimated_input_tokens"`
	// MaxUnits bounds the summary message, text and record together, in UTF-16
	// code units.
	MaxUnits int64 `json:"max_units"`
	// Hash is that of the turns in the range, by which a result is known as stale.
	Hash string `json:"hash"`
	// Focus is what the user asked to keep in mind.
	Focus string `json:"focus,omitzero"`
	// Manual is the session.compact that asked for the summary; nil if none did.
	Manual *Manual `json:"manual,omitzero"`
}

// Manual is a session.compact that waits for its summary, with what holds for it
// alone.
type Manual struct {
	Cause
	Model  *Model `json:"model,omitzero"`
	Policy Raw    `json:"policy,omitzero"`
}

// Holds reports whether the message at a position is one to read.
func (j *Job) Holds(at Position) bool {
	if j.PreviousTo != nil && at.Compare(*j.PreviousTo) <= 0 {
		return false
	}
	return at.Compare(j.From) >= 0 && at.Compare(j.To) <= 0
}

// JobSubject returns the subject a job is committed under.
func JobSubject(partition int, lane Lane, a Address) string {
	return "out." + strconv.Itoa(partition) + "." + string(KindJob) + "." + string(lane) + "." + a.String()
}

// JobFilter matches the jobs of a lane in all partitions.
func JobFilter(lane Lane) string { return "out.*." + string(KindJob) + "." + string(lane) + ".*.*" }

// ParseJob reads out.<p>.job.<lane>.<tenant>.<session>.
func ParseJob(subject string) (Location, Lane, error) {
	t := strings.Split(subject, ".")
	if len(t) != 6 || t[0] != "out" || t[2] != string(KindJob) {
		return Location{}, "", fmt.Errorf("parse subject %q: not out.<p>.job.<lane>.<tenant>.<session>", subject)
	}
	p, err := strconv.Atoi(t[1])
	if err != nil || p < 0 {
		return Location{}, "", fmt.Errorf("parse subject %q: partition is not a number", subject)
	}
	return Location{Partition: p, Kind: KindJob, Address: Address{Tenant: t[4], Session: t[5]}}, Lane(t[3]), nil
}
