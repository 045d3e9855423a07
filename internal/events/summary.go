package events

import (
	"strconv"
	"strings"

	"compactd/internal/events/codec"
)

// RecordKind says what a line of a record is about.
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
)

// RecordLine is one fact that survives every compaction.
type RecordLine struct {
	Kind  RecordKind `json:"kind"`
	Text  string     `json:"text"`
	Turns [2]int64   `json:"turns"` // first and last turn it comes from
}

// SummaryUsage is what a model call cost, in tokens.
type SummaryUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// Summary is a session.summary: the result of a job, or why there is none. Only
// workers publish it.
type Summary struct {
	Header
	Job    string       `json:"job"`
	Text   string       `json:"text"`
	Record []RecordLine `json:"record"`
	Model  string       `json:"model"`
	Usage  SummaryUsage `json:"usage,omitzero"`
	Prompt string       `json:"prompt,omitzero"` // hash of the prompt
	// Failure says why there is no summary; Text is empty then.
	Failure string `json:"failure,omitzero"`
}

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
	if err := Unmarshal(codec.Clean(data), &s); err != nil {
		return nil, NewInvalid(CodeBadType, "", "a field of the summary has the wrong type")
	}
	var p problems
	if s.Job == "" {
		p.add(CodeMissingField, "job", "is required")
	}
	if s.Failure == "" && strings.TrimSpace(s.Text) == "" {
		p.add(CodeMissingField, "text", "is required without failure")
	}
	return &s, p.err()
}

// What stands around a summary in the message that carries it.
const (
	summaryOpen  = "<condensed-summary>"
	summaryClose = "</condensed-summary>"

	summaryIntro = "The earlier part of this conversation was condensed to fit the context window. " +
		"The conversation goes on; recent messages follow verbatim. Recall any turn to see it."
	recordIntro = "Facts from the condensed part, with the turns they come from:"
)

// Message returns the summary as the one user message that agents get.
func (s *Summary) Message() Message {
	var b strings.Builder
	b.WriteString(summaryIntro + "\n\n" + summaryOpen + "\n")
	b.WriteString(escapeSummary(strings.TrimSpace(s.Text)))
	b.WriteByte('\n')
	if len(s.Record) > 0 {
		b.WriteString("\n" + recordIntro + "\n")
		for _, r := range s.Record {
			b.WriteString("- " + r.String() + "\n")
		}
	}
	b.WriteString(summaryClose)
	return Message{Role: RoleUser, Parts: []Part{{Kind: PartText, Text: b.String()}}}
}

// escapeSummary keeps a text from ending the element it stands in.
var escapeSummary = strings.NewReplacer(summaryOpen, "&lt;condensed-summary>", summaryClose, "&lt;/condensed-summary>").Replace

// String returns the line as it stands in the message.
func (r RecordLine) String() string {
	turns := "turn " + itoa(r.Turns[0])
	if r.Turns[1] != r.Turns[0] {
		turns = "turns " + itoa(r.Turns[0]) + "-" + itoa(r.Turns[1])
	}
	return string(r.Kind) + " (" + turns + "): " + escapeSummary(strings.ReplaceAll(r.Text, "\n", " "))
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
