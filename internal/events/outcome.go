package events

import (
	"cmp"
	"fmt"

	"compactd/internal/events/codec"
)

// Stage is one of the four stages of a compaction.
type Stage string

// The stages, in the order they run.
const (
	StagePrune       Stage = "prune"
	StageDeduplicate Stage = "deduplicate"
	StageSummarize   Stage = "summarize"
	StageTruncate    Stage = "truncate"
)

// Reason is the reason for a compaction.
type Reason string

// Reasons of a compaction.
const (
	ReasonThreshold Reason = "threshold" // usage reached the trigger
	ReasonLimit     Reason = "limit"     // usage reached the available input

	ReasonBackground Reason = "background" // a summary came after the fact
	ReasonEveryTurn  Reason = "every_turn" // the policy clears old results at every turn
	ReasonArrival    Reason = "arrival"    // the policy cuts results of tools as they come
	ReasonMedia      Reason = "media"      // there were more images or documents than the provider takes
	ReasonEntries    Reason = "entries"    // there were more messages in view than the policy allows

	ReasonManual   Reason = "manual"   // a session.compact requested it
	ReasonOverflow Reason = "overflow" // the provider refused a call as too long
	ReasonAge      Reason = "age"      // older text will leave the log
	ReasonCost     Reason = "cost"     // calls cost more than the break of the provider's cache
	ReasonIdle     Reason = "idle"     // the session was idle, so the provider's cache is cold
	ReasonRewind   Reason = "rewind"   // a session.rewind requested it
)

// Level is the fill level of a session's window.
type Level string

// Levels, from empty to full. The policy's trigger decides which of them are published, and where they begin.
const (
	LevelOK         Level = "ok"
	LevelInfo       Level = "info"       // worth showing to a person
	LevelWarning    Level = "warning"    // the trigger is near, or reached under trigger ratio
	LevelError      Level = "error"      // the trigger is very near
	LevelCompacting Level = "compacting" // the trigger is reached: compaction runs
	LevelBlocking   Level = "blocking"   // at the hard limit: nothing is waited for
)

// Levels lists the levels, from empty to full.
var Levels = []Level{LevelOK, LevelInfo, LevelWarning, LevelError, LevelCompacting, LevelBlocking}

// Breakdown lists the parts of the estimated input, in tokens.
type Breakdown struct {
	SystemPrompt    int64 `json:"system_prompt"`
	History         int64 `json:"history"`
	CurrentPrompt   int64 `json:"current_prompt"`
	ToolDefinitions int64 `json:"tool_definitions"`
	FileAttachments int64 `json:"file_attachments"`
	// Correction is the difference between the provider's count of the last call and our estimates above;
	// negative if they were too high.
	Correction int64 `json:"correction"`
}

// Budget is the state of a session's window, in tokens.
type Budget struct {
	Level          Level     `json:"level"`
	ContextWindow  int64     `json:"context_window"`
	OutputReserve  int64     `json:"output_reserve"`
	AvailableInput int64     `json:"available_input_tokens"`
	EstimatedInput int64     `json:"estimated_input_tokens"`
	UsagePPM       int64     `json:"usage_ppm"` // estimated over available, in parts per million
	WithinBudget   bool      `json:"within_budget"`
	ShouldCompact  bool      `json:"should_compact"`
	PercentLeft    int64     `json:"percent_left"`   // of the way to the trigger
	TriggerTokens  int64     `json:"trigger_tokens"` // input from which the history is compacted
	TargetTokens   int64     `json:"target_tokens"`  // input that a compaction aims for
	LimitTokens    int64     `json:"limit_tokens"`   // input from which a compaction truncates at once
	Breakdown      Breakdown `json:"breakdown"`
	Generation     int64     `json:"generation"`
}

// Op is the kind of an edit.
type Op string

// The edits of this version.
const (
	OpClear       Op = "clear"       // a tool result, with its call where the provider carried it out, an image or a document becomes a placeholder
	OpClearOld    Op = "clear_old"   // the same by micro-compaction, with a placeholder of its own
	OpDeduplicate Op = "deduplicate" // a file read points to a later one
	OpTrim        Op = "trim"        // a content that is too large is cut
	OpTruncate    Op = "truncate"    // whole messages are hidden behind one marker
	OpCondense    Op = "condense"    // whole messages are hidden behind a summary
	OpRestore     Op = "restore"     // a hidden tool result is shown again, behind the marker or summary
	OpKeep        Op = "keep"        // a message of a hidden range stays in view, behind the marker or summary
	OpAnswer      Op = "answer"      // a call without a result gets a placeholder result
	OpCall        Op = "call"        // a result without a call gets a placeholder call
	OpMove        Op = "move"        // a late result moves to its call, which To names
	OpDrop        Op = "drop"        // a repeated result, or half of a pair of the provider's own tools

	OpBlank  Op = "blank"  // a text of white space is left out
	OpJoin   Op = "join"   // a message is part of the one before it, which To names
	OpSplit  Op = "split"  // the results of a message and its words are two messages
	OpPlace  Op = "place"  // a message follows another one, which To names
	OpOrder  Op = "order"  // the results of a message come before its words
	OpRole   Op = "role"   // a message of the system is a user's
	OpRename Op = "rename" // a call or result has another id, since the provider does not take its own, or another call has it
	OpUnmark Op = "unmark" // a message loses cache marks, of which the provider accepts no more
	OpBridge Op = "bridge" // a line of the assistant comes before the message, which the provider refuses behind a tool's
	OpClose  Op = "close"  // a line of a user follows the message, since the provider refuses a history that ends with an assistant's words
	OpReason Op = "reason" // a call gets a blank reasoning, without which the provider refuses it
	OpUnbind Op = "unbind" // thinking is left out of all messages up to To, or citations of missing results are
)

// Repairs reports whether an edit only makes a history valid: it is derived from the
// history each time, and no ledger keeps it.
func (o Op) Repairs() bool {
	return o == OpAnswer || o == OpCall || o == OpMove || o == OpDrop || o.Writes()
}

// Writes reports whether an edit is known only when the history is written, as a change by the provider's
// rules of form.
func (o Op) Writes() bool {
	switch o {
	case OpBlank, OpJoin, OpSplit, OpPlace, OpOrder, OpRole, OpRename, OpUnmark, OpBridge, OpClose, OpReason, OpUnbind:
		return true
	default:
		return false
	}
}

// Position names a part of the log of one session: the message index of a turn,
// counted from 0, and the part of that message.
type Position struct {
	Turn  int64 `json:"turn"`
	Index int64 `json:"index"`
	Part  int64 `json:"part,omitzero"`
}

// Compare orders positions by their place in the session, parts aside.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Turn, q.Turn), cmp.Compare(p.Index, q.Index))
}

// Edit is one change to the effective history.
type Edit struct {
	Op Op `json:"op"`
	Position
	// To is the last message of a range, included: truncated, condensed, or without its thinking. For a moved
	// result it is its call. For a joined or placed message it is the one before it, nil if that was made by
	// compactd or there is none.
	To *Position `json:"to,omitzero"`
	// Seq is the sequence of the session.summary for a condensed range.
	Seq uint64 `json:"seq,omitzero"`
	// Units is a size in UTF-16 code units: the counted size of the message with a summary, 4 a token if its
	// text is denser; or the largest size of a trimmed or restored text, notices included. A restore without
	// Units takes an earlier one back.
	Units int64 `json:"units,omitzero"`
	// Direction is the part of a trimmed tool output that stays: tail, head, both, or lines of each sort, at
	// most Lines lines of it if that is set. Without it the head stays, up to the end of a sentence or line.
	Direction string `json:"direction,omitzero"`
	Lines     int64  `json:"lines,omitzero"`
	// Spare are the spare lines in the summary's message, by their index.
	Spare []int64 `json:"spare,omitzero"`
}

// StageReport is the result of one stage.
type StageReport struct {
	Name         Stage `json:"name"`
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
	Edits        int64 `json:"edits"`
	// Missing are files whose content the stage hid and that later calls use; Restored of them were restored.
	Missing  int64 `json:"missing,omitzero"`
	Restored int64 `json:"restored,omitzero"`
	// LinesMissing are lines that a summary removed from view, with identifiers that the agent used since it
	// was requested; LinesKept of them are kept in its message.
	LinesMissing int64 `json:"lines_missing,omitzero"`
	LinesKept    int64 `json:"lines_kept,omitzero"`
}

// Compacted is a session.compacted: the whole effective history up to Through.
type Compacted struct {
	Header
	Generation int64 `json:"generation"`
	Compacted  bool  `json:"compacted"`
	Code       Code  `json:"code,omitzero"`
	// Retry is false beside budget_exceeded: the same call would be refused again. Else it is nil.
	Retry    *bool  `json:"retry,omitzero"`
	Reason   Reason `json:"reason"`
	Config   string `json:"config"`
	CausedBy Cause  `json:"caused_by"`
	// Request names the session.compact that this answers; nil for any other
	// reason. A summary may have come in between.
	Request *Cause `json:"request,omitzero"`
	// RewoundTo is the generation whose view a rewind brought back; nil for any
	// other reason.
	RewoundTo *int64 `json:"rewound_to,omitzero"`
	// Through is a turn boundary; an agent keeps its own turns after it.
	Through        Through       `json:"through"`
	StagesUsed     []Stage       `json:"stages_used"`
	Stages         []StageReport `json:"stages"`
	TokensBefore   int64         `json:"tokens_before"`
	TokensAfter    int64         `json:"tokens_after"`
	TokensSaved    int64         `json:"tokens_saved"`
	TargetTokens   int64         `json:"target_tokens"`
	AvailableInput int64         `json:"available_input_tokens"`
	Format         Format        `json:"format"`
	// BoundThinking reports that the model's thinking goes only with the history that it was
	// made under: an agent drops it from its own turns of older generations.
	BoundThinking   bool        `json:"bound_thinking,omitzero"`
	Messages        []codec.Raw `json:"messages,omitzero"`
	MessagesOmitted bool        `json:"messages_omitted,omitzero"`
	Edits           []Edit      `json:"edits"`
	Summary         *Summary    `json:"summary,omitzero"`
	// Cache is nil if nothing changed, and for a rewind.
	Cache  *CacheBreak `json:"cache,omitzero"`
	Budget Budget      `json:"budget"`
	Notes  []Note      `json:"notes,omitzero"`
}

// Exceeded states that the next call does not fit, and that to send it again solves nothing.
func (c *Compacted) Exceeded() {
	c.Code, c.Retry = CodeBudgetExceeded, new(bool)
}

// CacheBreak is the estimated effect of a compaction on the provider's cache of a history.
type CacheBreak struct {
	KeptTokens      int64 `json:"kept_tokens"`      // of the next call, before the first changed message
	RewrittenTokens int64 `json:"rewritten_tokens"` // behind it, without the newest turn: read again
	Cold            bool  `json:"cold,omitzero"`    // the provider has dropped it by now: nothing is lost
	Turns           int64 `json:"turns"`            // expected to gain: as many as the history took to grow by this, of those so far
	// Lost is the cost of reading again, and Saved the saving of calls in these turns, in billionths of a US
	// dollar; absent for a model without a price.
	Lost  int64 `json:"lost_nano_usd,omitzero"`
	Saved int64 `json:"saved_nano_usd,omitzero"`
}

// BudgetChanged is a session.budget: a level was crossed, or an event has notes and
// no other outcome to carry them.
type BudgetChanged struct {
	Header
	Config   string  `json:"config"`
	CausedBy Cause   `json:"caused_by"`
	Through  Through `json:"through"`
	Level    Level   `json:"level"`
	Budget   Budget  `json:"budget"`
	Notes    []Note  `json:"notes,omitzero"`
}

// Note is a remark beside the outcome of an accepted event: a part of the event was ignored.
type Note struct {
	Code Code `json:"code"`
	// Turn is the number of another turn than the event's: one that was parked and was taken with it.
	Turn    int64  `json:"turn,omitzero"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitzero"`
	// Fields are the paths of the ignored fields, such as summarize.enabled.
	Fields []string `json:"fields,omitzero"`
}

// NoteOf is the note of a code about fields.
func NoteOf(code Code, fields ...string) Note {
	info := Codes[code]
	return Note{Code: code, Message: info.Meaning, Hint: info.Hint, Fields: fields}
}

// NotesOf returns the notes of an outcome.
func NotesOf(body any) []Note {
	switch b := body.(type) {
	case *Compacted:
		return b.Notes
	case *BudgetChanged:
		return b.Notes
	}
	return nil
}

// Rejected is a session.rejected: an event was refused, or needs attention.
type Rejected struct {
	Header
	Config   string `json:"config"`
	CausedBy Cause  `json:"caused_by"`
	Seq      uint64 `json:"seq"`
	Kind     Kind   `json:"kind"`
	Code     Code   `json:"code"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitzero"`
	// Expected is the turn a gap waits for.
	Expected int64 `json:"expected,omitzero"`
}

// Answers returns the request that an outcome answers: the event that led to it, or the
// session.compact that has waited for it. A change of level and a job answer nothing: Seq is 0.
func Answers(body any) Cause {
	switch b := body.(type) {
	case *Compacted:
		if b.Request != nil {
			return *b.Request
		}
		return b.CausedBy
	case *Rejected:
		if b.CausedBy.Seq == b.Seq {
			return b.CausedBy
		}
		return Cause{Seq: b.Seq}
	case *Forgotten:
		return Cause{Seq: b.Seq}
	}
	return Cause{}
}

// CauseOf names the event at a sequence of the log.
func CauseOf(seq uint64, event []byte) Cause {
	var e struct {
		ID string `json:"id"`
	}
	if err := codec.Unmarshal(event, &e); err != nil || !ValidEventID(e.ID) {
		return Cause{Seq: seq}
	}
	return Cause{seq, e.ID}
}

// Is reports whether two causes are the same event. After a truncation the log has another event at a lost
// sequence. An event may have no id.
func (c Cause) Is(other Cause) bool {
	return c.Seq == other.Seq && (c.ID == other.ID || c.ID == "" || other.ID == "")
}

// DecodeOutcome reads the payload of an outcome of kind k into a *Compacted,
// *BudgetChanged, *Rejected, *Forgotten, *Erased or *Job.
func DecodeOutcome(k Kind, data []byte) (any, error) {
	var v any
	switch k {
	case KindCompacted:
		v = new(Compacted)
	case KindBudget:
		v = new(BudgetChanged)
	case KindRejected:
		v = new(Rejected)
	case KindForgotten:
		v = new(Forgotten)
	case KindErased:
		v = new(Erased)
	case KindJob:
		v = new(Job)
	default:
		return nil, fmt.Errorf("decode outcome: unknown kind %q; the kinds are %v", k, OutcomeKinds)
	}
	if err := codec.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("decode outcome %s: %w", k, err)
	}
	return v, nil
}
