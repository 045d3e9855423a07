package events

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
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

// Job requests a summary of a range of messages. It carries no text.
type Job struct {
	Header
	Config   string `json:"config"`
	CausedBy Cause  `json:"caused_by"`
	Lane     Lane   `json:"lane"`
	Format   Format `json:"format"`
	// From and To are the first and the last message of the range, included.
	From Position `json:"from"`
	To   Position `json:"to"`
	// Previous is the sequence of the session.summary that covers the beginning of the range, up to
	// PreviousTo; 0 for none. It is merged, and its range not read again.
	Previous   uint64    `json:"previous,omitzero"`
	PreviousTo *Position `json:"previous_to,omitzero"`
	// Seqs are the sequences in the log of the turns to read, from Turn to To.Turn.
	Turn int64    `json:"turn"`
	Seqs []uint64 `json:"seqs"`
	// EstimatedInput is the session's input when the job was made, in tokens.
	EstimatedInput int64 `json:"estimated_input_tokens"`
	// MaxUnits bounds the summary message, text and record together, in UTF-16
	// code units.
	MaxUnits int64 `json:"max_units"`
	// Hash identifies the turns in the range, so that an outdated result is recognised.
	Hash string `json:"hash"`
	// Focus is content that the summary must keep.
	Focus string `json:"focus,omitzero"`
	// Provider and Model name the model that may write it, by the policy; absent is any model of the worker.
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	// Manual is the session.compact that requested the summary; nil if none did.
	Manual *Manual `json:"manual,omitzero"`
}

// Manual is a session.compact that waits for its summary, with its own model and policy.
type Manual struct {
	Cause
	Model  *Model    `json:"model,omitzero"`
	Policy codec.Raw `json:"policy,omitzero"`
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

// RecordKind is the kind of a line of a record.
type RecordKind string

// The kinds of record lines.
const (
	RecordPathChanged RecordKind = "path_changed"
	RecordPathRead    RecordKind = "path_read"
	RecordUser        RecordKind = "user"
	RecordFailure     RecordKind = "failure"
	RecordTodo        RecordKind = "todo"
	RecordIdentifier  RecordKind = "identifier"
	RecordDecision    RecordKind = "decision"
	RecordInstruction RecordKind = "instruction" // a message of the system, word for word
)

// RecordLine is one fact that survives every compaction.
type RecordLine struct {
	Kind  RecordKind `json:"kind"`
	Text  string     `json:"text"`
	Turns [2]int64   `json:"turns"` // first and last turn it comes from
}

// SummaryUsage has the tokens of a model call.
type SummaryUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// ModelCall is a provider's count for one model, also if its answer was not used.
type ModelCall struct {
	Model string `json:"model"` // provider/model
	SummaryUsage
}

// MaxCalls bounds the counted calls of a summary.
const MaxCalls = 64

// Summary is a session.summary: the result of a job, or the reason without one. Only workers publish it.
type Summary struct {
	Header
	Job    string       `json:"job"`
	Text   string       `json:"text"`
	Record []RecordLine `json:"record"`
	Model  string       `json:"model"`
	Usage  SummaryUsage `json:"usage,omitzero"`
	Prompt string       `json:"prompt,omitzero"` // hash of the prompt
	// Calls are the models that were called, in their order; absent where Model and Usage are the only one.
	Calls []ModelCall `json:"calls,omitzero"`
	// Spare are lines of the range, the newest first, with an identifier that neither Text nor Record has. A
	// line whose identifiers calls use by the time the summary is applied can be added to its message.
	Spare []SpareLine `json:"spare,omitzero"`
	// Failure is the reason without a summary; Text is empty then.
	Failure string `json:"failure,omitzero"`
}

// SpareLine is a line of the message at a position.
type SpareLine struct {
	Position
	Text string `json:"text"`
}

// MaxSpare bounds the spare lines of a summary.
const MaxSpare = 192

// FailureBudget is the failure of a job for which the tenant's budget allowed no model.
const FailureBudget = "budget_spent"

// MaxSummaryBytes bounds a session.summary.
const MaxSummaryBytes = 1 << 20

// DecodeSummary reads the payload of a session.summary. Its error is an [*Invalid].
func DecodeSummary(data []byte) (*Summary, error) {
	env, err := decodeEnvelope(data, MaxSummaryBytes)
	if err != nil {
		return nil, err
	}
	if err := env.problems.err(); err != nil {
		return nil, err
	}
	var s Summary
	if err := codec.Unmarshal(codec.Clean(data), &s); err != nil {
		return nil, NewInvalid(CodeBadType, "", "a field of the summary has the wrong type")
	}
	var p problems
	if s.Job == "" {
		p.add(CodeMissingField, "job", "is required")
	}
	if s.Failure == "" && strings.TrimSpace(s.Text) == "" {
		p.add(CodeMissingField, "text", "is required without failure")
	}
	s.Spare, s.Calls = s.Spare[:min(len(s.Spare), MaxSpare)], s.Calls[:min(len(s.Calls), MaxCalls)]
	return &s, p.err()
}

// The frame of a summary in its message: SummaryOpen begins its text, and RecordIntro the facts after it.
const (
	SummaryOpen  = "<condensed-summary>"
	summaryClose = "</condensed-summary>"

	summaryIntro = "The earlier part of this conversation was condensed to fit the context window. " +
		"The conversation goes on; recent messages follow verbatim."
	RecordIntro = "Facts from the condensed part, with the turns they come from:"
)

// Message returns the summary as the one user message that agents get.
func (s *Summary) Message() dialect.Message {
	var b strings.Builder
	b.WriteString(summaryIntro + "\n\n" + SummaryOpen + "\n")
	b.WriteString(escapeSummary(strings.TrimSpace(s.Text)))
	b.WriteByte('\n')
	if len(s.Record) > 0 {
		b.WriteString("\n" + RecordIntro + "\n")
		for _, r := range s.Record {
			b.WriteString("- " + r.String() + "\n")
		}
	}
	b.WriteString(summaryClose)
	return dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: b.String()}}}
}

// Messages are the message, and one for each spare line as [WithSpare] takes it.
func (s *Summary) Messages() []dialect.Message {
	out := []dialect.Message{s.Message()}
	for i := range s.Spare {
		out = append(out, dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: s.Spare[i].String()}}})
	}
	return out
}

// String is the line as it follows the record, with its end.
func (l *SpareLine) String() string {
	return "- " + RecordLine{Kind: RecordIdentifier, Text: l.Text, Turns: [2]int64{l.Turn, l.Turn}}.String() + "\n"
}

// WithSpare returns the message of a summary with spare lines after its record. The record is required.
func WithSpare(m dialect.Message, lines []dialect.Message) dialect.Message {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(m.Parts[0].Text, summaryClose))
	for i := range lines {
		b.WriteString(lines[i].Parts[0].Text)
	}
	b.WriteString(summaryClose)
	m.Parts = slices.Clone(m.Parts)
	m.Parts[0].Text = b.String()
	return m
}

// escapeSummary keeps a text from ending the element around it.
var escapeSummary = strings.NewReplacer(SummaryOpen, "&lt;condensed-summary>", summaryClose, "&lt;/condensed-summary>").Replace

// String returns the line in the message: a single line, except for an instruction.
func (r RecordLine) String() string {
	turns := "turn " + itoa(r.Turns[0])
	if r.Turns[1] != r.Turns[0] {
		turns = "turns " + itoa(r.Turns[0]) + "-" + itoa(r.Turns[1])
	}
	text := r.Text
	if r.Kind != RecordInstruction {
		text = strings.ReplaceAll(text, "\n", " ")
	}
	return string(r.Kind) + " (" + turns + "): " + escapeSummary(text)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
